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
)

// watching is a command with --watch whose output is read line by line.
type watching struct {
	lines  *bytes.Buffer
	writes chan string
	ended  chan int
}

// watch starts a command. It ends with ctx, or after a time in which it must have written.
func (w world) watch(ctx context.Context, args ...string) watching {
	w.t.Helper()
	const most = time.Minute
	ctx, stop := context.WithTimeout(ctx, most)
	w.t.Cleanup(stop)
	reader, writer := io.Pipe()
	started := watching{lines: &bytes.Buffer{}, writes: make(chan string), ended: make(chan int, 1)}
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

// until reads until the output contains a text.
func (w watching) until(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(w.lines.String(), text) {
		written, ok := <-w.writes
		if !ok {
			t.Fatalf("the command ended without %q:\n%s", text, w.lines)
		}
		w.lines.WriteString(written)
	}
}

// drain reads the rest, and returns the exit code.
func (w watching) drain() int {
	for written := range w.writes {
		w.lines.WriteString(written)
	}
	return <-w.ended
}

// A watched history is written again when a run starts, long before the interval ends, and
// an interrupt is no error.
func TestWatchHistory(t *testing.T) {
	w := newWorld(t)
	w.ended('1', decided(found("Etcd.Quorum", preflight.Pass, "Passed")), w.basis())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	history := w.watch(ctx, "history", "--watch", "--interval", "1h", "-o", "name")
	history.until(t, "preflight/")
	left := w.left('2', []string{"Etcd.Quorum"})
	history.until(t, "preflight/"+left)
	interrupt()
	if code := history.drain(); code != ready {
		t.Errorf("exit code %d after an interrupt, want %d", code, ready)
	}
	if got := strings.Count(history.lines.String(), "\n\n"); got == 0 {
		t.Errorf("no empty line between the documents before and after the change:\n%s", history.lines)
	}
}

// A watched status ends with the run, with its exit code.
func TestWatchStatus(t *testing.T) {
	w := newWorld(t)
	held := w.begin('3', "Etcd.Quorum", "Etcd.Space")
	status := w.watch(t.Context(), "status", "--watch", "--interval", "1h", "-o", "json")
	status.until(t, `"reported": 0`)
	held.Put(result("Etcd.Quorum", found("Etcd.Quorum", preflight.Fail, "NoQuorum")))
	if err := held.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	status.until(t, `"reported": 1`)
	ended := decided(found("Etcd.Quorum", preflight.Fail, "NoQuorum"))
	ended.Run.ID, ended.Run.CompletionTime = held.Record().ID, held.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(ended)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: ended.Verdict, Report: text, Fingerprint: w.basis()}); err != nil {
		t.Fatal(err)
	}
	if code := status.drain(); code != blocked {
		t.Errorf("exit code %d of a run that is Blocked, want %d\n%s", code, blocked, status.lines)
	}
}

// A run that has ended does not change.
func TestStatusOfAnEndedRunIsNotWatched(t *testing.T) {
	w := newWorld(t)
	run := w.ended('1', decided(found("Etcd.Quorum", preflight.Pass, "Passed")), w.basis())
	got := w.call(ready, "status", "preflight/"+run, "--watch", "-o", "short")
	if got.stdout != "Verdict: Ready, 4.18.3 -> 4.19.0, run "+run[:8]+"\n" {
		t.Errorf("a run that has ended is shown once, but got %q", got.stdout)
	}
}
