// Package scene answers: what does this cluster look like when an update is evaluated?
//
// [Open] reads it once, and [OpenSettled] waits until the cluster-version operator (CVO) has processed the last
// change of ClusterVersion. All later evaluations get the same [Scene]: one snapshot, one clock, the acceptances
// of the administrator.
package scene

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Scene is one cluster at the time at which its judgement starts. It is a value: what
// changes it, such as AwaitStatus, returns another one.
type Scene struct {
	// Cluster contains the clients, and Snapshot the objects that they read.
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

// Step reports the next step.
func (s Scene) Step(format string, args ...any) { s.Settings.Step(fmt.Sprintf(format, args...)) }

// Deadline is when the time of the judgement is up, by the cluster's clock.
func (s Scene) Deadline() time.Time { return s.Start.Add(s.Settings.Timeout) }

// Remaining is the time until the deadline.
func (s Scene) Remaining() time.Duration { return s.Deadline().Sub(s.Cluster.Now()) }

// Account has the acceptances that hold for a target of that version.
func (s Scene) Account(version string) acceptance.Account {
	return acceptance.Evaluate(s.Acceptances, acceptance.Scope{Target: version, Cluster: s.About.ID, Now: s.Start})
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
		s.Step("evaluating the archive as of %s, its newest timestamp", words.Time(s.Start))
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

func readClusterVersion(ctx context.Context, cluster *snapshot.Cluster) (*configv1.ClusterVersion, error) {
	clusterVersion, err := cluster.ClusterVersion(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("this cluster has no ClusterVersion \"version\", so no cluster-version operator updates it: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	return clusterVersion, nil
}

func acceptedRisks(clusterVersion *configv1.ClusterVersion) []string {
	var names []string
	if desired := clusterVersion.Spec.DesiredUpdate; desired != nil {
		for _, risk := range desired.AcceptRisks {
			names = append(names, risk.Name)
		}
	}
	return names
}

// described adds what follows from ClusterVersion and the version of Kubernetes.
func (s Scene) described(kubernetes string) (Scene, error) {
	current, err := currentRelease(s.Version)
	if err != nil {
		return Scene{}, err
	}
	judgement := s.Settings.Judgement
	s.About = report.Cluster{ID: string(s.Version.Spec.ClusterID), Version: current.Version, Image: current.Image, Kubernetes: kubernetes}
	s.Acceptances = slices.Concat(judgement.Accepted, acceptance.Named(acceptance.Origin, acceptedRisks(s.Version)...), judgement.Accept)
	return s, nil
}

const (
	// catchUpTime is how long after a change of its spec CVO may need to update the
	// status of ClusterVersion: it resynchronizes every two to four minutes
	// (pkg/start/start.go, resyncPeriod).
	catchUpTime = 5 * time.Minute
	// catchUpShare is the part of the time of a judgement that is spent waiting for it.
	catchUpShare    = 3
	catchUpInterval = time.Second
)

// AwaitStatus waits until CVO has processed the last change of the spec of ClusterVersion, such as an accepted
// risk, since most findings about an out-of-date status are inconclusive. It waits no longer than CVO normally
// needs, and for at most a third of the time of the judgement; a status that is still out of date is a finding. If
// ctx ends first, it returns the last state that was read.
func (s Scene) AwaitStatus(ctx context.Context) Scene {
	limit := min(cvo.SpecChange(s.Version).Add(catchUpTime).Sub(s.Cluster.Now()), s.Settings.Timeout/catchUpShare).Round(time.Second)
	if cvo.HasProcessed(s.Version) || limit <= 0 || s.Cluster.Fixed() {
		return s
	}
	s.Step("waiting up to %s for CVO to process the last change of ClusterVersion", limit)
	_ = wait.PollUntilContextTimeout(ctx, catchUpInterval, limit, false, func(ctx context.Context) (bool, error) {
		current := snapshot.Of(s.Cluster)
		version, err := readClusterVersion(ctx, current)
		if err != nil {
			return false, nil //nolint:nilerr // polling continues, and the last version that was read remains
		}
		s.Snapshot, s.Version = current, version
		return cvo.HasProcessed(version), nil
	})
	described, err := s.described(s.About.Kubernetes)
	if err != nil {
		return s // the release that was known before stays
	}
	return described
}

// KnownReleases are the releases that a version can select, in the order of preference:
// status.availableUpdates, conditionalUpdates, history.
func KnownReleases(clusterVersion *configv1.ClusterVersion) []update.Release {
	var known []update.Release
	for _, available := range clusterVersion.Status.AvailableUpdates {
		known = append(known, update.Release{Version: available.Version, Image: available.Image})
	}
	for _, conditional := range clusterVersion.Status.ConditionalUpdates {
		known = append(known, update.Release{Version: conditional.Release.Version, Image: conditional.Release.Image})
	}
	for _, past := range clusterVersion.Status.History {
		known = append(known, update.Release{Version: past.Version, Image: past.Image})
	}
	return known
}

// InstalledError means that there is no update to evaluate: the cluster runs the release already.
type InstalledError struct {
	// Version is the version of the release, and ClusterID the ID of the cluster.
	Version, ClusterID string
}

// Error implements error.
func (e *InstalledError) Error() string {
	return fmt.Sprintf("the cluster already runs %s, so there is no update to evaluate: name another release, or evaluate the last "+
		"update with \"after\"", words.External(e.Version))
}

// Installed is an *input.Error with an *InstalledError if the cluster runs the release: it is the last one that CVO has
// completed, and none is being installed. A release with that version and another image is another one.
func Installed(clusterVersion *configv1.ClusterVersion, release update.Release) error {
	status := clusterVersion.Status
	if len(status.History) == 0 || status.History[0].State != configv1.CompletedUpdate || status.Desired.Version != status.History[0].Version {
		return nil
	}
	current := status.History[0]
	same := release.Image == "" && release.Version == current.Version
	if digest := release.Digest(); digest != "" {
		same = digest == update.Release{Image: current.Image}.Digest()
	}
	if !same {
		return nil
	}
	return &input.Error{Err: &InstalledError{Version: current.Version, ClusterID: string(clusterVersion.Spec.ClusterID)}}
}

// ListVersions names the versions of releases, each once and at most ten, for a message.
func ListVersions(releases []update.Release) string {
	const most = 10
	var versions []string
	for _, each := range releases {
		if !slices.Contains(versions, each.Version) {
			versions = append(versions, each.Version)
		}
	}
	if len(versions) == 0 {
		return "none"
	}
	return words.List(versions, most)
}

// currentRelease is the release that the cluster runs: the last one that it
// completed, or before that the one that it was installed with.
func currentRelease(clusterVersion *configv1.ClusterVersion) (update.Release, error) {
	for _, past := range clusterVersion.Status.History {
		if past.State == configv1.CompletedUpdate {
			return update.Release{Version: past.Version, Image: past.Image}, nil
		}
	}
	if desired := clusterVersion.Status.Desired; desired.Version != "" {
		return update.Release{Version: desired.Version, Image: desired.Image}, nil
	}
	return update.Release{}, errors.New("the release that the cluster runs is unknown: the status of ClusterVersion has neither " +
		"history nor desired")
}

// Predict returns how CVO would respond to a request, completed with the administrator's decisions. CVO's
// precondition reads the condition Upgradeable, which may lag behind its causes.
func (s Scene) Predict(request cvo.Request, policy verdict.Policy, findings []finding.Finding) report.CVO {
	if predicted, decides := s.Settings.Estate.Predict(request.Version); decides {
		return predicted
	}
	request.ClusterVersion, request.Force = s.Version, policy.Force
	request.AcceptRisks = slices.Sorted(maps.Keys(policy.Accepted))
	prediction := cvo.Evaluate(request)
	if causes := upgradeableCauses(s.Version, findings); len(causes) > 0 && (prediction.Accepts == nil || *prediction.Accepts) &&
		!policy.Force {
		return report.CVO{
			Accepts: new(false), Reason: "PreconditionChecks",
			Message: "CVO rejects such an update because of " + strings.Join(causes, ", ") +
				", which the condition Upgradeable of ClusterVersion does not report yet",
		}
	}
	return report.CVO{Accepts: prediction.Accepts, Reason: prediction.Reason, Message: prediction.Message}
}

var _ = catalog.Reasons("The cluster-version operator (CVO) rejects the update, or has read its release: package cvo predicts it.", `
InvalidCurrentVersion | The version of the cluster is not a semantic version. | Contact the support of OpenShift.
InvalidDesiredVersion | The version of the target is not a semantic version. | Choose a target with a version.
LowDesiredVersion | The target is older than the release of the cluster. | Choose a newer target.
MajorVersionUpdate | The cluster cannot be updated to another major version from its release. | Update to the last minor version of this major version
	first. List the updates of the path. | oc preflight plan
MultipleMinorVersionsUpdate | The target is more than one minor version ahead. | Update one minor version at a time. List the updates of the path. | oc preflight plan
PayloadLoaded | The release was downloaded and verified.
PreconditionChecks | A precondition of the update fails; the message names it. | Follow the remedy of the finding about the precondition.`)

// upgradeableCauses are the open gates from which CVO makes its condition Upgradeable.
func upgradeableCauses(version *configv1.ClusterVersion, findings []finding.Finding) []string {
	if version == nil {
		return nil
	}
	var names []string
	for _, f := range findings {
		if f.Source == finding.SourceGate && f.Outcome == preflight.Fail && f.Open() &&
			cvo.MakesUpgradeable(version.Status.Desired.Version, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// StartOf returns the step that starts the update of the cluster, or of the control plane of a hosted cluster, to
// a release; none if there is no such command.
func (s Scene) StartOf(target update.Release) []finding.Action {
	start, isHosted := s.Settings.Estate.Start(target.Image)
	if !isHosted && s.Version != nil {
		if words := cvo.Start(s.Version, target.Version, target.Image); words != nil {
			start = finding.Change("oc").Adding(words...)
		}
	}
	if start.Command == "" {
		return nil
	}
	return []finding.Action{start.Start()}
}
