package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
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

// described has what follows from ClusterVersion and the version of Kubernetes.
func (v view) described(kubernetes string) (view, error) {
	current, err := currentRelease(v.version)
	if err != nil {
		return view{}, err
	}
	v.about = report.Cluster{ID: string(v.version.Spec.ClusterID), Version: current.Version, Image: current.Image, Kubernetes: kubernetes}
	v.accepted = slices.Concat(v.options.Accepted, acceptance.Named(acceptance.Origin, acceptedRisks(v.version)...), v.options.Accept)
	return v, nil
}

const (
	// catchUpTime is how long after a change of its spec CVO may need to update the
	// status of ClusterVersion: it resynchronizes every two to four minutes
	// (pkg/start/start.go, resyncPeriod).
	catchUpTime = 5 * time.Minute
	// catchUpShare is the part of a run's time that is spent waiting for it.
	catchUpShare    = 3
	catchUpInterval = time.Second
)

// awaitStatus waits until CVO has processed the last change of the spec of
// ClusterVersion, such as an accepted risk, since most findings about an out-of-date
// status are inconclusive. It waits no longer than CVO normally needs, and for a third
// of the run's time; a status that is out of date then is a finding. Where ctx ends before,
// it returns what was read last.
func (v view) awaitStatus(ctx context.Context) view {
	limit := min(cvo.SpecChange(v.version).Add(catchUpTime).Sub(v.cluster.Now()), v.options.Timeout/catchUpShare).Round(time.Second)
	if cvo.HasProcessed(v.version) || limit <= 0 {
		return v
	}
	v.progress.step("waiting up to %s for CVO to process the last change of ClusterVersion", limit)
	_ = wait.PollUntilContextTimeout(ctx, catchUpInterval, limit, false, func(ctx context.Context) (bool, error) {
		current := snapshot.Of(v.cluster)
		version, err := readClusterVersion(ctx, current)
		if err != nil {
			return false, nil //nolint:nilerr // the last version that was read stays
		}
		v.snapshot, v.version = current, version
		return cvo.HasProcessed(version), nil
	})
	described, err := v.described(v.about.Kubernetes)
	if err != nil {
		return v // the release that was known before stays
	}
	return described
}
