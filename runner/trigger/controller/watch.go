package controller

import (
	"context"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
)

// name is that of the one ClusterVersion.
const name = "version"

// controllerName is the name of the controller in logs and metrics.
const controllerName = "preflight"

// The annotations of a node by which the machine-config operator requests a drain and
// reports that it was done.
const (
	desiredDrain = "machineconfiguration.openshift.io/desiredDrain"
	lastDrain    = "machineconfiguration.openshift.io/lastAppliedDrain"
)

func metadataOf(group, kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	version := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	object.SetGroupVersionKind(version)
	return object
}

func nodes() *metav1.PartialObjectMetadata   { return metadataOf("", "Node") }
func records() *metav1.PartialObjectMetadata { return metadataOf("", "ConfigMap") }
func definitions() *metav1.PartialObjectMetadata {
	return metadataOf("apiextensions.k8s.io", "CustomResourceDefinition")
}

// Cache is what the manager's cache is to hold: the ClusterVersion, and the metadata of
// records, nodes and CustomResourceDefinitions.
func Cache() (cache.Options, error) {
	recorded, err := labels.NewRequirement(record.Label, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{
		DefaultTransform: trim,
		ByObject: map[client.Object]cache.ByObject{
			&configv1.ClusterVersion{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
			&corev1.ConfigMap{}:        {Namespaces: map[string]cache.Config{record.Namespace: {LabelSelector: labels.NewSelector().Add(*recorded)}}},
		},
	}, nil
}

// trim drops metadata that is not used, which is most of a CustomResourceDefinition's.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
		kept := accessor.GetAnnotations()
		maps.DeleteFunc(kept, func(key, _ string) bool { return key != desiredDrain && key != lastDrain })
		accessor.SetAnnotations(kept)
	}
	return object, nil
}

// Needs are the permissions of the controller.
func Needs() access.Needs {
	watched := access.Needs{}
	for _, object := range []access.Request{
		{Group: configv1.GroupName, Resource: "clusterversions"},
		{Resource: "configmaps", Namespace: record.Namespace},
		{Resource: "nodes"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	} {
		watched.Required = append(watched.Required, access.Verbs(object, "list", "watch")...)
	}
	return watched.And(runner.RunNeeds(image.Manifests)).And(runner.CancelNeeds())
}

// watch has each event that may change the plan reconcile the one request.
func watch(m manager.Manager, c *controller) error {
	// All metadata but the annotations about drains is trimmed.
	drains := predicate.TypedAnnotationChangedPredicate[*metav1.PartialObjectMetadata]{}
	phases := predicate.TypedLabelChangedPredicate[*metav1.PartialObjectMetadata]{}
	schemas := predicate.TypedGenerationChangedPredicate[*metav1.PartialObjectMetadata]{}
	inputs := predicate.TypedFuncs[*configv1.ClusterVersion]{
		UpdateFunc: func(e event.TypedUpdateEvent[*configv1.ClusterVersion]) bool {
			return !sameInputs(e.ObjectOld, e.ObjectNew)
		},
	}
	caches := m.GetCache()
	return builder.ControllerManagedBy(m).Named(controllerName).
		WatchesRawSource(source.Kind(caches, &configv1.ClusterVersion{}, plan[*configv1.ClusterVersion](), inputs)).
		WatchesRawSource(source.Kind(caches, records(), plan[*metav1.PartialObjectMetadata](), phases)).
		WatchesRawSource(source.Kind(caches, nodes(), plan[*metav1.PartialObjectMetadata](), drains)).
		WatchesRawSource(source.Kind(caches, definitions(), plan[*metav1.PartialObjectMetadata](), schemas)).
		WatchesRawSource(source.TypedFunc[reconcile.Request](announce(c.conductor.ended))).
		Complete(c)
}

// request is the one request: everything is planned together.
func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// plan has every event of a kind reconcile the one request.
func plan[T any]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request { return []reconcile.Request{request()} })
}

// draining is true while the machine-config operator drains the node.
func draining(node *metav1.PartialObjectMetadata) bool {
	desired := node.Annotations[desiredDrain]
	return strings.HasPrefix(desired, "drain-") && desired != node.Annotations[lastDrain]
}

// anyDraining reports whether a node is being drained.
func (c *controller) anyDraining(ctx context.Context) (bool, error) {
	var all metav1.PartialObjectMetadataList
	listed := nodes().GroupVersionKind()
	listed.Kind += "List"
	all.SetGroupVersionKind(listed)
	if err := c.reader.List(ctx, &all); err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, func(node metav1.PartialObjectMetadata) bool { return draining(&node) }), nil
}
