package risk

import (
	"context"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// NameControlPlaneAlerts is the name of the check of the alerts of a hosted control plane.
var NameControlPlaneAlerts = finding.NewName("ControlPlaneAlerts",
	"The check for alerts of the management cluster about the control plane of a hosted cluster: those with the "+
		"namespace of the control plane that Alerts would count. There is a finding for each name of an alert, "+
		"ControlPlaneAlerts-NAME, by which it is accepted.")

// ControlPlaneAlerts is the check of the alerts of a hosted control plane, which the monitoring of its
// management cluster has with the namespace of the control plane. One that is not OpenShift need not have
// monitoring: then the check is Skipped.
func ControlPlaneAlerts(side *hosted.ControlPlane, options Options) check.Check {
	return check.Check{
		Name: NameControlPlaneAlerts, Kind: finding.SourceRisk, Side: check.Management,
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			s.Cluster = snapshot.Of(side.Management)
			return alerts{
				subject: s, client: side.Monitoring, options: options,
				controlPlane: hypershift.ControlPlaneNamespace(side.Cluster.Namespace, side.Cluster.Name),
			}.findings(ctx)
		},
	}
}
