package scene

import (
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

// StartOf is the step that starts the update of the cluster to a release, of a hosted cluster that of its control
// plane; none where there is no such command.
func (s Scene) StartOf(target update.Release) []finding.Action {
	arguments, isHosted := s.Settings.Estate.Start(target.Image)
	if !isHosted && s.Version != nil {
		arguments = cvo.Start(s.Version, target.Version, target.Image)
	}
	if arguments == "" {
		return nil
	}
	return []finding.Action{finding.Start(arguments)}
}
