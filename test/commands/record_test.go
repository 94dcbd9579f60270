package commands_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// world is the cluster, initially without run records.
type world struct {
	records.Cluster

	t *testing.T
}

func newWorld(t *testing.T) world {
	t.Helper()
	byDefault.use(t)
	w := world{Cluster: records.In(t, byDefault.Config), t: t}
	if err := openshift.Apply(t.Context(), byDefault.Config, records.State()); err != nil {
		t.Fatal(err)
	}
	return w
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
