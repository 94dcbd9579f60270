package check_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// A check that reads what was not gathered neither passes nor fails for what it did not see.
func TestGaps(t *testing.T) {
	reason := finding.ReportedReason("R")
	absent := fmt.Errorf("could not list the pods: %w",
		&apierrors.StatusError{ErrStatus: metav1.Status{Reason: gap.Reason, Code: 501, Message: "no pods"}})
	for name, tc := range map[string]struct {
		reason string
		found  []finding.Finding
		err    error
		want   []string
	}{
		"Pass": {
			reason: "nothing was found in a part", found: []finding.Finding{finding.Pass(gap.Proven("a test"), reason, "a")},
			want: []string{"Unknown NotInArchive"},
		},
		"Skipped": {
			reason: "there may be what the check is about", found: []finding.Finding{finding.Skipped(gap.Proven("a test"), reason, "a")},
			want: []string{"Unknown NotInArchive"},
		},
		"Warn": {
			reason: "a warning stays, and there may be more", found: []finding.Finding{finding.Warn(reason, "a")},
			want: []string{"Warn R", "Unknown NotInArchive"},
		},
		"Fail":    {reason: "what is wrong in a part is wrong", found: []finding.Finding{finding.Fail(reason, "a")}, want: []string{"Fail R"}},
		"Unknown": {reason: "the check has stated it", found: []finding.Finding{finding.Unknown(reason, "a")}, want: []string{"Unknown R"}},
		"Error":   {reason: "nothing could be read", err: absent, want: []string{"Unknown NotInArchive"}},
		"Unread":  {reason: "one cause is one finding", found: check.Unread("pods", absent), want: []string{"Unknown NotInArchive"}},
	} {
		t.Run(name, func(t *testing.T) {
			declared := check.Check{Name: "Check", Run: func(ctx context.Context, _ check.Subject) ([]finding.Finding, error) {
				gap.Note(ctx, gap.Gap{Resource: "pods", Partial: tc.err == nil})
				return tc.found, tc.err
			}}
			requested, err := update.Parse("4.18.1", "4.19.0")
			if err != nil {
				t.Fatal(err)
			}
			findings, err := declared.Examine(t.Context(), check.Subject{Update: requested})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, f := range findings {
				got = append(got, string(f.Outcome)+" "+f.Reason)
				if f.Outcome == preflight.Unknown && f.Reason != "R" && (!strings.Contains(f.Message, "check Check") || len(f.Actions) == 0) {
					t.Errorf("the finding %q names neither the check nor a command", f.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s; -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// lacking is the finding of a check without these resources of an archive.
func lacking(t *testing.T, name string, resources ...string) finding.Finding {
	t.Helper()
	declared := check.Check{Name: name, Run: func(ctx context.Context, _ check.Subject) ([]finding.Finding, error) {
		for _, each := range resources {
			gap.Note(ctx, gap.Gap{Resource: each})
		}
		return []finding.Finding{finding.Pass(gap.Proven("a test"), finding.ReportedReason("R"), "a")}, nil
	}}
	requested, err := update.Parse("4.18.1", "4.19.0")
	if err != nil {
		t.Fatal(err)
	}
	findings, err := declared.Examine(t.Context(), check.Subject{Update: requested})
	if err != nil || len(findings) != 1 {
		t.Fatalf("%v, %v", findings, err)
	}
	return findings[0].Named(name).From(finding.SourceHealth)
}

func TestMergeGaps(t *testing.T) {
	pods, both, services, nodes := lacking(t, "A", "pods"), lacking(t, "C", "pods", "services"), lacking(t, "B", "services"),
		lacking(t, "D", "nodes")
	accepted := pods.Bypassed(finding.Bypass{By: finding.ByAcceptedRisk})
	for name, tc := range map[string]struct {
		reason   string
		findings []finding.Finding
		accepted string
		want     []string
		source   finding.Source
	}{
		"Same": {
			reason: "one cause is one finding", findings: []finding.Finding{pods, lacking(t, "E", "pods")},
			want: []string{"NotInArchive: A, E lack pods"},
		},
		"Other": {
			reason: "one archive more has both", findings: []finding.Finding{pods, nodes},
			want: []string{"NotInArchive: A, D lack nodes, pods"},
		},
		"Accepted": {
			reason: "an acceptance by name covers what it did", findings: []finding.Finding{pods, both, services}, accepted: "C",
			want: []string{"NotInArchive: A, B lack pods, services", "C: C lack pods, services"},
		},
		"Bypassed": {
			reason: "what was bypassed does not count", findings: []finding.Finding{accepted, both},
			want: []string{"A: A lack pods", "C: C lack pods, services"},
		},
		"Kind": {reason: "with a gate among them it is a gate, which cannot be accepted", findings: []finding.Finding{
			both,
			pods.From(finding.SourceGate),
		}, want: []string{"NotInArchive: A, C lack pods, services"}, source: finding.SourceGate},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.findings)
			var got []string
			for _, f := range check.MergeGaps(tc.findings, map[string]string{tc.accepted: "request"}) {
				got = append(got, fmt.Sprintf("%s: %s lack %s", f.Name, f.Evidence["checks"], f.Evidence["resources"]))
				if !f.Inconclusive() || !f.Blocks || !slices.Equal(f.BlockedTargets, []string{"4.19.0"}) || len(f.Actions) != 1 || tc.source != "" &&
					f.Source != tc.source {
					t.Errorf("%s: %+v", tc.reason, f)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !cmp.Equal(before, tc.findings) {
				t.Errorf("%s; -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	const message = "the archive has no pods; no services, so the checks A, C are inconclusive"
	if got := check.MergeGaps([]finding.Finding{pods, both}, nil)[0].Message; got != message {
		t.Errorf("got %q, want %q", got, message)
	}
}
