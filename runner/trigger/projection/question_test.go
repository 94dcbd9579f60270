package projection_test

import (
	"reflect"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	runnerimage "github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// A recorded verdict is that of an object only if it is one on what the object requests: each field of the request
// is compared.
func TestEachFieldOfARequestIsCompared(t *testing.T) {
	open := finding.Fail(finding.ReportedReason("Reason"), "message").Named("RiskA").From(finding.SourceRisk)
	open.Blocks = true
	decided := report.Report{Findings: []finding.Finding{open}}
	if open.Outcome != preflight.Fail || !open.Open() {
		t.Fatal("the finding does not block")
	}
	covered := func(spec v1alpha1.UpdatePreflightSpec) runplan.Covered {
		object := v1alpha1.UpdatePreflight{Spec: spec}
		object.Name = "mine"
		selection := func(mode runnerimage.Mode) string {
			var options runner.Options
			options.Selection.Images = mode
			return options.Coverage()
		}
		return runplan.Subjects([]v1alpha1.UpdatePreflight{object}, &configv1.ClusterVersion{}, selection, time.Now())[0].Target.Covered()
	}
	digest := func(digit string) v1alpha1.Target {
		return v1alpha1.Target{Image: "registry.example.com/release@sha256:" + digit}
	}
	plain := v1alpha1.UpdatePreflightSpec{Target: digest("1"), Images: string(runnerimage.Manifests)}
	compared := map[string]func() bool{
		"HostedCluster": func() bool { return true }, // its runs are those of package hostedruns, by hosted cluster
		"Target": func() bool {
			other := plain
			other.Target = digest("2")
			return covered(other) != covered(plain)
		},
		"Images": func() bool {
			other := plain
			other.Images = string(runnerimage.PullAll)
			return covered(other) != covered(plain)
		},
		"AcceptedFindings": func() bool {
			other := plain
			other.AcceptedFindings = []string{"RiskA"}
			meets := func(spec v1alpha1.UpdatePreflightSpec) bool {
				return projection.MeetsTerms(decided, &v1alpha1.UpdatePreflight{Spec: spec})
			}
			return meets(plain) && !meets(other)
		},
		"When": func() bool {
			other := plain
			other.When = &v1alpha1.When{Window: &v1alpha1.Window{Mode: v1alpha1.Document}}
			_, before := projection.Times(plain)
			_, after := projection.Times(other)
			return !before.Equal(after)
		},
	}
	for field := range reflect.TypeFor[v1alpha1.UpdatePreflightSpec]().Fields() {
		if differs := compared[field.Name]; differs == nil || !differs() {
			t.Errorf("another %s is not compared: a recorded verdict on the one would be that on the other", field.Name)
		}
	}
}
