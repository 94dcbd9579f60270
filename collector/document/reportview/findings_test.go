package reportview_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// One cause is one entry: what only repeats it is named beneath.
func TestRepeatedFindings(t *testing.T) {
	fail := func(name string, causes ...string) finding.Finding {
		return finding.Finding{
			Finding: preflight.Finding{Name: name, Outcome: preflight.Fail, Reason: "Down", Message: name}, Source: finding.SourceGate, Blocks: true,
			CausedBy: causes,
			Effect:   finding.EffectBlocks, Actions: []finding.Action{finding.Read("oc get %s", name)},
		}
	}
	warn := func(name string) finding.Finding {
		warned := fail(name)
		warned.Outcome, warned.Blocks, warned.Effect = preflight.Warn, false, finding.EffectNone
		return warned
	}
	acked := fail("ack")
	acked.Bypass = &finding.Bypass{By: finding.ByAdminAck}
	for name, tc := range map[string]struct {
		reason   string
		findings []finding.Finding
		want     []string
	}{
		"Chain": {
			reason: "the first cause leads", findings: []finding.Finding{fail("a", "b"), fail("b", "c"), fail("c")},
			want: []string{"c: a b"},
		},
		"Warning": {
			reason: "what blocks leads, with the command about its cause", findings: []finding.Finding{fail("a", "w"), warn("w")},
			want: []string{"a: w $ oc get w"},
		},
		"Several": {
			reason: "each cause is to be fixed", findings: []finding.Finding{fail("a", "b", "c"), fail("b"), fail("c")},
			want: []string{"b: a", "c:"},
		},
		"Absent": {reason: "the cause is not in the report", findings: []finding.Finding{fail("a", "b")}, want: []string{"a:"}},
		"Bypassed": {
			reason: "what was acknowledged is no cause", findings: []finding.Finding{fail("a", "ack"), acked},
			want: []string{"a:", "ack:"},
		},
		"Cycle": {
			reason: "a stored report may be edited", findings: []finding.Finding{fail("a", "b"), fail("b", "a")},
			want: []string{"a:", "b:"},
		},
		"Itself": {reason: "a stored report may be edited", findings: []finding.Finding{fail("a", "a")}, want: []string{"a:"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, block := range (reportview.Report{Report: report.Report{Findings: tc.findings}}).Document(document.View{}).Blocks {
				items, _ := block.(document.Items)
				for _, item := range items.Entries {
					text := item.Names[0] + ":"
					for _, fact := range item.Facts {
						if fact.Lead == "Also:" {
							text += " " + strings.TrimSuffix(fact.Text, " (Down)")
						}
					}
					for _, command := range slices.Compact(item.Commands[min(1, len(item.Commands)):]) {
						text += " $ " + command.Text
					}
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// What a check does not evaluate is listed beside what passed, so that readers can check it. What the author of a Job
// states is not.
func TestNotEvaluated(t *testing.T) {
	skipped := func(source finding.Source) finding.Finding {
		return finding.Finding{
			Finding: preflight.Finding{
				Name: "PlatformConditions", Outcome: preflight.Skipped, Reason: "ConditionNotEvaluated",
				Evidence: map[string]string{reported.NotEvaluated: "Applied, Encrypted"},
			},
			Source: source,
		}
	}
	for source, want := range map[finding.Source][]string{finding.SourceHealth: {"Applied", "Encrypted"}, finding.SourceJob: nil} {
		var got []string
		for _, block := range (reportview.Report{Report: report.Report{Findings: []finding.Finding{skipped(source)}}}).Document(
			document.View{}).Blocks {
			details, _ := block.(document.Details)
			for _, each := range details.Blocks {
				if list, _ := each.(document.List); list.Lead == "NOT EVALUATED" {
					got = append(got, list.Entries...)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", source, diff)
		}
	}
}
