// Package versionoperator answers: what does the cluster-version operator (CVO) do with
// an update that is selected? It simulates a CVO that links runner/trigger/cvo as the
// README there describes, as far as a preflight can observe it: it evaluates the
// preconditions of a selected update repeatedly, repeats Upgradeable=False of
// ClusterOperators, writes conditions and history of ClusterVersion, and writes its status
// only when it differs. As the real one, it raises status.observedGeneration not when it
// processes the spec but when it applies a release: at its start, and when it accepts an
// update. (The real one also applies the present release again every two to four minutes.)
package versionoperator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/runner/trigger/cvo"
)

// interval is the time between two syncs; CVO's is about 15 s.
const interval = 300 * time.Millisecond

// Operator is a running CVO.
type Operator struct {
	clusterVersions  configv1client.ClusterVersionInterface
	clusterOperators configv1client.ClusterOperatorInterface
	precondition     precondition
	// Syncs and Writes count the syncs, and the writes of the status of ClusterVersion.
	Syncs, Writes atomic.Int64
	// applied is the generation of ClusterVersion when the release was last applied.
	applied atomic.Int64
}

// Start starts a CVO, which ends with the test.
func Start(tb testing.TB, config *rest.Config) *Operator {
	tb.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	openshift, err := configclient.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	o := &Operator{clusterVersions: openshift.ConfigV1().ClusterVersions(), clusterOperators: openshift.ConfigV1().ClusterOperators()}
	verdicts := cvo.New(live[*configv1.ClusterVersion](o.clusterVersions.Get),
		live[*corev1.ConfigMap](core.CoreV1().ConfigMaps(cvo.Namespace).Get), apierrors.IsNotFound, nil)
	o.precondition = &cvo.Gate[releaseContext]{
		Version: func(r releaseContext) string { return r.DesiredVersion }, Refuse: refuse,
		Judge: verdicts.Selected,
	}
	present, err := o.clusterVersions.Get(tb.Context(), "version", metav1.GetOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	o.applied.Store(present.Generation)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { o.run(ctx, tb) })
	tb.Cleanup(func() { cancel(); done.Wait() })
	return o
}

func (o *Operator) run(ctx context.Context, tb testing.TB) {
	tb.Helper()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := o.sync(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				tb.Logf("CVO could not sync: %v", err)
			}
			o.Syncs.Add(1)
		}
	}
}

// sync processes the spec of ClusterVersion once.
func (o *Operator) sync(ctx context.Context) error {
	current, err := o.clusterVersions.Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("could not read ClusterVersion: %w", err)
	}
	wanted := current.DeepCopy()
	o.process(ctx, wanted) // by the conditions of the last sync
	operators, err := o.clusterOperators.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("could not list the ClusterOperators: %w", err)
	}
	repeat(&wanted.Status, operators.Items)
	wanted.Status.ObservedGeneration = o.applied.Load()
	if equality.Semantic.DeepEqual(current.Status, wanted.Status) {
		return nil
	}
	o.Writes.Add(1)
	_, err = o.clusterVersions.UpdateStatus(ctx, wanted, metav1.UpdateOptions{})
	return err
}

// process computes the status: an update in progress is completed, and the selected one
// is accepted or refused.
func (o *Operator) process(ctx context.Context, object *configv1.ClusterVersion) {
	complete(&object.Status)
	target, isResolved := selected(object)
	if !isResolved {
		set(&object.Status, "Invalid", configv1.ConditionTrue, "InvalidClusterVersion", "spec.desiredUpdate.version: the update is not available")
		return
	}
	set(&object.Status, "Invalid", configv1.ConditionFalse, "", "")
	if target.Image == object.Status.Desired.Image {
		return
	}
	refused := upgradeable(object, target.Version)
	if refused == nil {
		refused = o.precondition.Run(ctx, releaseContext{DesiredVersion: target.Version})
	}
	risks, blocked := summarize(refused, target.Force)
	if blocked {
		set(&object.Status, releaseAccepted, configv1.ConditionFalse, "PreconditionChecks",
			fmt.Sprintf("Preconditions failed for payload loaded version=%q image=%q: %s", target.Version, target.Image, risks))
		return
	}
	accept(&object.Status, target, risks)
	o.applied.Store(object.Generation) // another release is applied at once
}

// selected is the update that the spec selects, or the present release; false if its
// version is not available.
func selected(object *configv1.ClusterVersion) (configv1.Update, bool) {
	desired := object.Spec.DesiredUpdate
	if desired == nil || desired.Image == "" && desired.Version == "" {
		return configv1.Update{Version: object.Status.Desired.Version, Image: object.Status.Desired.Image}, true
	}
	target := *desired
	known := append([]configv1.Release{object.Status.Desired}, object.Status.AvailableUpdates...)
	matches := func(r configv1.Release) bool {
		return target.Image != "" && r.Image == target.Image || target.Image == "" && r.Version == target.Version
	}
	if i := slices.IndexFunc(known, matches); i >= 0 {
		target.Version, target.Image = known[i].Version, known[i].Image
	}
	return target, target.Image != ""
}

// live reads objects from the API server; CVO reads them from its caches.
type live[Object any] func(context.Context, string, metav1.GetOptions) (Object, error)

// Get implements cvo.Lister.
func (l live[Object]) Get(name string) (Object, error) {
	return l(context.Background(), name, metav1.GetOptions{})
}
