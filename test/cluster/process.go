package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// markName names the variable in the environment of every process of a
	// cluster that holds the cluster's directory.
	markName = "PREFLIGHT_TEST_CLUSTER"
	// lastWords bounds how much of a log an error quotes, in bytes.
	lastWords = 1200
	// pollInterval is for the components that can only be asked.
	pollInterval = 20 * time.Millisecond
)

// process is a component that runs, or has run.
type process struct {
	pid int
	// ended is closed when it has ended.
	ended chan struct{}
}

// spawn starts a component in the background, its output going to a log of its
// own. When the component ends before Start or Revive is done, that fails.
func (p *plan) spawn(name, binary string, args ...string) error {
	path := filepath.Join(p.cluster.Dir, "logs", name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the cluster's own directory
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(p.bin, binary), args...) //nolint:gosec,noctx // a binary of ours, which outlives ctx
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.cluster.Dir, log, log
	cmd.Env = p.childEnv()
	cmd.SysProcAttr = dyingWithParent()
	if p.standing {
		cmd.SysProcAttr = outlivingParent()
		// Containerd would hand the lock on to the shims.
		if p.cluster.claim != nil && name != "containerd" {
			cmd.ExtraFiles = []*os.File{p.cluster.claim.file}
		}
	}
	started, ended, fail := make(chan error, 1), make(chan struct{}), p.fail
	go func() {
		defer close(ended)
		defer func() { _ = log.Close() }() // only the child wrote to it
		// The child dies with its parent's thread, so the thread is kept.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			err = cmd.Wait()
			fail(fmt.Errorf("%s ended (%w); %s", name, err, quoteLog(path)))
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.processes[name] = process{pid: cmd.Process.Pid, ended: ended}
	return nil
}

// quoteLog is the end of a log, on one line, and where the rest is.
func quoteLog(path string) string {
	data, err := os.ReadFile(path) //nolint:gosec // a log of ours
	if err != nil {
		return err.Error()
	}
	data = data[max(0, len(data)-lastWords):]
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return fmt.Sprintf("the end of %s says: %s", path, strings.Join(lines, " | "))
}

// await asks until the answer is yes. When it never is, the error is what was
// last in the way, and the component's log.
func (p *plan) await(ctx context.Context, name string, ask func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			log := filepath.Join(p.cluster.Dir, "logs", name+".log")
			return fmt.Errorf("%w while waiting for %s: %w; %s", context.Cause(ctx), name, err, quoteLog(log))
		}
	}
}

// get is an ask for a URL that answers 200 once its server is ready.
func get(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, lastWords))
		if err := response.Body.Close(); err != nil {
			return err
		}
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
		}
		return err
	}
}
