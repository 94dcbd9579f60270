package collector_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func source(name string, collect func(context.Context) ([]finding.Finding, error)) collector.Source {
	return collector.Source{Name: name, Kind: finding.SourceGate, Collect: collect}
}

func TestEverySourceHasAFinding(t *testing.T) {
	pass := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"), "passed").Named("Gate")
	for name, tc := range map[string]struct {
		reason   string
		collect  func(context.Context) ([]finding.Finding, error)
		want     map[string]preflight.Outcome // reason -> outcome
		reported int
	}{
		"Finding": {
			reason:  "the findings of a source are kept",
			collect: func(context.Context) ([]finding.Finding, error) { return []finding.Finding{pass}, nil },
			want:    map[string]preflight.Outcome{"Passed": preflight.Pass}, reported: 1,
		},
		"Nothing": {
			reason:  "a source without findings does not pass",
			collect: func(context.Context) ([]finding.Finding, error) { return nil, nil },
			want:    map[string]preflight.Outcome{"NoResult": preflight.Unknown},
		},
		"Error": {
			reason:  "an error means that the check was inconclusive",
			collect: func(context.Context) ([]finding.Finding, error) { return nil, errors.New("boom") },
			want:    map[string]preflight.Outcome{"Error": preflight.Unknown},
		},
		"FindingAndError": {
			reason: "the findings beside an error are kept, and do not hide the error",
			collect: func(context.Context) ([]finding.Finding, error) {
				return []finding.Finding{pass}, errors.New("boom")
			},
			want: map[string]preflight.Outcome{"Passed": preflight.Pass, "Error": preflight.Unknown},
		},
		"Forbidden": {
			reason: "a missing permission has its own reason",
			collect: func(context.Context) ([]finding.Finding, error) {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "admin-acks", nil)
			},
			want: map[string]preflight.Outcome{"Forbidden": preflight.Unknown},
		},
		"Unauthorized": {
			reason: "an expired login has its own reason",
			collect: func(context.Context) ([]finding.Finding, error) {
				return nil, apierrors.NewUnauthorized("token expired")
			},
			want: map[string]preflight.Outcome{"Unauthorized": preflight.Unknown},
		},
		"Panic": {
			reason:  "a panic of one check does not end the run",
			collect: func(context.Context) ([]finding.Finding, error) { panic("boom") },
			want:    map[string]preflight.Outcome{"Panic": preflight.Unknown},
		},
		"Timeout": {
			reason:  "the deadline of the run has its own reason",
			collect: func(context.Context) ([]finding.Finding, error) { return nil, context.DeadlineExceeded },
			want:    map[string]preflight.Outcome{"Timeout": preflight.Unknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			got := collector.Collect(t.Context(), []collector.Source{source("Gate", tc.collect)},
				func(collector.Source, []finding.Finding) { calls++ })
			outcomes := map[string]preflight.Outcome{}
			for _, f := range got.Findings {
				outcomes[f.Reason] = f.Outcome
				if f.Source != finding.SourceGate || f.Name != "Gate" {
					t.Errorf("%s: finding %q of source %q, want Gate of gate", tc.reason, f.Name, f.Source)
				}
				if f.Outcome == preflight.Unknown && (!f.Blocks || f.Remediation == "") {
					t.Errorf("%s: an inconclusive finding blocks and has a remedy: %+v", tc.reason, f)
				}
			}
			if diff := cmp.Diff(tc.want, outcomes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if got.Expected != 1 || got.Expected-len(got.Missing) != tc.reported {
				t.Errorf("%s: %d expected, missing %q; want %d of 1 reported", tc.reason, got.Expected, got.Missing, tc.reported)
			}
			if calls != 1 {
				t.Errorf("%s: done was called %d times, want once", tc.reason, calls)
			}
		})
	}
}

func TestCanceledSourcesKeepTheFindingsOfTheOthers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	completed := source("Completed", func(context.Context) ([]finding.Finding, error) {
		defer cancel()
		return []finding.Finding{finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"), "passed")}, nil
	})
	waiting := source("Waiting", func(ctx context.Context) ([]finding.Finding, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	got := collector.Collect(ctx, []collector.Source{completed, waiting}, func(collector.Source, []finding.Finding) {})
	if len(got.Findings) != 2 || got.Findings[0].Outcome != preflight.Pass || got.Findings[1].Reason != "Interrupted" {
		t.Errorf("findings = %+v, want a pass and an interruption, in the order of the sources", got.Findings)
	}
	if diff := cmp.Diff([]string{"Waiting"}, got.Missing); got.Expected != 2 || diff != "" {
		t.Errorf("%d expected, missing -want +got:\n%s", got.Expected, diff)
	}
}

// As many checks have reported, whatever their findings become.
func TestMergedReportsEveryCheck(t *testing.T) {
	misses := func(name string) collector.Source {
		return collector.Bind(check.Subject{}, []check.Check{{
			Name: name, Kind: finding.SourceHealth,
			Run: func(ctx context.Context, _ check.Subject) ([]finding.Finding, error) {
				gap.Note(ctx, gap.Gap{Resource: "pods"})
				return []finding.Finding{finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"), "passed")}, nil
			},
		}})[0]
	}
	got := collector.Collect(t.Context(), []collector.Source{misses("A"), misses("B")},
		func(collector.Source, []finding.Finding) {}).Merged(nil)
	if len(got.Findings) != 1 || got.Expectation().Checks != 2 || got.Expectation().Reported != 2 {
		t.Errorf("got %+v", got)
	}
	if decided, _ := verdict.Fold(got.Findings, got.Expectation(), verdict.Policy{}); decided.Decision != verdict.Undecided {
		t.Errorf("decided %s", decided.Decision)
	}
}
