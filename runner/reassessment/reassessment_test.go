package reassessment_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner/reassessment"
)

// TestUnchanged keeps the findings that only a run makes: without them, a Blocked verdict would become Ready.
func TestUnchanged(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source finding.Source
		kept   bool
	}{
		"Etcd.Quorum":                {reason: "a check of the release", source: finding.SourceJob, kept: true},
		"ReleaseSignature":           {reason: "the release does not change", source: finding.SourceSignature, kept: true},
		"CustomResourceDefinitions":  {reason: "the cluster accepts the definitions of the release", source: finding.SourceRisk, kept: true},
		"CRDSchema":                  {reason: "objects are invalid under the definitions", source: finding.SourceRisk, kept: true},
		"CRDUpdate-a.example.com":    {reason: "the API server rejects a definition of the release", source: finding.SourceRisk, kept: true},
		"ImageStreams-quay.io":       {reason: "the cluster rejects an ImageStream of the release", source: finding.SourceRisk, kept: true},
		"ExternalDependency-quay.io": {reason: "no URL is configured to check again", source: finding.SourceRisk, kept: true},
		"APIRemovedInNextRelease":    {reason: "a risk is evaluated again", source: finding.SourceRisk},
		"Upgradeable":                {reason: "a gate is evaluated again", source: finding.SourceGate},
		"ClusterOperators":           {reason: "health is evaluated again", source: finding.SourceHealth},
	} {
		t.Run(name, func(t *testing.T) {
			found := finding.Finding{Source: tc.source}
			found.Name = name
			kept := reassessment.Unchanged(scene.Judgement{}, []finding.Finding{found})
			if got := len(kept) == 1; got != tc.kept {
				t.Errorf("%s: kept %v, want %v", tc.reason, got, tc.kept)
			}
		})
	}
}
