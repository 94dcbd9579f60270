package check_test

import (
	"context"
	"fmt"
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
	absent := fmt.Errorf("could not list the pods: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: gap.Reason, Code: 501, Message: "no pods"}})
	for name, tc := range map[string]struct {
		reason string
		found  []finding.Finding
		err    error
		want   []string
	}{
		"Pass":    {reason: "nothing was found in a part", found: []finding.Finding{finding.Pass(reason, "a")}, want: []string{"Unknown NotInArchive"}},
		"Skipped": {reason: "there may be what the check is about", found: []finding.Finding{finding.Skipped(reason, "a")}, want: []string{"Unknown NotInArchive"}},
		"Warn":    {reason: "a warning stays, and there may be more", found: []finding.Finding{finding.Warn(reason, "a")}, want: []string{"Warn R", "Unknown NotInArchive"}},
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
