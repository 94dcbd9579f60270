package runs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// history --watch prints again when a run starts, without waiting for the interval, and an
// interrupt is not an error.
func TestWatchHistory(t *testing.T) {
	w := newWorld(t)
	w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	history := program.Start(t, "history", "--watch", "--interval", "1h", "-o", "name")
	history.AwaitStdout("preflight/")
	run := w.Detached('2', []string{"Etcd.Quorum"})
	history.AwaitStdout("preflight/" + run)
	history.Interrupt()
	got := history.Wait()
	if got.Code != exit.Ready {
		t.Errorf("exit code %d after an interrupt, want %d", got.Code, exit.Ready)
	}
	if !strings.Contains(got.Stdout, "\n\n") {
		t.Errorf("want an empty line between the documents before and after the change:\n%s", got.Stdout)
	}
}

// status --watch ends with the run, and returns the exit code of its verdict.
func TestWatchStatus(t *testing.T) {
	w := newWorld(t)
	held := w.Begin('3', "Etcd.Quorum", "Etcd.Space")
	status := program.Start(t, "status", "--watch", "--interval", "1h", "-o", "json")
	status.AwaitStdout(`"reported": 0`)
	held.Put(records.Result("Etcd.Quorum", records.Failed("Etcd.Quorum", "NoQuorum")))
	if err := held.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	status.AwaitStdout(`"reported": 1`)
	ended := records.Report(records.Failed("Etcd.Quorum", "NoQuorum"))
	ended.Run.ID, ended.Run.CompletionTime = held.Record().ID, held.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(ended)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), record.Ending{
		Phase: record.Complete, Verdict: ended.Verdict, Report: text,
		Fingerprint: w.Fingerprint(),
	}); err != nil {
		t.Fatal(err)
	}
	if got := status.Wait(); got.Code != exit.Blocked {
		t.Errorf("exit code %d of a run that is Blocked, want %d\n%s", got.Code, exit.Blocked, got.Stdout)
	}
}

// status --watch of a run that has ended prints once.
func TestStatusOfAnEndedRunIsNotWatched(t *testing.T) {
	w := newWorld(t)
	run := w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint())
	got := w.call(exit.Ready, "status", "preflight/"+run, "--watch", "-o", "short")
	if got.Stdout != "Verdict: Ready, 4.18.3 -> 4.19.1, run "+run[:8]+"\n" {
		t.Errorf("got %q, want the verdict once", got.Stdout)
	}
}
