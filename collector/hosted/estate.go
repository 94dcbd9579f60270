package hosted

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted/workload"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
)

// Estate has the clusters that an update concerns beside the judged one: none, which is the zero value, or the
// management cluster of a hosted cluster, whose guest is judged then. It answers all questions that depend on whether
// a cluster is hosted.
type Estate struct{ controlPlane *ControlPlane }

// Estate returns the estate of the hosted cluster.
func (c *ControlPlane) Estate() Estate { return Estate{c} }

// ControlPlane is the hosted cluster as its management cluster has it; false where there is none.
func (e Estate) ControlPlane() (*ControlPlane, bool) { return e.controlPlane, e.controlPlane != nil }

// Management is the cluster that runs the control plane of the judged one: its nodes pull the release, and its
// keys and image policies decide.
func (e Estate) Management(judged *cluster.Cluster) *cluster.Cluster {
	if e.controlPlane == nil {
		return judged
	}
	return e.controlPlane.Management
}

// Namespace is the namespace of the control plane in the management cluster, where the checks of a release that
// are for it run; empty where all run in the judged cluster.
func (e Estate) Namespace() string {
	if e.controlPlane == nil {
		return ""
	}
	return e.controlPlane.Namespace()
}

// Selected names the hosted cluster, NAMESPACE/NAME, and the pools that are to be updated as well, sorted by
// name; empty for a cluster that is judged by itself.
func (e Estate) Selected() (name string, pools []string) {
	if e.controlPlane == nil {
		return "", nil
	}
	return e.controlPlane.selected()
}

// GuestError is why the guest cannot be reached; nil where the judged cluster can.
func (e Estate) GuestError() error {
	if e.controlPlane == nil {
		return nil
	}
	return e.controlPlane.guestError
}

// Guest returns the checks of the judged cluster that can be made: none for a guest that cannot be reached.
func (e Estate) Guest(checks []check.Check) []check.Check {
	if e.GuestError() != nil {
		return nil
	}
	return checks
}

// Checks are the checks of the management cluster's side, with others of it.
func (e Estate) Checks(others ...func(*ControlPlane) check.Check) []check.Check {
	if e.controlPlane == nil {
		return nil
	}
	checks := e.controlPlane.Checks()
	for _, other := range others {
		checks = append(checks, other(e.controlPlane))
	}
	return checks
}

// Ahead are the checks of the management cluster's side that can be evaluated for each update of a path: whether
// HyperShift accepts its version, and for the first update, whether it accepts and carries out its request.
func (e Estate) Ahead() (first, later []check.Check) {
	c := e.controlPlane
	if c == nil {
		return nil, nil
	}
	return []check.Check{reconciliationCheck(c), requestCheck(c), versionCheck(c)}, []check.Check{versionCheck(c)}
}

// Subject is a subject with what checks of the judged cluster depend on. The NodePools are those that are named for
// this update; empty where none is, since the update of a control plane drains no node.
func (e Estate) Subject(s check.Subject) check.Subject {
	if e.controlPlane == nil {
		return s
	}
	s.Hosted, s.NodePools = true, []order.NodePool{}
	if e.controlPlane.named {
		s.NodePools = Drains(e.controlPlane.pools, s.Now)
	}
	return s
}

// Drains are the selected NodePools as their nodes are drained when each of them is updated, at a time; nil where the
// machine-config-operator drains the nodes.
func (e Estate) Drains(now time.Time) ([]order.NodePool, error) {
	if e.controlPlane == nil {
		return nil, nil
	}
	return Drains(e.controlPlane.pools, now), e.controlPlane.poolsError
}

// HasMachineConfig reports whether a machine-config-operator configures and updates the nodes of the judged cluster.
// The nodes of a guest belong to NodePools: each pool is updated by itself, and gets no image policies.
func (e Estate) HasMachineConfig() bool { return e.controlPlane == nil }

// Profile is the cluster profile of the manifests of a release that apply, where HyperShift decides; empty where
// the judged cluster states it.
func (e Estate) Profile() string {
	if e.controlPlane == nil {
		return ""
	}
	return hypershift.Profile
}

// Predict is what HyperShift would do with the request for a version; false where the cluster-version operator of
// the judged cluster decides.
func (e Estate) Predict(version string) (report.CVO, bool) {
	if e.controlPlane == nil {
		return report.CVO{}, false
	}
	return e.controlPlane.Predict(version), true
}

// Start requests a release for the control plane; it has no command where there is none. False where ClusterVersion is
// to request it.
func (e Estate) Start(image string) (start finding.Action, ok bool) {
	if e.controlPlane == nil {
		return finding.Action{}, false
	}
	return Start(e.controlPlane.Cluster, image), true
}

// Reread returns a function that has the estate as it is now: at the first call as it was opened, later as it is read
// again. Whether its guest can be reached is as before. After an error, the next call reads it again.
func Reread(e Estate) func(context.Context) (Estate, error) {
	opened := true
	return func(ctx context.Context) (Estate, error) {
		c := e.controlPlane
		if c == nil || opened {
			opened = false
			return e, nil
		}
		_, pools := c.selected()
		read, err := Open(ctx, c.Management, c.Cluster.Namespace, c.Cluster.Name, pools...)
		if err != nil {
			return Estate{}, err
		}
		read.guestError = c.guestError
		e = read.Estate()
		return e, nil
	}
}

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
