package records_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/exit"
)

// watching is a running command with --watch.
type watching struct {
	// output is the output that was read so far.
	output *bytes.Buffer
	writes chan string
	ended  chan int // receives the exit code
}

// watch starts a command, which is interrupted when ctx ends, or after a minute.
func (w world) watch(ctx context.Context, args ...string) watching {
	w.t.Helper()
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	w.t.Cleanup(stop)
	reader, writer := io.Pipe()
	started := watching{output: &bytes.Buffer{}, writes: make(chan string), ended: make(chan int, 1)}
	go func() {
		part := make([]byte, 64<<10)
		for {
			n, err := reader.Read(part)
			if err != nil {
				close(started.writes)
				return
			}
			started.writes <- string(part[:n])
		}
	}()
	go func() {
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: io.Discard}
		started.ended <- command.Execute(ctx, append([]string{"oc-preflight", "--kubeconfig", local.Kubeconfig}, args...), streams)
		_ = writer.Close() // never fails
	}()
	return started
}

// until reads the output until it contains a text.
func (w watching) until(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(w.output.String(), text) {
		written, ok := <-w.writes
		if !ok {
			t.Fatalf("the command ended without %q:\n%s", text, w.output)
		}
		w.output.WriteString(written)
	}
}

// drain reads the rest of the output, and returns the exit code.
func (w watching) drain() int {
	for written := range w.writes {
		w.output.WriteString(written)
	}
	return <-w.ended
}

// history --watch prints again when a run starts, without waiting for the interval, and an
// interrupt is not an error.
func TestWatchHistory(t *testing.T) {
	w := newWorld(t)
	w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	history := w.watch(ctx, "history", "--watch", "--interval", "1h", "-o", "name")
	history.until(t, "preflight/")
	run := w.detachedRun('2', []string{"Etcd.Quorum"})
	history.until(t, "preflight/"+run)
	interrupt()
	if code := history.drain(); code != exit.Ready {
		t.Errorf("exit code %d after an interrupt, want %d", code, exit.Ready)
	}
	if got := strings.Count(history.output.String(), "\n\n"); got == 0 {
		t.Errorf("want an empty line between the documents before and after the change:\n%s", history.output)
	}
}

// status --watch ends with the run, and returns the exit code of its verdict.
func TestWatchStatus(t *testing.T) {
	w := newWorld(t)
	held := w.begin('3', "Etcd.Quorum", "Etcd.Space")
	status := w.watch(t.Context(), "status", "--watch", "--interval", "1h", "-o", "json")
	status.until(t, `"reported": 0`)
	held.Put(result("Etcd.Quorum", newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum")))
	if err := held.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	status.until(t, `"reported": 1`)
	ended := newReport(newFinding("Etcd.Quorum", preflight.Fail, "NoQuorum"))
	ended.Run.ID, ended.Run.CompletionTime = held.Record().ID, held.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(ended)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: ended.Verdict, Report: text, Fingerprint: w.fingerprint()}); err != nil {
		t.Fatal(err)
	}
	if code := status.drain(); code != exit.Blocked {
		t.Errorf("exit code %d of a run that is Blocked, want %d\n%s", code, exit.Blocked, status.output)
	}
}

// status --watch of a run that has ended prints once.
func TestStatusOfAnEndedRunIsNotWatched(t *testing.T) {
	w := newWorld(t)
	run := w.completedRun('1', newReport(newFinding("Etcd.Quorum", preflight.Pass, "Passed")), w.fingerprint())
	got := w.call(exit.Ready, "status", "preflight/"+run, "--watch", "-o", "short")
	if got.stdout != "Verdict: Ready, 4.18.3 -> 4.19.1, run "+run[:8]+"\n" {
		t.Errorf("got %q, want the verdict once", got.stdout)
	}
}
