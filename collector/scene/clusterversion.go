package scene

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

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

// AwaitStatus waits until CVO has processed the last change of the spec of
// ClusterVersion, such as an accepted risk, since most findings about an out-of-date
// status are inconclusive. It waits no longer than CVO normally needs, and for a third
// of the time of the judgement; a status that is out of date then is a finding. Where ctx
// ends before, it returns what was read last.
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
			return false, nil //nolint:nilerr // the last version that was read stays
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

// InstalledError means that there is no update to judge: the cluster runs the release already.
type InstalledError struct {
	// Version is that of the release, and ClusterID the ID of the cluster.
	Version, ClusterID string
}

// Error implements error.
func (e *InstalledError) Error() string {
	return fmt.Sprintf("the cluster runs %s already, so there is no update to judge: name another release, or judge the last update with \"after\"", words.External(e.Version))
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
	return update.Release{}, errors.New("unknown which release the cluster runs: the status of ClusterVersion has neither history nor desired")
}
