package prometheus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
)

// process is Prometheus, the program.
type process struct {
	cmd *exec.Cmd
	// listening gets the host:port once; ended is closed when the program has
	// ended, and its last line is in last.
	listening chan string
	ended     chan struct{}
	last      string
}

// spawn starts the program on a port that the kernel chooses.
func spawn(dir string) (*process, error) {
	program, err := program()
	if err != nil {
		return nil, err
	}
	//nolint:gosec,noctx // a program of ours, which outlives ctx
	cmd := exec.Command(program, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
		"--web.listen-address=127.0.0.1:0", "--storage.tsdb.retention.time=1h")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, []string{"HOME=/"}, dyingWithParent()
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, listening: make(chan string, 1), ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The child dies with its parent's thread, so the thread is kept.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.follow(log)
		}
	}()
	return p, <-started
}

// follow reads the log to its end, and waits for that of the program.
func (p *process) follow(log io.Reader) {
	defer close(p.ended)
	listening := regexp.MustCompile(`msg="Listening on".* address=(\S+)`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		p.last = lines.Text()
		if match := listening.FindStringSubmatch(p.last); match != nil {
			select {
			case p.listening <- match[1]:
			default: // it says so once for each listener
			}
		}
	}
	_ = p.cmd.Wait() // it was killed, or its last line says more
}

// address is the host:port that it listens on.
func (p *process) address(ctx context.Context) (string, error) {
	select {
	case address := <-p.listening:
		return address, nil
	case <-p.ended:
		return "", fmt.Errorf("prometheus ended: %s", p.last)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.ended
}

// program finds the binary from the working directory, which is below the
// module's root in every test.
func program() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "tools", "extras", "go.mod")); err == nil {
			path := filepath.Join(dir, "bin", "prometheus")
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				return "", fmt.Errorf("%q is not there: run `make tools`", path)
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%q is not inside the source tree of update-preflight", start)
		}
	}
}
