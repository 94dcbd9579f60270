package fleets_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// member is a cluster of a fleet, with the kubeconfig that reaches it.
func member(t *testing.T, id string) *offer.Cluster {
	t.Helper()
	c := offer.Start(t, nil)
	c.State.ID = configv1.ClusterID(id)
	c.Apply()
	return c
}

// blocked is a member that an admin gate keeps from the update.
func blocked(t *testing.T, id string) *offer.Cluster {
	t.Helper()
	c := member(t, id)
	c.State.Gates["ack-4.18-api"] = "Migrate the clients."
	c.Apply()
	return c
}

// write writes the kubeconfigs of members into a directory, as NAME.kubeconfig.
func write(t *testing.T, members map[string]string) string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	directory := t.TempDir()
	for name, kubeconfig := range members {
		text, err := os.ReadFile(kubeconfig)
		if err == nil {
			err = os.WriteFile(filepath.Join(directory, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// tableOf is the table that a command has printed.
func tableOf(t *testing.T, got program.Result) fleet.Table {
	t.Helper()
	var table fleet.Table
	if err := json.Unmarshal([]byte(got.Stdout), &table); err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", got.Code, err, got.Stdout, got.Stderr)
	}
	return table
}

// states are the states of the members by the names of their kubeconfigs.
func states(table fleet.Table) map[string]string {
	all := map[string]string{}
	for _, row := range table.Rows {
		all[filepath.Base(row.Cluster.Source)] = string(row.State)
	}
	return all
}

func TestTable(t *testing.T) {
	ready, gated := member(t, "00000000-0000-4000-8000-000000000001"), blocked(t, "00000000-0000-4000-8000-000000000002")
	unread := filepath.Join(t.TempDir(), "unread")
	if err := os.WriteFile(unread, []byte(
		`{"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		members map[string]string
		args    []string
		code    int
		// states are those of the members that answer for the update, and decision is that of the table.
		states   map[string]string
		decision string
	}{
		"Clear": {
			reason: "nothing is known against the update", members: map[string]string{"a": ready.Kubeconfig},
			args: []string{"--to", offer.To}, code: exit.Ready, states: map[string]string{"a": "Clear"}, decision: "NothingKnown",
		},
		"Blocked": {
			reason: "the worst cluster decides", members: map[string]string{"a": ready.Kubeconfig, "b": gated.Kubeconfig},
			args: []string{"--to", offer.To}, code: exit.Blocked, states: map[string]string{"a": "Clear", "b": "Blocked"}, decision: "Blocked",
		},
		"Unread": {
			reason: "a cluster that does not answer is not clear", members: map[string]string{"a": ready.Kubeconfig, "c": unread},
			args: []string{"--to", offer.To}, code: exit.Undecided, states: map[string]string{"a": "Clear", "c": "Unreachable"},
			decision: "Undecided",
		},
		"Worst": {
			reason: "one that is blocked is worse than one that does not answer", members: map[string]string{
				"b": gated.Kubeconfig,
				"c": unread,
			}, args: []string{"--to", offer.To}, code: exit.Blocked, states: map[string]string{"b": "Blocked", "c": "Unreachable"},
			decision: "Blocked",
		},
		"Best": {reason: "without a version each has its best update", members: map[string]string{
			"a": ready.Kubeconfig,
			"b": gated.Kubeconfig,
		}, code: exit.Blocked, states: map[string]string{"a": "Clear", "b": "Blocked"}, decision: "Blocked"},
		"Updated": {
			reason: "of a cluster that runs the release nothing is evaluated", members: map[string]string{"a": ready.Kubeconfig},
			args: []string{"--to", offer.From}, code: exit.Undecided, states: map[string]string{"a": "Updated"}, decision: "Undecided",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(ready.Writes()) + len(gated.Writes())
			got := program.Call(t, append([]string{"fleet", "targets", "--kubeconfigs", write(t, tc.members), "-o", "json", "--quiet"},
				tc.args...)...)
			table := tableOf(t, got)
			if got.Code != tc.code || string(table.Decision) != tc.decision || !maps.Equal(states(table), tc.states) {
				t.Errorf("%s: exit code %d, %s, %v; want %d, %s, %v\n%s", tc.reason, got.Code, table.Decision, states(table), tc.code, tc.decision,
					tc.states, got.Stderr)
			}
			if len(ready.Writes())+len(gated.Writes()) > before {
				t.Errorf("%s: a list has written to a cluster", tc.reason)
			}
		})
	}
}

// A cause has the clusters that it keeps from the update, and what frees them.
func TestCausesOfAFleet(t *testing.T) {
	gated, too := blocked(t, "00000000-0000-4000-8000-000000000002"), blocked(t, "00000000-0000-4000-8000-000000000003")
	directory := write(t, map[string]string{"b": gated.Kubeconfig, "c": too.Kubeconfig})
	html := filepath.Join(t.TempDir(), "fleet.html")
	got := program.Call(t, "fleet", "targets", "--kubeconfigs", directory, "--to", offer.To, "--quiet", "--report", "html="+html)
	for _, part := range []string{"AdminAck-ack-4.18-api", "Migrate the clients.", "oc preflight ack ack-4.18-api", "2 clusters: 2 Blocked"} {
		if !strings.Contains(got.Stdout, part) {
			t.Errorf("the table lacks %q:\n%s", part, got.Stdout)
		}
	}
	if text, err := os.ReadFile(html); err != nil || !strings.Contains(string(text), "AdminAck-ack-4.18-api") {
		t.Errorf("the page lacks the cause: %v", err)
	}
	short := program.Call(t, "fleet", "targets", "--kubeconfigs", directory, "--to", offer.To, "--quiet", "-o", "short")
	if want := "Fleet to 4.19.1: Blocked; 2 clusters: 2 Blocked\n"; short.Code != exit.Blocked || short.Stdout != want {
		t.Errorf("exit code %d, %q; want %q", short.Code, short.Stdout, want)
	}
}

// The same cluster twice is one row, and the table states so: it would count twice.
func TestAClusterTwice(t *testing.T) {
	c := member(t, "00000000-0000-4000-8000-000000000001")
	got := program.Call(t, "fleet", "targets", "--kubeconfigs", write(t, map[string]string{"a": c.Kubeconfig, "b": c.Kubeconfig}), "-o",
		"json", "--quiet")
	if table := tableOf(t, got); len(table.Rows) != 1 || len(table.Notices) == 0 {
		t.Errorf("%d rows, want one, and a notice: %q", len(table.Rows), table.Notices)
	}
}

// "fleet run" records a run in each cluster; with --results a cluster that has a result is not asked again.
func TestRunOfAFleet(t *testing.T) {
	ready, gated := member(t, "00000000-0000-4000-8000-000000000001"), blocked(t, "00000000-0000-4000-8000-000000000002")
	directory, kept := write(t, map[string]string{"a": ready.Kubeconfig, "b": gated.Kubeconfig}), filepath.Join(t.TempDir(), "results")
	ask := func() fleet.Table {
		got := program.Call(t, "fleet", "run", "--kubeconfigs", directory, "--to", offer.To, "--results", kept, "-o", "json", "--quiet")
		if got.Code != exit.Blocked {
			t.Errorf("exit code %d, want %d\n%s", got.Code, exit.Blocked, got.Stderr)
		}
		return tableOf(t, got)
	}
	if got, want := states(ask()), map[string]string{"a": "Ready", "b": "Blocked"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	again := ask()
	for _, row := range again.Rows {
		if !strings.HasPrefix(row.Evidence, "result of ") {
			t.Errorf("%s was asked again", row.Cluster.Name)
		}
	}
	for name, c := range map[string]*offer.Cluster{"a": ready, "b": gated} {
		if stored, err := records.In(t, c.Config()).Store.List(t.Context()); err != nil || len(stored) != 1 {
			t.Errorf("%s: %d runs are recorded, want one: %v", name, len(stored), err)
		}
	}
	files, err := filepath.Glob(filepath.Join(kept, "*.report.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%q are kept, want a report of each: %v", files, err)
	}
	if got := program.Call(t, "render", files[0], "-o", "short"); !strings.Contains(got.Stdout, "4.18.3 -> 4.19.1") {
		t.Errorf("a kept report is none: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// What is wrong usage is found out before a cluster is asked: nothing listens at this address.
func TestWrongUsageOfAFleet(t *testing.T) {
	directory := write(t, nil)
	if err := os.WriteFile(filepath.Join(directory, "a"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("kind: AcceptedRisks\napiVersion: preflight.openshift.io/v1alpha1\nrisks: [{risk: RiskA}]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		stated string
	}{
		"NoClusters": {
			reason: "the clusters have to be named", args: []string{"targets"},
			stated: "no clusters are named: write --contexts, --kubeconfigs, --archives, --hive or --hosted",
		},
		"NoVersion": {reason: "a run has one version for all", args: []string{"run", "--kubeconfigs", directory}, stated: "--to is required"},
		"Prefix": {
			reason: "no cluster knows it, and each would be Unreachable",
			args:   []string{"targets", "--kubeconfigs", directory, "--to", "v4.19.1"}, stated: "write --to 4.19.1",
		},
		"Minor": {
			reason: "a version has three numbers", args: []string{"run", "--kubeconfigs", directory, "--to", "4.19"},
			stated: `the version "4.19" is not a semantic version like 4.19.3`,
		},
		"Parallel": {
			reason: "none at a time", args: []string{"targets", "--kubeconfigs", directory, "--max-parallel", "0"},
			stated: "--max-parallel=0: it must be 1 to 200",
		},
		"TooParallel": {
			reason: "more than this machine has connections for",
			args:   []string{"targets", "--kubeconfigs", directory, "--max-parallel", "201"}, stated: "--max-parallel=201: it must be 1 to 200",
		},
		"Timeout": {reason: "no cluster answers in that time", args: []string{
			"targets", "--kubeconfigs", directory, "--cluster-timeout",
			"10ms",
		}, stated: "--cluster-timeout=10ms: it must be at least 1s"},
		"Age": {reason: "no result is that young", args: []string{
			"targets", "--kubeconfigs", directory, "--results", directory,
			"--max-age", "0s",
		}, stated: "--max-age=0s: it must be positive"},
		"Limit": {
			reason: "fewer than none", args: []string{"targets", "--kubeconfigs", directory, "--limit", "-1"},
			stated: "--limit=-1: it must not be negative",
		},
		"Server": {reason: "a flag of one cluster", args: []string{
			"targets", "--kubeconfigs", directory, "--server",
			"https://api.example.com",
		}, stated: "--server: the flag is for one cluster"},
		"Missing": {
			reason: "a path that does not exist", args: []string{"targets", "--kubeconfigs", filepath.Join(directory, "missing")},
			stated: "missing",
		},
		"Accept": {
			reason: "an acceptance has a reason", args: []string{"targets", "--kubeconfigs", directory, "--accept-file", bad},
			stated: `entry 1 ("RiskA"): the entry has no reason`,
		},
		"Format": {
			reason: "a format that tables do not have", args: []string{"targets", "--kubeconfigs", directory, "-o", "xml"},
			stated: `unknown output format "xml"`,
		},
		"Argument": {reason: "a version is a flag", args: []string{"targets", "4.19.1"}, stated: "takes no argument"},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"fleet"}, tc.args...)...)
			if got.Code != exit.BadInput || !strings.Contains(got.Stderr, tc.stated) || got.Stdout != "" {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tc.reason, got.Code, exit.BadInput, tc.stated, got.Stdout, got.Stderr)
			}
		})
	}
}
