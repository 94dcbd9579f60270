package projection_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
)

// What the hub of a fleet reads is scalar, bounded, and has a time.
func TestReport(t *testing.T) {
	many := func(count int) []finding.Finding {
		var all []finding.Finding
		for i := range count {
			all = append(all, risk(fmt.Sprintf("Risk%02d%s", i, strings.Repeat("x", 200)), ""))
		}
		return all
	}
	reported := func(offset time.Duration) func(*v1alpha1.UpdatePreflight) {
		return func(p *v1alpha1.UpdatePreflight) { p.Status.ReportTime = at(offset) }
	}
	type want struct {
		Causes, Attestation string
		At                  time.Duration
		None                bool
	}
	for name, tc := range map[string]struct {
		reason  string
		object  *v1alpha1.UpdatePreflight
		verdict *report.Report
		signed  string
		want    want
	}{
		"Blocked": {
			"the names are one text", object(), decided(risk("RiskB", ""), risk("RiskA", "")), "{}",
			want{Causes: "RiskA,RiskB", Attestation: "{}"},
		},
		"Comma":     {"a name cannot be read as two", object(), decided(risk("Risk,Other", "")), "", want{Causes: "Risk.Other"}},
		"Many":      {"the text is bounded, and no name is cut", object(), decided(many(9)...), "", want{Causes: "4 names"}},
		"Ready":     {"nothing is against the update", object(), decided(), "{}", want{Attestation: "{}"}},
		"NoVerdict": {"a signature without a verdict would be believed", object(), nil, "{}", want{}},
		"Large":     {"an object has a limited size", object(), decided(), strings.Repeat("x", v1alpha1.MaxAttestation+1), want{}},
		"Owned":     {"no hub asks for the objects of the controller", object(owned), decided(risk("RiskA", "")), "{}", want{None: true}},
		"Recent":    {"a status is not written at each event", object(reported(-29 * time.Minute)), decided(), "", want{At: -29 * time.Minute}},
		"Old":       {"a reader must know that the controller runs", object(reported(-30 * time.Minute)), decided(), "", want{}},
		"Future":    {"the clock was set back", object(reported(time.Minute)), decided(), "", want{}},
	} {
		t.Run(name, func(t *testing.T) {
			status := projection.Status(tc.object, projection.Observation{
				Now: noon, Target: update.Release{Version: version, Image: image("1")},
				Verdict: tc.verdict, Attestation: tc.signed,
			})
			got := want{Causes: status.Causes, Attestation: status.Attestation, None: status.ReportTime == nil}
			if !got.None {
				got.At = status.ReportTime.Sub(noon)
			}
			if names := strings.Split(status.Causes, ","); len(status.Causes) > 500 && len(status.Causes) <= v1alpha1.MaxCauses {
				got.Causes = fmt.Sprintf("%d names", len(names))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The time of the condition is since when the update is complete, which a soak is measured from.
func TestUpdatedKeepsItsTime(t *testing.T) {
	target := update.Release{Version: version, Image: image("1")}
	observe := func(object *v1alpha1.UpdatePreflight, offset time.Duration, status metav1.ConditionStatus) *metav1.Condition {
		t.Helper()
		updated := &metav1.Condition{Type: v1alpha1.ConditionUpdated, Status: status, Reason: "Reason"}
		object.Status = projection.Status(object, projection.Observation{Now: noon.Add(offset), Target: target, Updated: updated})
		return meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionUpdated)
	}
	mine := object()
	observe(mine, 0, no)
	observe(mine, time.Hour, yes)
	if kept := observe(mine, 2*time.Hour, yes); !kept.LastTransitionTime.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("a cluster that stays updated is so since %s", kept.LastTransitionTime)
	}
	observe(mine, 3*time.Hour, no)
	if again := observe(mine, 4*time.Hour, yes); !again.LastTransitionTime.Time.Equal(noon.Add(4 * time.Hour)) {
		t.Errorf("a cluster that was not healthy meanwhile is updated since %s", again.LastTransitionTime)
	}
	mine.Status = projection.Status(mine, projection.Observation{Now: noon, Target: target})
	if meta.FindStatusCondition(mine.Status.Conditions, v1alpha1.ConditionUpdated) != nil {
		t.Error("a cluster that does not run the target has the condition")
	}
}
