package finding_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// many are drafts of one outcome.
type many struct {
	outcome preflight.Outcome
	count   int
}

// drafts are those of each outcome, in this order; described counts those that are
// described.
func drafts(described *int, outcomes []many) []finding.Draft {
	var all []finding.Draft
	for _, of := range outcomes {
		for i := range of.count {
			all = append(all, finding.Draft{Outcome: of.outcome, Describe: func() finding.Finding {
				*described++
				return finding.Reported(gap.Proven("a test"), of.outcome, finding.ReportedReason("Reason"),
					"message").Named(fmt.Sprintf("%s%d", of.outcome, i))
			}})
		}
	}
	return all
}

func TestBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		drafts []many
		want   map[string]preflight.Outcome // the first and the last finding, by name
		last   string                       // the message of the last finding
		count  int
	}{
		"None": {reason: "no drafts, no findings", want: map[string]preflight.Outcome{}},
		"Few": {
			reason: "sorted, in their order otherwise", drafts: []many{{preflight.Pass, 2}, {preflight.Fail, 2}}, count: 4,
			want: map[string]preflight.Outcome{"Fail0": preflight.Fail, "Pass1": preflight.Pass}, last: "message",
		},
		"Exact": {
			reason: "50 are listed", drafts: []many{{preflight.Warn, 50}}, count: 50,
			want: map[string]preflight.Outcome{"Warn0": preflight.Warn, "Warn49": preflight.Warn}, last: "message",
		},
		"Many": {
			reason: "the others are counted by outcome, and have the outcome of the worst of them",
			drafts: []many{{preflight.Pass, 7}, {preflight.Warn, 40}, {preflight.Unknown, 30}}, count: 51,
			want: map[string]preflight.Outcome{"Unknown0": preflight.Unknown, "": preflight.Warn},
			last: "27 more findings besides the 50 listed: 20 Warn, 7 Pass",
		},
	} {
		t.Run(name, func(t *testing.T) {
			described := 0
			findings := finding.Bounded(drafts(&described, tc.drafts))
			got := map[string]preflight.Outcome{}
			if len(findings) > 0 {
				first, last := findings[0], findings[len(findings)-1]
				got[first.Name], got[last.Name] = first.Outcome, last.Outcome
				if last.Message != tc.last {
					t.Errorf("%s: the last message is %q, want %q", tc.reason, last.Message, tc.last)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(findings) != tc.count {
				t.Errorf("%s: %d findings, want %d; -want +got:\n%s", tc.reason, len(findings), tc.count, diff)
			}
			if described > 50 {
				t.Errorf("%s: %d drafts were described, only 50 are listed", tc.reason, described)
			}
		})
	}
}

func TestDrafts(t *testing.T) {
	want := []finding.Finding{
		finding.Fail(finding.ReportedReason("A"), "a"),
		finding.Pass(gap.Proven("a test"), finding.ReportedReason("B"), "b"),
	}
	if diff := cmp.Diff(want, finding.Bounded(finding.Drafts(want[1], want[0]))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
