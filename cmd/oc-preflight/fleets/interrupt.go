package fleets

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// interruption states what the interrupt of a survey that creates objects means, and ends the program
// at the second one.
type interruption struct {
	stderr  io.Writer
	display terminal.Display

	mutex sync.Mutex
	// asked are the members that have no row yet, by their index.
	asked map[int]fleet.Cluster
}

func newInterruption(stderr io.Writer, display terminal.Display, members []roster.Member) *interruption {
	i := &interruption{stderr: stderr, display: display, asked: map[int]fleet.Cluster{}}
	for at, member := range members {
		i.asked[at] = member.Cluster
	}
	return i
}

// answered shows the progress of a row, and removes its member.
func (i *interruption) answered(member int, progress string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.display.Step(progress)
	delete(i.asked, member)
}

// reminderPause is the time after which the members that have no row yet are named again.
const reminderPause = 10 * time.Second

// remind names the members that have no row yet, again and again until the returned function is called.
func (i *interruption) remind() func() {
	ticker, ended := time.NewTicker(reminderPause), make(chan struct{})
	var reminding sync.WaitGroup
	reminding.Go(func() {
		for {
			select {
			case <-ticker.C:
				i.mutex.Lock()
				if len(i.asked) > 0 {
					i.display.Step("waiting for " + i.names(mostReminded))
				}
				i.mutex.Unlock()
			case <-ended:
				return
			}
		}
	})
	return func() {
		ticker.Stop()
		close(ended)
		reminding.Wait()
	}
}

// How many members a reminder and an error name.
const mostReminded, mostNamed = 5, 20

// names lists the members that have no row yet.
func (i *interruption) names(most int) string {
	const longestName = 100
	var names []string
	for _, at := range slices.Sorted(maps.Keys(i.asked)) {
		names = append(names, words.Line(i.asked[at].Name, longestName))
	}
	return words.List(names, most)
}

// watch waits for the end of ctx, which is the first interrupt, until the returned function is called.
func (i *interruption) watch(ctx context.Context) func() {
	return terminal.OnInterrupts(ctx, i.state, i.leave)
}

// state states what the first interrupt means.
func (i *interruption) state() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.display.Clear()
	fmt.Fprintln(i.stderr, "interrupted: deleting what the runs have created; Ctrl-C again stops at once")
}

// leave ends the program at once.
func (i *interruption) leave() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	fmt.Fprintf(i.stderr, "stopped without clean-up; Jobs of the runs may still be in %s. Delete them with \"cleanup\" in each, or run the command again\n", i.names(mostNamed))
	os.Exit(exitcode.Interrupted)
}
