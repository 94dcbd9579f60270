// Package scene answers: what does this cluster look like when an update is judged?
//
// [Open] reads it once, and [OpenSettled] waits until the cluster-version operator (CVO)
// has processed the last change of ClusterVersion. Everything that is judged afterwards
// gets the same [Scene]: one snapshot, one clock, the acceptances of the administrator.
package scene

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Scene is one cluster at the time at which its judgement starts. It is a value: what
// changes it, such as AwaitStatus, returns another one.
type Scene struct {
	// Cluster has the clients, and Snapshot what was read by them.
	Cluster  *cluster.Cluster
	Snapshot *snapshot.Cluster
	Settings Settings
	// Start is by the cluster's clock, as all times of a report are.
	Start   time.Time
	Version *configv1.ClusterVersion
	// About is the cluster as a report has it.
	About report.Cluster
	// Acceptances have all, whether or not they hold.
	Acceptances []acceptance.Acceptance
}

// Open reads the cluster without waiting for CVO. The error names all missing permissions
// among needs, before a request that requires one. An *input.Error is about the settings.
// Nothing is created.
func Open(ctx context.Context, c *cluster.Cluster, settings Settings, needs access.Needs) (Scene, error) {
	if err := settings.validate(); err != nil {
		return Scene{}, err
	}
	s := Scene{Cluster: c, Settings: settings.withDefaults(c), Snapshot: snapshot.Of(c)}
	s.Step("reading the cluster")
	kubernetes, err := discovery.ToServerVersionInterfaceWithContext(c.Kubernetes.Discovery()).ServerVersionWithContext(ctx)
	if err != nil {
		return Scene{}, unreachable(err)
	}
	s.Start = c.Now() // a response has set the clock
	s.reportClock()
	if _, err := settings.Judgement.Fixed.At(s.Start); err != nil {
		return Scene{}, &input.Error{Err: err}
	}
	if err := needs.Check(ctx, c.Kubernetes.AuthorizationV1()); err != nil {
		return Scene{}, err
	}
	if s.Version, err = readClusterVersion(ctx, s.Snapshot); err != nil {
		return Scene{}, err
	}
	return s.described(kubernetes.GitVersion)
}

// OpenSettled is Open when CVO has processed the last change of ClusterVersion, or was
// given the time to. It reviews no permissions.
func OpenSettled(ctx context.Context, c *cluster.Cluster, settings Settings) (Scene, error) {
	s, err := Open(ctx, c, settings, access.Needs{})
	if err != nil {
		return Scene{}, err
	}
	s = s.AwaitStatus(ctx)
	if ctx.Err() != nil {
		return Scene{}, fmt.Errorf("interrupted before CVO had processed the last change of ClusterVersion: %w", context.Cause(ctx))
	}
	return s, nil
}

// Step reports what is done next.
func (s Scene) Step(format string, args ...any) { s.Settings.Step(fmt.Sprintf(format, args...)) }

// Deadline is when the time of the judgement is up, by the cluster's clock.
func (s Scene) Deadline() time.Time { return s.Start.Add(s.Settings.Timeout) }

// Remaining is the time until the deadline.
func (s Scene) Remaining() time.Duration { return s.Deadline().Sub(s.Cluster.Now()) }

// Account has the acceptances that hold for a target of that version.
func (s Scene) Account(version string) acceptance.Account {
	return acceptance.Judge(s.Acceptances, acceptance.Scope{Target: version, Cluster: s.About.ID, Now: s.Start})
}

// Management is the cluster that runs the control plane: its nodes pull the release, and its keys and
// image policies decide. It is Cluster, unless that is the guest of a hosted cluster.
func (s Scene) Management() *cluster.Cluster { return s.Settings.Estate.Management(s.Cluster) }

// ControlPlaneArchitecture is the architecture of the nodes that run the control plane; empty
// where they cannot be read.
func (s Scene) ControlPlaneArchitecture(ctx context.Context) string {
	for _, role := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		nodes, err := s.Management().Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: role, Limit: 1})
		if err == nil && len(nodes.Items) > 0 {
			return nodes.Items[0].Status.NodeInfo.Architecture
		}
	}
	return ""
}

// ReleaseArchitectures are the architectures of the nodes that may pull the release, sorted; none means all that an
// image has. A management cluster may have nodes of any.
func (s Scene) ReleaseArchitectures(ctx context.Context) []string {
	if s.Management() != s.Cluster {
		return nil
	}
	return s.Architectures(ctx)
}

// Architectures are the architectures of all nodes, sorted; none where they cannot be
// read, which means all that an image has.
func (s Scene) Architectures(ctx context.Context) []string {
	nodes, err := s.Snapshot.Nodes(ctx)
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for i := range nodes {
		found[nodes[i].Status.NodeInfo.Architecture] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// unreachable is the error of an API server that cannot be reached. One that rejects the
// credentials keeps its own: the program says what to do.
func unreachable(err error) error {
	if apierrors.IsUnauthorized(err) {
		return err
	}
	return fmt.Errorf("could not reach the API server: %w", err)
}

// reportClock reports a difference between the clocks: all times are by the cluster's.
func (s Scene) reportClock() {
	if s.Cluster.Fixed() {
		s.Step("all is judged as of %s, the newest time of the archive", words.Time(s.Start))
		return
	}
	const worthReporting = time.Minute
	switch late := time.Until(s.Start).Round(time.Minute); {
	case late >= worthReporting:
		s.Step("the clock of this machine is %s behind the cluster's, which is used", late)
	case late <= -worthReporting:
		s.Step("the clock of this machine is %s ahead of the cluster's, which is used", -late)
	}
}
