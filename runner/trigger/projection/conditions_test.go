package projection_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
)

// steps are the conditions of the steps of a status, a line each.
func steps(t *testing.T, status v1alpha1.UpdatePreflightStatus) string {
	t.Helper()
	var lines []string
	for _, kind := range []string{
		v1alpha1.ConditionTargetKnown, v1alpha1.ConditionWindowOpen, v1alpha1.ConditionReleaseVerified,
		v1alpha1.ConditionChecksReported,
	} {
		condition := meta.FindStatusCondition(status.Conditions, kind)
		if condition == nil {
			t.Fatalf("no condition %s", kind)
		}
		line := kind + " " + string(condition.Status) + " " + condition.Reason + " " + condition.Message
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func TestSteps(t *testing.T) {
	t.Parallel()
	reported := edited(decided(), func(r *report.Report) {
		r.Target.Verified, r.Expected = true, verdict.Expectation{Checks: 3, Reported: 3}
	})
	partial := edited(decided(), func(r *report.Report) { r.Expected = verdict.Expectation{Checks: 3, Reported: 2} })
	const known, open = "TargetKnown True TargetKnown", "WindowOpen True WindowOpen"
	const verified, all = "ReleaseVerified True Verified", "ChecksReported True AllReported 3 of 3 checks reported"
	none := func(reason string) []string {
		return []string{"ReleaseVerified Unknown " + reason, "ChecksReported Unknown " + reason}
	}
	for name, tc := range map[string]struct {
		reason  string
		object  *v1alpha1.UpdatePreflight
		unknown string
		running *projection.Run
		verdict *report.Report
		want    []string
	}{
		"Unknown": {
			reason: "no release is selected", object: object(), unknown: "no such update",
			want: append([]string{"TargetKnown False TargetUnknown no such update", open}, none("NoVerdict no run has a valid verdict")...),
		},
		"Running": {
			reason: "the run reports at its end", object: object(), running: &projection.Run{ID: "run-2"},
			want: append([]string{known, open}, none("Checking a run is in progress")...),
		},
		"Reported": {reason: "the verdict is valid", object: object(), verdict: reported, want: []string{known, open, verified, all}},
		"Partial": {
			reason: "a result is missing, and the signature was not verified", object: object(), verdict: partial,
			want: []string{
				known, open, "ReleaseVerified False NotVerified the signature of the release was not verified",
				"ChecksReported False MissingResults 2 of 3 checks reported",
			},
		},
		"Expired": {
			reason: "an expired verdict counts for no step", object: object(),
			verdict: edited(decided(), func(r *report.Report) { r.Standing.Ended = []string{"node a has changed"} }),
			want:    append([]string{known, open}, none("NoVerdict no run has a valid verdict")...),
		},
		"TooEarly": {
			reason: "the requested time is in the future", object: object(starts(time.Minute)),
			want: append([]string{known, "WindowOpen False TooEarly the window opens at 2026-11-22T12:01:00Z"},
				none("NoVerdict no run has a valid verdict")...),
		},
		"Closes": {
			reason: "a window of the document is open for 30 minutes", object: object(window(v1alpha1.Window{Start: *at(-29 * time.Minute)})),
			verdict: reported,
			want: append([]string{known, "WindowOpen True WindowOpen the window closes at 2026-11-22T12:01:00Z"},
				none("NoVerdict no run has a valid verdict")...),
		},
		"Closed": {
			reason: "the verdict is valid after the window", object: object(window(v1alpha1.Window{Start: *at(-time.Hour)})), verdict: reported,
			want: []string{known, "WindowOpen False WindowClosed the window closed at 2026-11-22T11:30:00Z", verified, all},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observation := projection.Observation{
				Now: noon, Target: update.Release{Version: version, Image: image("1")}, Unknown: tc.unknown, Running: tc.running, Verdict: tc.verdict,
			}
			if tc.unknown != "" {
				observation.Target = update.Release{}
			}
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), steps(t, projection.Status(tc.object, observation))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
