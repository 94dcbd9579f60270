package hosted

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted/workload"
)

// Checks are the checks of the management cluster's side, and of a guest that cannot be reached. A
// new one is added here.
func (c *ControlPlane) Checks() []check.Check {
	checks := []check.Check{
		backupCheck(c),
		controlPlaneCheck(c),
		podsCheck(c),
		poolsCheck(c),
		skewCheck(c),
		reconciliationCheck(c),
		requestCheck(c),
		versionCheck(c),
	}
	if c.named {
		checks = append(checks, poolTargetsCheck(c))
	}
	if c.guestError != nil {
		checks = append(checks, guestCheck(c))
	}
	return checks
}

// podsCheck is the check HostedControlPlanePods.
func podsCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: workload.Name, Kind: finding.SourceHealth, Side: check.Management,
		Run: func(context.Context, check.Subject) ([]finding.Finding, error) {
			return c.workload.Judge(workload.Said{
				Etcd:      c.Cluster.Is("EtcdAvailable", metav1.ConditionFalse),
				APIServer: c.Cluster.Is("KubeAPIServerAvailable", metav1.ConditionFalse),
				Unmanaged: meta.FindStatusCondition(c.Cluster.Status.Conditions, "UnmanagedEtcdAvailable") != nil,
			}), nil
		},
	}
}
