package running_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	own "github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// begun begins a run of the release that no process holds, as after Ctrl-C and "detach", and returns its ID.
// version is that of the program that began it.
func begun(t *testing.T, c *offer.Cluster, version string) string {
	t.Helper()
	held, err := records.In(t, c.Config()).Runs.Begin(t.Context(), record.Intent{
		ID: uuid.NewString(), From: offer.From, Target: update.Release{Version: offer.To, Image: c.Image}, ToolVersion: version,
		Selection: runner.Options{}.Coverage(),
	}, records.Holder)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	return held.Record().ID
}

func TestAttach(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// prepare returns the arguments.
		prepare       func(t *testing.T, c *offer.Cluster) []string
		code          int
		shown, stated []string
	}{
		"None": {
			reason: "there is nothing to attach to", code: exit.BadInput,
			stated:  []string{"no run is in progress\nhint: Show the newest one: oc preflight status"},
			prepare: func(*testing.T, *offer.Cluster) []string { return nil },
		},
		"Unknown": {
			reason: "an ID that no run has", code: exit.BadInput, stated: []string{`no run has the ID "3b6f2c1e"`, "oc preflight history"},
			prepare: func(*testing.T, *offer.Cluster) []string { return []string{"3b6f2c1e"} },
		},
		"Short": {
			reason: "a prefix that many runs may have", code: exit.BadInput, stated: []string{`"3b6"`, "at least 4 digits"},
			prepare: func(*testing.T, *offer.Cluster) []string { return []string{"3b6"} },
		},
		"Several": {
			reason: "the user has to choose", code: exit.BadInput, stated: []string{"2 runs are in progress; name one: "},
			prepare: func(t *testing.T, c *offer.Cluster) []string {
				t.Helper()
				in := records.In(t, c.Config())
				in.Detached('2', []string{"Etcd.Quorum"})
				in.Detached('3', []string{"Etcd.Quorum"})
				return nil
			},
		},
		"Ended": {
			reason: "a run that has ended shows its status", code: exit.Ready, shown: []string{"READY  ", "Evaluated  gates, risks and health at "},
			prepare: func(t *testing.T, c *offer.Cluster) []string {
				t.Helper()
				return []string{reportOf(t, run(t, c, "--to", offer.To, "-o", "json")).Run.ID[:8]}
			},
		},
		"Format": {
			reason: "a format is checked before a run is searched", code: exit.BadInput, stated: []string{`unknown output format "xml"`},
			prepare: func(*testing.T, *offer.Cluster) []string { return []string{"-o", "xml"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil)
			args := append([]string{"attach", "--prometheus", c.Monitoring, "--quiet"}, tc.prepare(t, c)...)
			got := program.Call(t, args...)
			if got.Code != tc.code {
				t.Fatalf("%s: exit code %d, want %d\n%s%s", tc.reason, got.Code, tc.code, got.Stdout, got.Stderr)
			}
			for _, part := range tc.shown {
				if !strings.Contains(got.Stdout, part) {
					t.Errorf("%s: the report lacks %q:\n%s", tc.reason, part, got.Stdout)
				}
			}
			for _, part := range tc.stated {
				if !strings.Contains(got.Stderr, part) {
					t.Errorf("%s: the error lacks %q:\n%s", tc.reason, part, got.Stderr)
				}
			}
		})
	}
}

// A run that no process holds is continued to its verdict, by the only run in progress or by its ID.
func TestAttachContinues(t *testing.T) {
	for name, args := range map[string]func(id string) []string{
		"Only":   func(string) []string { return nil },
		"Prefix": func(id string) []string { return []string{id[:8]} },
		"Name":   func(id string) []string { return []string{"preflight/" + id} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, nil)
			id := begun(t, c, own.Version())
			got := program.Call(t, append([]string{"attach", "--quiet", "-o", "json"}, args(id)...)...)
			decided := reportOf(t, got)
			stored, err := records.In(t, c.Config()).Store.Get(t.Context(), id)
			if got.Code != exit.Ready || decided.Run.ID != id || err != nil || stored.Phase != record.Complete || stored.Decision != "Ready" {
				t.Errorf("exit code %d, run %s, recorded %s %s, %v\n%s", got.Code, decided.Run.ID, stored.Phase, stored.Decision, err, got.Stderr)
			}
		})
	}
}

// "run" of a release whose run is in progress without a process continues that run.
func TestRunContinues(t *testing.T) {
	c := newCluster(t, nil)
	id := begun(t, c, own.Version())
	if got := reportOf(t, program.Call(t, "run", "--to", offer.To, "--quiet", "-o", "json")); got.Run.ID != id {
		t.Errorf("run %s, want that in progress, %s", got.Run.ID, id)
	}
	// With another question it is neither continued nor replaced.
	id = begun(t, c, own.Version())
	for _, flags := range [][]string{{"--prometheus", c.Monitoring}, {"--images", "off"}} {
		got := program.Call(t, append([]string{"run", "--to", offer.To, "--quiet"}, flags...)...)
		if got.Code != exit.BadInput || !strings.Contains(got.Stderr, "error: run "+id+
			" of the same release is in progress with another selection") || !strings.Contains(got.Stderr, "oc preflight cancel "+id) {
			t.Errorf("%q: exit code %d\n%s", flags, got.Code, got.Stderr)
		}
	}
}

// A run that another version of the program began may have other results: it is ended, and another one is begun.
func TestRunOfAnotherVersion(t *testing.T) {
	c := newCluster(t, nil)
	id := begun(t, c, "v0.1.0")
	got := program.Call(t, "attach", "-o", "json")
	decided := reportOf(t, got)
	if got.Code != exit.Ready || decided.Run.ID == id || !strings.Contains(got.Stderr, "run "+id+" has ended, and does not continue: ") ||
		!strings.Contains(got.Stderr, "v0.1.0") {
		t.Errorf("exit code %d, run %s\n%s", got.Code, decided.Run.ID, got.Stderr)
	}
	if stored, err := records.In(t, c.Config()).Store.Get(t.Context(), id); err != nil || stored.Phase != record.Interrupted {
		t.Errorf("the run is %s, want Interrupted: %v", stored.Phase, err)
	}
}
