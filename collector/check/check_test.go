package check_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestExamine(t *testing.T) {
	failed := errors.New("read failed")
	returns := func(err error, findings ...finding.Finding) func(context.Context, check.Subject) ([]finding.Finding, error) {
		return func(context.Context, check.Subject) ([]finding.Finding, error) { return findings, err }
	}
	type result struct {
		Reason         string
		Outcome        preflight.Outcome
		Blocks         bool
		BlockedTargets []string
	}
	for name, tc := range map[string]struct {
		reason string
		to     string
		run    func(context.Context, check.Subject) ([]finding.Finding, error)
		want   []result
		err    error
	}{
		"NotConcerned": {
			reason: "a check does not run for updates that it does not concern", to: "4.18.9",
			run:  func(context.Context, check.Subject) ([]finding.Finding, error) { panic("the check ran") },
			want: []result{{Reason: "NotConcerned", Outcome: preflight.Skipped}},
		},
		"Blocks": {
			reason: "failures and inconclusive findings block the target", to: "4.19.0",
			run: returns(nil, finding.Fail(finding.ReportedReason("A"), "a"), finding.Unknown(finding.ReportedReason("B"), "b")),
			want: []result{
				{Reason: "A", Outcome: preflight.Fail, Blocks: true, BlockedTargets: []string{"4.19.0"}},
				{Reason: "B", Outcome: preflight.Unknown, Blocks: true, BlockedTargets: []string{"4.19.0"}},
			},
		},
		"Error": {
			reason: "findings are kept beside an error", to: "4.19.0",
			run: returns(failed, finding.Pass(gap.Proven("a test"), finding.ReportedReason("A"), "a")), err: failed,
			want: []result{{Reason: "A", Outcome: preflight.Pass}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := update.Parse("4.18.3", tc.to)
			if err != nil {
				t.Fatal(err)
			}
			c := check.Check{Name: "Check", Kind: finding.SourceGate, Concerns: update.Update.LeavesMinor, Run: tc.run}
			findings, err := c.Examine(t.Context(), check.Subject{Update: u})
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.err)
			}
			var got []result
			for _, f := range findings {
				got = append(got, result{f.Reason, f.Outcome, f.Blocks, f.BlockedTargets})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReads(t *testing.T) {
	a, b := check.Get("", "configmaps", "ns", "name"), check.List("apps", "deployments")
	got := check.Reads([]check.Check{{Reads: []access.Request{a}}}, []check.Check{{}, {Reads: []access.Request{b}}})
	if diff := cmp.Diff(access.Needs{Optional: []access.Request{a, b}}, got); diff != "" {
		t.Errorf("the reads of all checks are optional permissions: -want +got:\n%s", diff)
	}
}

func TestStale(t *testing.T) {
	object := finding.Object{Kind: "MachineSet", Namespace: "ns", Name: "a"}
	if f, stale := check.Stale(object, 2, 2); stale {
		t.Errorf("a status of the present generation is stale: %+v", f)
	}
	f, stale := check.Stale(object, 1, 2)
	const message = "the status of MachineSet ns/a has generation 1, but its spec has generation 2, so the status is out of date"
	if !stale || f.Outcome != preflight.Unknown || f.Message != message || f.Reason != check.ReasonStaleStatus.String() {
		t.Errorf("an earlier status is inconclusive, got %+v", f)
	}
}
