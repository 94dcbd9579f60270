package controller

import (
	"context"
	"maps"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// controllerName is the name of the controller in logs and metrics, recorderName that of
// the controller in events.
const (
	controllerName = "preflight"
	recorderName   = "update-preflight"
)

// watch has each event that may change the plan reconcile the one request. Those of
// UpdatePreflights are watched later, when the API server serves them. ended has a value when
// a run has ended. The inputs reconcile nothing.
func watch(m manager.Manager, reconciler reconcile.Reconciler, ended <-chan struct{}, inputs []source.Source) (runtimecontroller.Controller, error) {
	// All metadata but the annotations about drains is trimmed.
	drains := predicate.TypedAnnotationChangedPredicate[*corev1.Node]{}
	// The record of a run in progress is written once a second, that of an ended run only
	// where another client edits it, or ends its verdict.
	edits := predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) ||
				e.ObjectNew.ResourceVersion != e.ObjectOld.ResourceVersion && (record.Ended(e.ObjectNew.Labels) || e.ObjectNew.Namespace == published.Namespace)
		},
	}
	// What is published is restored when another client changes or deletes it.
	recorded := predicate.NewTypedPredicateFuncs(func(object *metav1.PartialObjectMetadata) bool {
		return object.Namespace == record.Namespace || object.Namespace == published.Namespace && object.Name == published.Name
	})
	schemas := predicate.TypedGenerationChangedPredicate[*metav1.PartialObjectMetadata]{}
	changes := predicate.TypedFuncs[*configv1.ClusterVersion]{
		UpdateFunc: func(e event.TypedUpdateEvent[*configv1.ClusterVersion]) bool {
			return !runplan.SameInputs(e.ObjectOld, e.ObjectNew)
		},
	}
	caches := m.GetCache()
	built := builder.ControllerManagedBy(m).Named(controllerName).
		WatchesRawSource(source.Kind(caches, &configv1.ClusterVersion{}, plan[*configv1.ClusterVersion](), changes)).
		WatchesRawSource(source.Kind(caches, records(), plan[*metav1.PartialObjectMetadata](), recorded, edits)).
		WatchesRawSource(source.Kind(caches, &corev1.Node{}, plan[*corev1.Node](), drains)).
		WatchesRawSource(source.Kind(caches, definitions(), plan[*metav1.PartialObjectMetadata](), schemas)).
		WatchesRawSource(source.TypedFunc[reconcile.Request](announcement.Announce(ended, request())))
	for _, each := range inputs {
		built = built.WatchesRawSource(each)
	}
	return built.Build(reconciler)
}

// request is the one request: everything is planned together.
func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// plan has every event of a kind reconcile the one request.
func plan[T any]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request { return []reconcile.Request{request()} })
}
