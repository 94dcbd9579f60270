package reassessment

import (
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/scene"
)

// Unchanged is unchanged.
func Unchanged(judgement scene.Judgement, findings []finding.Finding) []finding.Finding {
	return unchanged(judgement, findings)
}
