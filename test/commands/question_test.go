package commands_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/terminal"
)

// onTerminal is the program on a terminal.
type onTerminal chan struct{}

// Ended is closed when the program has ended.
func (o onTerminal) Ended() <-chan struct{} { return o }

// The question after Ctrl-C is in one row of 80 columns, and its answer is read.
func TestQuestionAfterCtrlC(t *testing.T) {
	const columns, rows = 80, 24
	t.Setenv("LC_ALL", "C") // a character is a byte
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	node := newKubelet(t, 0)
	opened := terminal.Open(t, columns, rows)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	run, code := make(onTerminal), 0
	go func() {
		defer close(run)
		code = command.Execute(ctx, slices.Concat([]string{"oc-preflight"}, withMonitoring([]string{"run", "--to", to})),
			genericiooptions.IOStreams{In: opened.Stream, Out: opened.Stream, ErrOut: opened.Stream})
	}()
	firstPod(t, node, run)
	interrupt()
	if err := opened.Type("c\n"); err != nil {
		t.Fatal(err)
	}
	<-run.Ended()
	shown := terminal.NewScreen(columns, rows)
	if _, err := shown.Write([]byte(opened.Received())); err != nil {
		t.Fatal(err)
	}
	seen := append(shown.Scrollback, strings.Split(shown.Shown(), "\n")...)
	if code != exit.Interrupted || !slices.ContainsFunc(seen,
		func(row string) bool { return strings.Contains(row, "interrupted: ") && strings.Contains(row, "[c/d]") }) {
		t.Errorf("exit code %d; no row has the whole question:\n%s", code, strings.Join(seen, "\n"))
	}
	testCluster.ExpectNothingLeft(t)
}
