package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// markName is the name of an environment variable of every process of a
	// cluster. Its value is the cluster's directory.
	markName = "PREFLIGHT_TEST_CLUSTER"
	// lastWords limits how much of a log an error quotes, in bytes.
	lastWords = 1200
	// pollInterval is for conditions that cannot be watched.
	pollInterval = 20 * time.Millisecond
)

// process is a component that was started.
type process struct {
	pid int
	// ended is closed when the process has ended.
	ended chan struct{}
}

// spawn starts a component in the background, with its output in its own log. If
// the component ends before Start or Revive is done, that fails.
func (p *plan) spawn(name, binary string, args ...string) error {
	path := filepath.Join(p.cluster.Dir, "logs", name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the directory of the cluster
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(p.bin, binary), args...) //nolint:gosec,noctx // a pinned program, which outlives ctx
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.cluster.Dir, log, log
	cmd.Env = p.childEnv()
	cmd.SysProcAttr = dyingWithParent()
	if p.standing {
		cmd.SysProcAttr = outlivingParent()
		// The shims would inherit the lock from containerd.
		if p.cluster.claim != nil && name != "containerd" {
			cmd.ExtraFiles = []*os.File{p.cluster.claim.file}
		}
	}
	started, ended, fail := make(chan error, 1), make(chan struct{}), p.fail
	go func() {
		defer close(ended)
		defer func() { _ = log.Close() }() // only the child writes to it
		// The kernel kills the child at the end of this thread.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			err = cmd.Wait()
			end := fmt.Errorf("%s ended (%w); %s", name, err, quoteLog(path))
			fail(end)
			p.ended(name, end)
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

// ended reports the end of a component unless it was wanted.
func (p *plan) ended(name string, end error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.stopped || p.crashed[name] {
		return
	}
	select {
	case p.cluster.failed <- end:
	default: // another one ended before
	}
}

// reap waits for the ends of the components: only then their processor time counts as that
// of this process's children.
func (p *plan) reap(ctx context.Context) {
	p.mutex.Lock()
	components := slices.Collect(maps.Values(p.processes))
	p.mutex.Unlock()
	for _, component := range components {
		select {
		case <-component.ended:
		case <-ctx.Done():
		}
	}
}

// quoteLog returns the end of a log on one line, and its path.
func quoteLog(path string) string {
	data, err := os.ReadFile(path) //nolint:gosec // a log of the cluster
	if err != nil {
		return err.Error()
	}
	data = data[max(0, len(data)-lastWords):]
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return fmt.Sprintf("the log %s ends with: %s", path, strings.Join(lines, " | "))
}

// await calls ask until it succeeds. If ctx ends first, the error has the last
// error of ask and the end of the component's log.
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

// get returns a function that succeeds if the URL responds with status 200.
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
