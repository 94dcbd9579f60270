package runs_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// world is a cluster in memory, initially without records.
type world struct {
	records.Cluster

	t      *testing.T
	server *apiserver.Server
	state  openshift.State
}

func newWorld(t *testing.T) world {
	t.Helper()
	server := apiserver.Start(t)
	t.Setenv("KUBECONFIG", server.Kubeconfig)
	w := world{Cluster: records.In(t, server.Config()), t: t, server: server, state: records.State()}
	w.present()
	return w
}

// present writes the state to the cluster.
func (w world) present() {
	w.t.Helper()
	if err := openshift.Apply(w.t.Context(), w.server.Config(), w.state); err != nil {
		w.t.Fatal(err)
	}
}

// call runs oc-preflight, and verifies its exit code.
func (w world) call(code int, args ...string) program.Result {
	w.t.Helper()
	got := program.Call(w.t, args...)
	if got.Code != code {
		w.t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got.Code, code, got.Stdout, got.Stderr)
	}
	return got
}

// contains verifies that a text contains all of these parts.
func (w world) contains(text string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("the output does not contain %q:\n%s", part, text)
		}
	}
}

// expectCanceled verifies the phase of a recorded run.
func (w world) expectCanceled(id string) {
	w.t.Helper()
	found, err := w.Store.Get(w.t.Context(), id)
	if err != nil || found.Phase != record.Canceled || found.CompletionTime.IsZero() {
		w.t.Errorf("the record of run %s is in phase %s, completed at %s; want Canceled: %v", id, found.Phase, found.CompletionTime, err)
	}
}
