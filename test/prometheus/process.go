package prometheus

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"runtime"

	"github.com/openshift/update-preflight/test/build"
)

// process is a running Prometheus.
type process struct {
	cmd *exec.Cmd
	// listening receives the host:port once. ended is closed when the program has
	// ended; then last is the last line of its log.
	listening chan string
	ended     chan struct{}
	last      string
}

// spawn starts the program on a port that the kernel chooses.
func spawn(dir string) (*process, error) {
	program, err := build.Program("prometheus")
	if err != nil {
		return nil, err
	}
	//nolint:gosec,noctx // a pinned program, which outlives ctx
	cmd := exec.Command(program, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
		"--web.listen-address=127.0.0.1:0", "--web.enable-lifecycle", "--storage.tsdb.retention.time=1h")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, []string{"HOME=/", "GOMAXPROCS=1", "GOGC=400"}, dyingWithParent()
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, listening: make(chan string, 1), ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel kills the child at the end of this thread.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.follow(log)
		}
	}()
	return p, <-started
}

// follow reads the log to its end, and waits for the end of the program.
func (p *process) follow(log io.Reader) {
	defer close(p.ended)
	listening := regexp.MustCompile(`msg="Listening on".* address=(\S+)`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		p.last = lines.Text()
		if match := listening.FindStringSubmatch(p.last); match != nil {
			select {
			case p.listening <- match[1]:
			default: // logged once for each listener
			}
		}
	}
	_ = p.cmd.Wait() // it was killed, or the last line has the cause
}

// address returns the host:port that the program listens on.
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
