package running

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
)

// Ask is the value of --on-interrupt that prompts the user.
const Ask = "ask"

func checkInterrupt(how string) error {
	ways := []string{Ask, string(runner.CleanUp), string(runner.Detach)}
	if slices.Contains(ways, how) {
		return nil
	}
	return fmt.Errorf("--on-interrupt=%s: it must be one of %s", how, strings.Join(ways, ", "))
}

// interruptPrompt decides what becomes of a run that the user interrupts.
type interruptPrompt struct {
	streams genericiooptions.IOStreams
	// how is the value of --on-interrupt.
	how string
	// again words the commands with which the user continues.
	again   phrase.Phrase
	display terminal.Display
	// quiet leaves out what needs no attention.
	quiet bool

	detached bool

	mutex sync.Mutex
	run   string
}

func (p *interruptPrompt) started(run string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.run = run
}

// watch ends the program on the second signal, until the returned function is
// called. The first one ends ctx.
func (p *interruptPrompt) watch(ctx context.Context) func() {
	return terminal.OnInterrupts(ctx, func() {}, p.leave)
}

// leave ends the program at once.
func (p *interruptPrompt) leave() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.run == "" {
		fmt.Fprintln(p.streams.ErrOut, "stopped without clean-up")
	} else {
		fmt.Fprintf(p.streams.ErrOut, "stopped without clean-up; the Jobs of run %s are still in the cluster. Continue with: %s\n", p.run, p.again.About("attach", p.run).Command)
	}
	os.Exit(exitcode.Interrupted)
}

// choose decides what becomes of the run.
func (p *interruptPrompt) choose(string) runner.Interruption {
	chosen := runner.Interruption(p.how)
	if p.how == Ask {
		chosen = p.ask()
	}
	p.detached = chosen == runner.Detach
	return chosen
}

// ask asks the user on a terminal, and repeats the question until the answer is
// one of the two. Without a terminal, or at the end of the input, the run is
// cleaned up.
func (p *interruptPrompt) ask() runner.Interruption {
	in, ok := terminal.Of(p.streams.In)
	if !ok {
		return runner.CleanUp
	}
	p.display.Clear()
	lines := bufio.NewReader(in)
	for {
		fmt.Fprint(p.streams.ErrOut, "interrupted: [c]lean up the run, or [d]etach and let its checks run? [c/d] ")
		line, err := lines.ReadString('\n')
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case answer == "d" || answer == "detach":
			return runner.Detach
		case answer == "c" || answer == "clean" || err != nil:
			return runner.CleanUp
		}
	}
}

// reportRemoval writes what became of the objects of a run, after the report,
// which lists them. On a terminal, success is not written: the report would scroll.
func (p *interruptPrompt) reportRemoval(removed report.Report) {
	w := p.streams.ErrOut
	_, scrolls := terminal.Of(p.streams.Out)
	if removed.Removal != nil {
		runs.ReportForeign(w, removed.Removal.Foreign, removed.Run.ID)
	}
	switch {
	case p.detached:
		fmt.Fprintf(w, "the checks of run %s continue in the cluster; come back with: %s\n", removed.Run.ID, p.again.About("attach", removed.Run.ID).Command)
	case removed.Removal == nil && len(removed.Created) > 0:
		fmt.Fprintf(w, "%s of the run left in the cluster for inspection; to delete: %s\n", words.Count(len(removed.Created), "object"), p.again.About("cleanup", removed.Run.ID).Command)
	case removed.Removal == nil:
	case len(removed.Removal.Left) == 0 && (p.quiet || scrolls || len(removed.Removal.Deleted) == 0):
	case len(removed.Removal.Left) == 0:
		fmt.Fprintf(w, "deleted %s of the run; a final list found none left\n", words.Count(len(removed.Removal.Deleted), "object"))
	default:
		for _, object := range removed.Removal.Left {
			fmt.Fprintf(w, "not deleted: %s\n", object)
		}
	}
}

// reportRemovals is reportRemoval for each update of a path, of which the last may have
// been detached from.
func (p *interruptPrompt) reportRemovals(updates []report.Report) {
	detached := p.detached
	for i, each := range updates {
		p.detached = detached && i == len(updates)-1
		p.reportRemoval(each)
	}
}
