package scene

import (
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/update"
)

// StartOf is the step that starts the update of the cluster to a release, of a hosted cluster that of its control
// plane; none where there is no such command.
func (s Scene) StartOf(target update.Release) []finding.Action {
	arguments := ""
	switch {
	case s.Settings.Hosted != nil:
		arguments = hosted.Start(s.Settings.Hosted.Cluster, target.Image)
	case s.Version != nil:
		arguments = cvo.Start(s.Version, target.Version, target.Image)
	}
	if arguments == "" {
		return nil
	}
	return []finding.Action{finding.Start(arguments)}
}
