package decide_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
	"github.com/openshift/update-preflight/test/program"
)

// newCluster is a cluster that the program reaches, to which 4.19.1 is available.
func newCluster(t *testing.T, changes ...func(*offer.Cluster)) *offer.Cluster {
	t.Helper()
	c := offer.Start(t, nil)
	for _, change := range changes {
		change(c)
	}
	c.Apply()
	t.Setenv("KUBECONFIG", c.Kubeconfig)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return c
}

// gated has an admin gate before 4.19.
func gated(c *offer.Cluster) { c.State.Gates["ack-4.18-api"] = "Migrate the clients." }

// risky has a conditional update whose risk always applies.
func risky(c *offer.Cluster) {
	c.State.Conditional = []configv1.ConditionalUpdate{{
		Release: configv1.Release{Version: "4.18.9", Image: "r@sha256:" + strings.Repeat("9", 64)},
		Risks: []configv1.ConditionalUpdateRisk{{
			Name: "SomeRisk", Message: "Something fails.", URL: "https://example.com/risk",
			MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
		}},
		Conditions: []metav1.Condition{{
			Type: "Recommended", Status: metav1.ConditionFalse, Reason: "SomeRisk", Message: "Something fails.",
			LastTransitionTime: metav1.Now(),
		}},
	}}
}

// row is what is promised of a call.
type row struct {
	reason  string
	changes []func(*offer.Cluster)
	args    []string
	code    int
	// shown are parts of standard output, and stated of standard error.
	shown, stated []string
	// writes are the writes to the cluster.
	writes []string
}

// verify calls the program for each row.
func verify(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.changes...)
			before := len(c.Writes())
			got := program.Call(t, tc.args...)
			if got.Code != tc.code {
				t.Fatalf("%s: exit code %d, want %d\n%s%s", tc.reason, got.Code, tc.code, got.Stdout, got.Stderr)
			}
			for text, parts := range map[*string][]string{&got.Stdout: tc.shown, &got.Stderr: tc.stated} {
				for _, part := range parts {
					if !strings.Contains(*text, part) {
						t.Errorf("%s: %q is not in\n%s", tc.reason, part, *text)
					}
				}
			}
			if wrote := c.Writes()[before:]; !slices.Equal(wrote, tc.writes) {
				t.Errorf("%s: the cluster got %q, want %q", tc.reason, wrote, tc.writes)
			}
			if tc.code == exit.BadInput && got.Stdout != "" {
				t.Errorf("%s: wrong usage writes to standard output:\n%s", tc.reason, got.Stdout)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	verify(t, map[string]row{
		"List": {reason: "what is listed needs no decision", args: []string{"targets"}, shown: []string{"4.19.1", "Clear"}},
		"Blocked": {
			reason: "the exit code of a list is that of the list", changes: []func(*offer.Cluster){gated}, args: []string{"targets"},
			shown: []string{"4.19.1", "Blocked", "AdminAck-ack-4.18-api"},
		},
		"One": {
			reason: "one update has its findings", changes: []func(*offer.Cluster){gated}, args: []string{"targets", "--to", "4.19.1"},
			code: exit.Blocked, shown: []string{"Migrate the clients.", "oc preflight ack ack-4.18-api"},
		},
		"Clear": {reason: "no finding speaks against it", args: []string{"targets", "--to", "4.19.1"}, shown: []string{"4.19.1", "Clear"}},
		"Risk": {
			reason: "a risk may be accepted", changes: []func(*offer.Cluster){risky}, args: []string{"targets", "--to", "4.18.9"},
			code: exit.Blocked, shown: []string{"SomeRisk", "Something fails.", "--accept SomeRisk"},
		},
		"Accepted": {
			reason: "it was", changes: []func(*offer.Cluster){risky},
			args: []string{"targets", "--to", "4.18.9", "--accept", "SomeRisk"}, shown: []string{"4.18.9"},
		},
		"Name": {reason: "other commands accept the name", args: []string{"targets", "-o", "name"}, shown: []string{"4.19.1\n"}},
		"Unknown": {
			reason: "a version that the cluster does not list", args: []string{"targets", "--to", "4.19.9"}, code: exit.Undecided,
			shown: []string{"4.19.9", "no update that the cluster knows"},
		},
		"Present": {
			reason: "the version that the cluster has needs no update", args: []string{"targets", "--to", offer.From},
			code: exit.BadInput, stated: []string{"the cluster already runs " + offer.From, "after"},
		},
		"Accept": {
			reason: "a file that does not exist", args: []string{"targets", "--accept-file", "missing.yaml"}, code: exit.BadInput,
			stated: []string{"--accept-file", "missing.yaml"},
		},
	})
}

// A script reads the decisions in JSON, whose fields are those of its type.
func TestTargetsForScripts(t *testing.T) {
	newCluster(t, gated, risky)
	got := program.Call(t, "targets", "-o", "json", "--quiet")
	var made report.Targets
	decoder := json.NewDecoder(strings.NewReader(got.Stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&made); err != nil {
		t.Fatalf("%v\n%s%s", err, got.Stdout, got.Stderr)
	}
	decisions := map[string]string{}
	for _, each := range made.Targets {
		decisions[each.Version] = string(each.Verdict.Decision)
	}
	if want := map[string]string{"4.19.1": "Blocked", "4.18.9": "Blocked"}; !maps.Equal(decisions, want) {
		t.Errorf("%v, want %v", decisions, want)
	}
	again := program.Call(t, "targets", "-o", "yaml", "--quiet")
	var same report.Targets
	if err := yaml.Unmarshal([]byte(again.Stdout), &same); err != nil {
		t.Fatal(err)
	}
	made.Time, same.Time = "", ""
	if diff := cmp.Diff(made, same); diff != "" {
		t.Errorf("-JSON +YAML:\n%s", diff)
	}
}

func TestAck(t *testing.T) {
	const acks = "openshift-config/admin-acks"
	verify(t, map[string]row{
		"Gate": {
			reason: "the user sees what they confirm", changes: []func(*offer.Cluster){gated}, args: []string{"ack", "ack-4.18-api"},
			shown:  []string{"ack-4.18-api acknowledged in ConfigMap openshift-config/admin-acks\n"},
			stated: []string{"Migrate the clients."}, writes: []string{"patch configmaps " + acks},
		},
		"DryRun": {
			reason: "the server validates, and the text does not say that it was done", changes: []func(*offer.Cluster){gated},
			args:   []string{"ack", "ack-4.18-api", "--dry-run"},
			shown:  []string{"ack-4.18-api would be acknowledged in ConfigMap openshift-config/admin-acks; nothing was written\n"},
			stated: []string{"Migrate the clients."},
		},
		"Unknown": {
			reason: "a gate that does not exist is mistyped", changes: []func(*offer.Cluster){gated},
			args: []string{"ack", "ack-4.18-apis"}, code: exit.BadInput, stated: []string{"ack-4.18-apis", "ack-4.18-api"},
		},
		"None": {
			reason: "a cluster without gates", args: []string{"ack", "ack-4.18-api"}, code: exit.BadInput,
			stated: []string{"ack-4.18-api"},
		},
		"Forbidden": {
			reason: "the roles for the command are named", code: exit.Failed, args: []string{"ack", "ack-4.18-api"},
			stated: []string{"oc preflight auth ack --bind user:tester"},
			changes: []func(*offer.Cluster){gated, func(c *offer.Cluster) {
				c.Deny(func(_ string, request apiserver.Request) bool {
					return request.Name == "admin-acks" && request.Verb == "patch"
				})
			}},
		},
	})
}

// A dry run leaves the gate closed, however kubectl would write it; "none" is no dry run.
func TestAckDryRun(t *testing.T) {
	newCluster(t, gated)
	for _, step := range []struct {
		args []string
		code int
	}{
		{[]string{"ack", "ack-4.18-api", "--dry-run"}, exit.Ready},
		{[]string{"ack", "ack-4.18-api", "--dry-run=client"}, exit.Ready},
		{[]string{"ack", "ack-4.18-api", "--dry-run=server"}, exit.Ready},
		{[]string{"targets", "--to", "4.19.1"}, exit.Blocked},
		{[]string{"ack", "ack-4.18-api", "--dry-run=none"}, exit.Ready},
		{[]string{"targets", "--to", "4.19.1"}, exit.Ready},
	} {
		if got := program.Call(t, step.args...); got.Code != step.code {
			t.Fatalf("%q: exit code %d, want %d\n%s%s", step.args, got.Code, step.code, got.Stdout, got.Stderr)
		}
	}
}

// A verdict of "run" after the acknowledgement is another one.
func TestAckOpensTheGate(t *testing.T) {
	newCluster(t, gated)
	for _, step := range []struct {
		args []string
		code int
	}{
		{[]string{"targets", "--to", "4.19.1"}, exit.Blocked},
		{[]string{"ack", "ack-4.18-api"}, exit.Ready},
		{[]string{"targets", "--to", "4.19.1"}, exit.Ready},
		{[]string{"ack", "ack-4.18-api"}, exit.Ready},
	} {
		if got := program.Call(t, step.args...); got.Code != step.code {
			t.Fatalf("%q: exit code %d, want %d\n%s%s", step.args, got.Code, step.code, got.Stdout, got.Stderr)
		}
	}
}

// The API server in memory keeps each field, as one with the feature gate ClusterUpdateAcceptRisks does.
func TestAccept(t *testing.T) {
	c := newCluster(t, risky)
	for _, step := range []struct {
		args   []string
		code   int
		shown  string
		stated string
	}{
		{args: []string{"accept", "SomeRisk", "--dry-run"}, shown: "Nothing was written; ClusterVersion would accept these risks: SomeRisk\n"},
		{args: []string{"accept", "SomeRisk"}, shown: "ClusterVersion now accepts these risks: SomeRisk\n"},
		{args: []string{"accept", "SomeRisk"}, shown: "ClusterVersion is unchanged; it accepts these risks: SomeRisk\n"},
		{
			args: []string{"accept", "SomeRsik"}, shown: "ClusterVersion now accepts these risks: SomeRisk, SomeRsik\n",
			stated: "warning: no update that ClusterVersion lists has the risk SomeRsik; they have SomeRisk.",
		},
		{args: []string{"accept", "SomeRsik-"}, shown: "ClusterVersion now accepts these risks: SomeRisk\n"},
		{args: []string{"accept", "OtherRisk", "--replace"}, shown: "ClusterVersion now accepts these risks: OtherRisk\n", stated: "OtherRisk"},
		{args: []string{"accept", "--clear"}, shown: "ClusterVersion now accepts these risks: none\n"},
		{args: []string{"accept", "somerisk"}, code: exit.BadInput, stated: `illegal risk "somerisk"`},
	} {
		got := program.Call(t, step.args...)
		if got.Code != step.code || got.Stdout != step.shown || !strings.Contains(got.Stderr, step.stated) {
			t.Errorf("%q: exit code %d\n%s%s", step.args, got.Code, got.Stdout, got.Stderr)
		}
	}
	for _, write := range c.Writes() {
		if strings.HasPrefix(write, "patch") && write != "patch clusterversions version" {
			t.Errorf("an acceptance has written %q", write)
		}
	}
}

// What the cluster accepts counts for the targets.
func TestAcceptedByTheCluster(t *testing.T) {
	newCluster(t, risky)
	if got := program.Call(t, "targets", "--to", "4.18.9"); got.Code != exit.Blocked {
		t.Fatalf("exit code %d before\n%s", got.Code, got.Stdout)
	}
	if got := program.Call(t, "accept", "SomeRisk"); got.Code != exit.Ready {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if got := program.Call(t, "targets", "--to", "4.18.9"); got.Code != exit.Ready {
		t.Errorf("exit code %d after\n%s", got.Code, got.Stdout)
	}
}

func TestExplain(t *testing.T) {
	verify(t, map[string]row{
		"Reason": {
			reason: "the reason of a finding", args: []string{"explain", "AdminAckRequired"},
			shown: []string{"AdminAckRequired", "oc preflight ack"},
		},
		"Finding": {reason: "a finding by its whole name", args: []string{"explain", "AdminAck-ack-4.18-api"}, shown: []string{"AdminAck"}},
		"JSON": {
			reason: "a script reads the fields", args: []string{"explain", "AdminAckRequired", "-o", "json"},
			shown: []string{`"AdminAckRequired"`},
		},
		"Unknown": {
			reason: "a word that is none leads to the list", args: []string{"explain", "AdminAckRequierd"}, code: exit.BadInput,
			stated: []string{"AdminAckRequierd", "oc preflight explain"},
		},
		"Two": {
			reason: "one at a time", args: []string{"explain", "One", "Two"}, code: exit.BadInput,
			stated: []string{"takes one reason or name, but got 2 arguments"},
		},
		"Format": {
			reason: "a format that pages do not have", args: []string{"explain", "AdminAckRequired", "-o", "junit"}, code: exit.BadInput,
			stated: []string{`unknown output format "junit"`},
		},
		"All": {
			reason: "every reason is listed", args: []string{"explain"},
			shown: []string{"AdminAckRequired", "UnauthenticRecord", "NotInArchive"},
		},
	})
}

// graph is an update graph from the release of the cluster.
const graph = `{"nodes":[
 {"version":"4.18.3","payload":"r@sha256:1111111111111111111111111111111111111111111111111111111111111111"},
 {"version":"4.19.1","payload":"r@sha256:2222222222222222222222222222222222222222222222222222222222222222"},
 {"version":"4.20.2","payload":"r@sha256:3333333333333333333333333333333333333333333333333333333333333333"}],
 "edges":[[0,1],[1,2]]}`

func TestPlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "eus-4.20.json")
	if err := os.WriteFile(file, []byte(graph), 0o600); err != nil {
		t.Fatal(err)
	}
	verify(t, map[string]row{
		"Path": {
			reason: "the updates in order", args: []string{"plan", "--to", "4.20.2", "--graph", file}, code: exit.Ready,
			shown: []string{"4.18.3", "4.19.1", "4.20.2"},
		},
		"Gate": {
			reason: "what blocks the first update blocks the path", changes: []func(*offer.Cluster){gated},
			args: []string{"plan", "--to", "4.20.2", "--graph", file}, code: exit.Blocked, shown: []string{"AdminAck-ack-4.18-api"},
		},
		"NoPath": {
			reason: "a release that no channel has", args: []string{"plan", "--to", "4.21.0", "--graph", file}, code: exit.BadInput,
			stated: []string{"4.21.0"},
		},
		"Graph": {
			reason: "a graph that does not exist", args: []string{"plan", "--to", "4.20.2", "--graph", "missing.json"},
			code: exit.BadInput, stated: []string{"--graph", "missing.json"},
		},
		"Minor": {
			reason: "a minor version has two numbers", args: []string{"plan", "--to-minor", "4", "--graph", file}, code: exit.BadInput,
			stated: []string{"--to-minor"},
		},
		"NoChannel": {
			reason:  "the update service needs a channel",
			changes: []func(*offer.Cluster){func(c *offer.Cluster) { c.State.Upstream = "http://127.0.0.1:1/graph" }},
			args:    []string{"plan", "--to", "4.20.2", "--no-cache"}, code: exit.Failed, stated: []string{"127.0.0.1:1"},
		},
		"Follow": {
			reason: "a plan that does not exist", args: []string{"plan", "--follow", "missing.json"}, code: exit.BadInput,
			stated: []string{"missing.json"},
		},
	})
}

// What is to be mirrored is written for oc-mirror, without a cluster, and nothing where there is no path.
func TestImageSetOfAPlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "eus-4.20.json")
	if err := os.WriteFile(file, []byte(graph), 0o600); err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(t.TempDir(), "mirror")
	none := program.Call(t, "plan", "--from", "4.18.3", "--to", "4.21.0", "--graph", file, "-o", "imageset", "--dir", directory)
	if _, err := os.Stat(directory); none.Code != exit.BadInput || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("exit code %d, and the directory was made: %v", none.Code, err)
	}
	got := program.Call(t, "plan", "--from", "4.18.3", "--to", "4.20.2", "--graph", file, "-o", "imageset", "--dir", directory)
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if got.Code != exit.Ready || err != nil || len(files) == 0 {
		t.Fatalf("exit code %d, files %q, %v\n%s", got.Code, files, err, got.Stderr)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "kind: ImageSetConfiguration") || !strings.Contains(got.Stdout, path+"\n") {
			t.Errorf("%s is no configuration, or is not named: %v\n%s", path, err, text)
		}
	}
}

// A rehearsal of an archive is never Clear where the archive lacks what the drains depend on.
func TestDrainPlan(t *testing.T) {
	archive := []string{"drain-plan", "--archive", "../../../examples/archive", "--quiet"}
	for name, tc := range map[string]struct {
		reason, output, error string
		args                  []string
		code                  int
	}{
		"Text": {reason: "the pools, their nodes in order, and the decision", output: "master: node-0 > node-1 > node-2", code: exit.Undecided},
		"JSON": {reason: "for a script", args: []string{"-o", "json"}, output: `"outcome": "Unknown"`, code: exit.Undecided},
		"Node": {reason: "one node of the pool", args: []string{"--node", "node-1"}, output: "node-1", code: exit.Undecided},
		"NoNode": {
			reason: "the error has the nodes", args: []string{"--node", "none"},
			error: `there is no node named "none"; the nodes are node-0, node-1, node-2`, code: exit.BadInput,
		},
		"NoPool": {
			reason: "the error has the pools", args: []string{"--pool", "none"},
			error: `there is no pool with nodes named "none"; the pools are master`, code: exit.BadInput,
		},
		"Format": {
			reason: "the error has the formats", args: []string{"-o", "junit"}, error: `unknown output format "junit"`,
			code: exit.BadInput,
		},
		"Hosted": {
			reason: "a hosted cluster has a namespace", args: []string{"--hosted-cluster", "x"}, error: "it must be NAMESPACE/NAME",
			code: exit.BadInput,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, slices.Concat(archive, tc.args)...)
			if got.Code != tc.code || !strings.Contains(got.Stdout, tc.output) || !strings.Contains(got.Stderr, tc.error) {
				t.Errorf("%s: exit code %d, want %d with %q and %q:\n%s%s", tc.reason, got.Code, tc.code, tc.output, tc.error, got.Stdout, got.Stderr)
			}
			if tc.error != "" && got.Stdout != "" {
				t.Errorf("%s: wrong usage has a document:\n%s", tc.reason, got.Stdout)
			}
		})
	}
}
