package command

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/runner"
)

// ask is the way of --on-interrupt that is none of runner's: the user says.
const ask = "ask"

func checkInterrupt(how string) error {
	ways := []string{ask, string(runner.CleanUp), string(runner.Detach)}
	if slices.Contains(ways, how) {
		return nil
	}
	return fmt.Errorf("--on-interrupt=%s: it must be one of %s", how, strings.Join(ways, ", "))
}

// leaving is how the user gets out of a run that is on its way.
type leaving struct {
	streams genericiooptions.IOStreams
	// how is what --on-interrupt says, program how the user calls it.
	how, program string
	display      display

	detached bool

	mutex sync.Mutex
	run   string
}

// note remembers which run it is.
func (l *leaving) note(event runner.Event) {
	if event.Run == "" {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.run = event.Run
}

// watch has the signal after the one that ended ctx end the program where it is,
// until the returned function is called.
func (l *leaving) watch(ctx context.Context) func() {
	again := make(chan os.Signal, 1)
	stop := context.AfterFunc(ctx, func() {
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		if _, ok := <-again; ok {
			l.leave()
		}
	})
	return func() {
		stop()
		signal.Stop(again)
		close(again)
	}
}

// leave ends the program.
func (l *leaving) leave() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.run == "" {
		fmt.Fprintln(l.streams.ErrOut, "left at once")
	} else {
		fmt.Fprintf(l.streams.ErrOut, "left at once; what run %s has in the cluster is still there. Come back with: %s attach %[1]s\n", l.run, l.program)
	}
	os.Exit(exitInterrupted)
}

// choose says what becomes of the run.
func (l *leaving) choose(string) runner.Interruption {
	chosen := runner.Interruption(l.how)
	if l.how == ask {
		chosen = l.ask()
	}
	l.detached = chosen == runner.Detach
	return chosen
}

// ask asks the user, where there is one.
func (l *leaving) ask() runner.Interruption {
	in, ok := l.streams.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return runner.CleanUp
	}
	l.display.clear()
	fmt.Fprint(l.streams.ErrOut, "interrupted: [c]lean up what the run has in the cluster, or [d]etach and leave its checks at work? [c] ")
	line, err := bufio.NewReader(in).ReadString('\n')
	if err == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "d") {
		return runner.Detach
	}
	return runner.CleanUp
}
