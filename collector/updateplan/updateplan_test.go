package updateplan_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/document/planview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/path"
	"github.com/openshift/update-preflight/test/golden"
)

// Tests of: collector/document/planview

// basis is a cluster at a version, with two pools, to which one risk applies.
func basis(t *testing.T, from string, channels ...string) updateplan.Basis {
	t.Helper()
	var graphs []*graph.Graph
	for _, channel := range channels {
		content, err := os.ReadFile(filepath.Join("graph", "testdata", channel+".json"))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := graph.Parse(channel, content)
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, parsed)
	}
	united, err := graph.Union(graphs...)
	if err != nil {
		t.Fatal(err)
	}
	return updateplan.Basis{
		Graph: united, Sources: channels, From: from, Architecture: "amd64", Channel: "stable-4.16", Cluster: "c1",
		Now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), ToolVersion: "test",
		Accepted: func(string) map[string]string { return map[string]string{"OVNEgressIPFailure": "--accept"} },
		Assess: func(risk graph.Risk) updateplan.Assessment {
			switch risk.Name {
			case "ConsoleEnabledTargetDownAlert":
				return updateplan.Assessment{Applies: updateplan.True, EvaluatedBy: updateplan.CVO}
			case "WhereaboutsControllerCreateContainerError":
				return updateplan.Assessment{
					Applies: updateplan.Unknown, EvaluatedBy: updateplan.Preflight, Reason: "NoMonitoring",
					Detail: "this cluster has no monitoring",
				}
			}
			return updateplan.Assessment{Applies: updateplan.False, EvaluatedBy: updateplan.Preflight}
		},
		Rollout: updateplan.Rollout{
			Model: rollout.Documented(3, ""), Basis: []string{"The numbers come from the documentation."},
			Pools: []updateplan.Nodes{
				{Name: "infra", Nodes: 3, Parallel: 1, Kubelet: 29},
				{Name: "worker", Nodes: 12, Parallel: 2, Kubelet: 28, Paused: true},
			},
			ProlongedBy: []string{"DaemonSet openshift-multus/multus replaces one pod at a time (maxUnavailable 1) on 250 nodes: about 80 minutes"},
			Notices:     []string{"a limitation that follows from the topology"},
		},
	}
}

func solve(t *testing.T, b updateplan.Basis, to string) updateplan.Plan {
	t.Helper()
	paths, err := b.Paths(to)
	if err != nil {
		t.Fatal(err)
	}
	made, err := updateplan.New(b, paths)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func write(t *testing.T, made updateplan.Plan, output string) string {
	t.Helper()
	var text bytes.Buffer
	if err := format.Write(&text, output, planview.Plan{Plan: made}, format.Style{Width: 80, Details: true}); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, from, to string
		channels         []string
		decision         updateplan.Decision
		all              bool
		drains           map[string]rollout.Range
	}{
		"fewest": {
			reason: "every risk applies: the path with the fewest updates has more open risks", from: "4.12.28", to: "4.14.16",
			channels: []string{"eus-4.14"}, decision: updateplan.OpenRisks, all: true,
		},
		"drains": {
			reason: "the drains of pool worker wait, and one may take long", from: "4.16.27", to: "4.18.52", channels: []string{"eus-4.18"},
			decision: updateplan.Clear,
			drains:   map[string]rollout.Range{"worker": {Expected: 20 * time.Minute, High: 25 * time.Hour}},
		},
		"risks": {
			reason: "a risk that applies is on every path", from: "4.16.27", to: "4.18.17", channels: []string{"eus-4.18"},
			decision: updateplan.OpenRisks,
		},
		"clear": {
			reason: "the path has no conditional update", from: "4.16.27", to: "4.18.52", channels: []string{"eus-4.18"},
			decision: updateplan.Clear,
		},
		"unknown": {
			reason: "the only open risk could not be evaluated", from: "4.17.33", to: "4.18.17", channels: []string{"eus-4.18"},
			decision: updateplan.Inconclusive,
		},
		"union": {
			reason: "two windows need the union of channels", from: "4.14.34", to: "4.18.52", channels: []string{"eus-4.16", "eus-4.18"},
			decision: updateplan.Clear,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject := basis(t, tc.from, tc.channels...)
			subject.Rollout.Model.Drains = tc.drains
			if tc.all {
				subject.Assess = func(graph.Risk) updateplan.Assessment {
					return updateplan.Assessment{Applies: updateplan.True, EvaluatedBy: updateplan.CVO}
				}
			}
			made := solve(t, subject, tc.to)
			if made.Decision != tc.decision {
				t.Errorf("%s: the decision is %s, want %s", tc.reason, made.Decision, tc.decision)
			}
			for _, output := range []string{"text", "json", "markdown", "html", "imageset", "images"} {
				expect(t, name+"."+output, write(t, made, output))
			}
			for _, output := range []string{"text", "json", "yaml", "markdown", "html", "images"} {
				if diff := cmp.Diff(write(t, made, output), write(t, stored(t, made), output)); diff != "" {
					t.Errorf("%s: the stored plan as %s: -plan +stored:\n%s", name, output, diff)
				}
			}
			if err := format.Write(io.Discard, "imageset", planview.Plan{Plan: stored(t, made)}, format.Style{}); err == nil {
				t.Errorf("%s: the stored plan has no configurations of oc-mirror", name)
			}
		})
	}
}

// TestAlternatives writes a path that is longer than the diagram, and alternatives.
func TestAlternatives(t *testing.T) {
	t.Parallel()
	made := solve(t, basis(t, "4.16.27", "eus-4.18"), "4.18.17")
	made.Alternatives = []updateplan.Alternative{
		{Name: updateplan.FewestUpdates, Versions: []string{"4.16.27", "4.17.33", "4.18.17"}, Updates: 2, OpenRisks: 3},
		{Name: updateplan.Recommended, Versions: []string{"4.16.27", "4.16.67", "4.17.56", "4.18.17"}, Updates: 3},
	}
	last := made.Updates[1]
	last.Findings = []finding.Finding{
		finding.Fail(finding.ReportedReason("AdminAckRequired"),
			"Remove the beta APIs.").Named("AdminAck-ack-4.17-apis").From(finding.SourceGate).
			Remedy("Acknowledge the gate.").Do(finding.Read("oc preflight ack ack-4.17-apis")),
		finding.Fail(finding.ReportedReason("OLM"),
			"The operator has a maximum version of 4.17.").Named("OLMOperators").From(finding.SourceGate).Documented("https://example.com/olm"),
		finding.Unknown(finding.ReportedReason("Timeout"), "The metrics could not be read.").Named("RemovedAPIs").From(finding.SourceGate),
	}
	made.Updates = append(made.Updates, slices.Repeat([]updateplan.Update{last}, 8)...)
	expect(t, "alternatives.html", write(t, made, "html"))
}

func expect(t *testing.T, name, got string) {
	t.Helper()
	golden.Compare(t, "testdata/"+name, got)
	if !strings.HasSuffix(name, ".text") {
		return
	}
	folded, _, _ := strings.Cut(got, "For a change ticket:") // whose lines are pasted whole
	for line := range strings.Lines(folded) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 90 || utf8.RuneCountInString(line) > 81 &&
			!strings.Contains(line, "sha256:") {
			t.Errorf("%s: a line has more than 80 characters: %s", name, line)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, from string
		target       updateplan.Target
		want         path.Cause
		remedy       string
	}{
		"Source": {
			reason: "the present release is in no channel", from: "4.16.68", target: updateplan.Target{Version: "4.18.17"},
			want: path.SourceNotInChannel, remedy: "4.18.17 is in",
		},
		"Head": {reason: "the same without a named target", from: "4.16.68", want: path.SourceNotInChannel, remedy: "stable-4.16"},
		"Target": {
			reason: "the target is in no channel", from: "4.16.27", target: updateplan.Target{Version: "4.20.1"},
			want: path.TargetNotInChannel, remedy: "eus-4.20",
		},
		"Minor": {
			reason: "no release of the minor version", from: "4.18.17", target: updateplan.Target{Minor: "4.20"},
			want: path.TargetNotInChannel, remedy: "4.18.17 is also in candidate-4.20",
		},
		"NoPath": {
			reason: "the source was published after the target", from: "4.16.50", target: updateplan.Target{Version: "4.18.20"},
			want: path.NoPath, remedy: "stable-4.18",
		},
		"NotNewer": {
			reason: "the target is older", from: "4.18.17", target: updateplan.Target{Version: "4.16.27"}, want: path.TargetNotNewer,
			remedy: "newer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := basis(t, tc.from, "eus-4.18")
			to, _, err := b.Resolve(tc.target)
			if err == nil {
				_, err = b.Paths(to)
			}
			failed, _ := err.(*updateplan.Unreachable) //nolint:errorlint // it is documented
			if failed == nil || failed.Cause.Reason != tc.want || !strings.Contains(failed.Remediation, tc.remedy) {
				t.Fatalf("%s: got %+v, want %s with %q", tc.reason, failed, tc.want, tc.remedy)
			}
			expect(t, "nopath-"+strings.ToLower(name)+".text", write(t, updateplan.WithoutPath(b, failed), "text"))
			expect(t, "nopath-"+strings.ToLower(name)+".html", write(t, updateplan.WithoutPath(b, failed), "html"))
			expect(t, "nopath-"+strings.ToLower(name)+".json", write(t, updateplan.WithoutPath(b, failed), "json"))
		})
	}
}

// stored is a plan as a file has it.
func stored(t *testing.T, made updateplan.Plan) updateplan.Plan {
	t.Helper()
	read, err := updateplan.Read(strings.NewReader(write(t, made, "json")))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, at string
		change     func(*updateplan.Basis)
		rest       []string
		want       []updateplan.ChangeReason
	}{
		"Same":     {reason: "nothing changed", at: "4.16.27", rest: []string{"4.16.27", "4.17.33", "4.18.17"}},
		"OneLater": {reason: "the rest of the plan holds", at: "4.17.33", rest: []string{"4.17.33", "4.18.17"}},
		"Complete": {reason: "the cluster has the target", at: "4.18.17", rest: []string{"4.18.17"}},
		"Left": {
			reason: "another release was installed", at: "4.17.34", rest: []string{},
			want: []updateplan.ChangeReason{updateplan.LeftPath},
		},
		"Gone": {
			reason: "the update was removed from the graph", at: "4.17.33", rest: []string{"4.17.33", "4.18.17"},
			want: []updateplan.ChangeReason{updateplan.UpdateGone},
			change: func(b *updateplan.Basis) {
				to := b.Graph.Find("4.18.17")
				b.Graph.Updates = slices.DeleteFunc(b.Graph.Updates, func(each graph.Update) bool { return each.To == to })
			},
		},
		"Image": {
			reason: "the release has another image", at: "4.17.33", rest: []string{"4.17.33", "4.18.17"},
			want:   []updateplan.ChangeReason{updateplan.ImageChanged},
			change: func(b *updateplan.Basis) { b.Graph.Releases[b.Graph.Find("4.18.17")].Image = "r@sha256:1" },
		},
		"Risk": {
			reason: "an acceptance has expired", at: "4.17.33", rest: []string{"4.17.33", "4.18.17"},
			want: []updateplan.ChangeReason{updateplan.RiskOpen},
			change: func(b *updateplan.Basis) {
				b.Accepted = func(string) map[string]string { return nil }
				b.Assess = func(graph.Risk) updateplan.Assessment { return updateplan.Assessment{Applies: updateplan.True} }
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := stored(t, solve(t, basis(t, "4.16.27", "eus-4.18"), "4.18.17"))
			b := basis(t, tc.at, "eus-4.18")
			if tc.change != nil {
				tc.change(&b)
			}
			got := b.Compare(before)
			var reasons []updateplan.ChangeReason
			for _, change := range got.Changes {
				reasons = append(reasons, change.Reason)
			}
			if !cmp.Equal(tc.want, reasons) || !cmp.Equal(tc.rest, got.Rest) || got.Holds != (len(tc.want) == 0) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

// Planning again from any version of a plan returns the rest of it.
func TestTheRestOfThePlan(t *testing.T) {
	t.Parallel()
	whole := solve(t, basis(t, "4.14.34", "eus-4.16", "eus-4.18"), "4.18.52")
	for i, each := range whole.Updates {
		rest := solve(t, basis(t, each.From, "eus-4.16", "eus-4.18"), "4.18.52")
		var want, got []string
		for _, update := range whole.Updates[i:] {
			want = append(want, update.To)
		}
		for _, update := range rest.Updates {
			got = append(got, update.To)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from %s: -want +got:\n%s", each.From, diff)
		}
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	b := basis(t, "4.18.17", "eus-4.18")
	made := updateplan.Complete(b, "4.18.17")
	compared := b.Compare(stored(t, solve(t, basis(t, "4.16.27", "eus-4.18"), "4.18.17")))
	made.Comparison = &compared
	want := "Cluster: c1, as of 2026-11-22T12:00:00Z\n\nComplete: the cluster has 4.18.17.\n\nThe stored plan of " +
		"2026-11-22T12:00:00Z still holds.\n\n" +
		"For a change ticket:\nCluster: c1, as of 2026-11-22T12:00:00Z\nMade by: oc-preflight test\nPlan: Complete: the cluster has 4.18.17.\n"
	if diff := cmp.Diff(want, write(t, made, "text")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The decision is that of the first update: what is against a later one is as of the present cluster.
func TestDecisionOfFindings(t *testing.T) {
	t.Parallel()
	fails := finding.Fail(finding.ReportedReason("AdminAckRequired"), "acknowledge it").Named("AdminAck-ack").From(finding.SourceGate)
	unknown := finding.Unknown(finding.ReportedReason("Error"), "it could not be read").Named("RemovedAPI").From(finding.SourceGate)
	warns := finding.Warn(finding.ReportedReason("Soon"), "it is removed later").Named("RemovedAPI").From(finding.SourceGate)
	for name, tc := range map[string]struct {
		reason       string
		first, later []finding.Finding
		want         updateplan.Decision
	}{
		"Nothing": {reason: "nothing is against any update", first: []finding.Finding{warns}, want: updateplan.Clear},
		"Blocked": {reason: "the first update fails a gate", first: []finding.Finding{unknown, fails}, want: updateplan.Blocked},
		"Unknown": {reason: "a gate of the first update is inconclusive", first: []finding.Finding{unknown}, want: updateplan.Undecided},
		"Later": {
			reason: "the cluster will have changed, but it is not clear", later: []finding.Finding{fails},
			want: updateplan.LaterFindings,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			subject := basis(t, "4.16.27", "eus-4.18")
			path := solve(t, subject, "4.18.52").Updates
			subject.Findings = map[string][]finding.Finding{path[0].To: tc.first, path[1].To: tc.later}
			made := solve(t, subject, "4.18.52")
			if made.Decision != tc.want {
				t.Errorf("%s: the decision is %s, want %s", tc.reason, made.Decision, tc.want)
			}
			if text := write(t, made, "text"); !strings.Contains(text, "\n\n"+string(tc.want)+": ") {
				t.Errorf("%s: %s", tc.reason, text)
			}
			if again := stored(t, made); again.Decision != tc.want {
				t.Errorf("the stored plan is %s, want %s", again.Decision, tc.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, content, want string }{
		"NotJSON": {reason: "the file is no document", content: "x", want: "not JSON"},
		"Report": {
			reason:  "the document is of another kind",
			content: `{"apiVersion":"preflight.openshift.io/v1alpha1","kind":"PreflightReport"}`, want: "PreflightReport",
		},
		"Detached": {
			reason:  "the updates do not begin at the source",
			content: head + `"from":"4.1.0","to":"4.3.0","updates":[{"from":"4.2.0","to":"4.3.0"}]}`, want: "contradicts itself",
		},
		"Short": {
			reason:  "the updates do not end at the target",
			content: head + `"from":"4.1.0","to":"4.3.0","updates":[{"from":"4.1.0","to":"4.2.0"}]}`, want: "do not end",
		},
		"NoCause": {reason: "a target without a path has a cause", content: head + `"decision":"NoPath"}`, want: "contradicts itself"},
		"NoPath": {
			reason:  "a target without a path has no updates",
			content: head + `"decision":"NoPath","noPath":{"reason":"NoPath"},"updates":[{}]}`, want: "contradicts itself",
		},
		"Risk": {
			reason: "the decision is not that of its risks", content: head +
				`"decision":"Clear","from":"4.1.0","to":"4.2.0","updates":[{"from":"4.1.0","to":"4.2.0","risks":[{"name":"A","applies":"True","open":true}]}]}`,
			want: "its risks and findings make it OpenRisks",
		},
		"Large": {reason: "the file is too large", content: strings.Repeat(" ", 16<<20+1), want: "larger than"},
		"Wide": {
			reason: "the plan has too many pools", content: head + `"decision":"Clear","pools":[{}` + strings.Repeat(",{}", 200) + `]}`,
			want: "201 pools",
		},
		"Long": {
			reason: "the plan has too many updates", content: head + `"updates":[{}` + strings.Repeat(",{}", 1000) + `]}`,
			want: "1001 updates",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := updateplan.Read(strings.NewReader(tc.content)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

const head = `{"apiVersion":"preflight.openshift.io/v1alpha1","kind":"UpdatePlan",`

func FuzzRead(f *testing.F) {
	f.Add(head + `"from":"4.1.0","to":"4.2.0","updates":[{"from":"4.1.0","to":"4.2.0"}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		read, err := updateplan.Read(strings.NewReader(content))
		if err != nil {
			return
		}
		if _, err := json.Marshal(read); err != nil {
			t.Errorf("%q was read, and cannot be written: %v", content, err)
		}
		for _, output := range format.Names(planview.Plan{}) {
			if output == "imageset" {
				continue // a plan that was read has none
			}
			if err := format.Write(io.Discard, output, planview.Plan{Plan: read}, format.Style{}); err != nil {
				t.Error(err)
			}
		}
	})
}
