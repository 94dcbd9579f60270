package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/followup"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/runner/trigger/upgradeconfig"
)

// kind is one of objects of which only the metadata is watched.
type kind struct{ group, kind, resource string }

func (k kind) object() *metav1.PartialObjectMetadata { return metadataOf(k.group, k.kind) }

// definition is the name of its CustomResourceDefinition.
func (k kind) definition() string { return k.resource + "." + k.group }

// builtinKinds are served by every API server.
func builtinKinds() []kind {
	return []kind{
		{"policy", "PodDisruptionBudget", "poddisruptionbudgets"},
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"},
		{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"},
	}
}

// definedKinds are served where their CustomResourceDefinition exists.
func definedKinds() []kind {
	return []kind{
		{"machineconfiguration.openshift.io", "MachineConfigPool", "machineconfigpools"},
	}
}

// inputNeeds are the permissions to watch what built-in checks read.
func inputNeeds() access.Needs {
	needs := access.Needs{Required: access.Verbs(access.Request{Group: configv1.GroupName, Resource: "clusteroperators"}, "list", "watch")}
	for _, each := range append(builtinKinds(), definedKinds()...) {
		needs.Required = append(needs.Required, access.Verbs(access.Request{Group: each.group, Resource: each.resource}, "list", "watch")...)
	}
	for _, namespace := range []string{acksNamespace, gatesNamespace} {
		needs.Required = append(needs.Required, access.Verbs(access.Request{Resource: "configmaps", Namespace: namespace}, "list", "watch")...)
	}
	return needs
}

// inputs are the objects that built-in checks read, as far as they are watched. Of others,
// such as alerts and pods, the judgement is repeated after a longer time.
type inputs struct {
	cache cache.Cache
	// watch has each event of a source reconcile.
	watch   func(source.Source) error
	changed func()
	// watched are the kinds of definedKinds that are watched. Only Reconcile uses it, which is
	// not called concurrently.
	watched map[kind]bool
}

// sources watches the objects that every cluster has.
func (i *inputs) sources() []source.Source {
	all := []source.Source{
		source.Kind(i.cache, &configv1.ClusterVersion{}, announces[*configv1.ClusterVersion](i.changed), differs[*configv1.ClusterVersion]()),
		source.Kind(i.cache, &configv1.ClusterOperator{}, announces[*configv1.ClusterOperator](i.changed), differs[*configv1.ClusterOperator]()),
		source.Kind(i.cache, &corev1.Node{}, announces[*corev1.Node](i.changed), differs[*corev1.Node]()),
		source.Kind(i.cache, records(), announces[*metav1.PartialObjectMetadata](i.changed), ofGates()),
	}
	for _, each := range builtinKinds() {
		all = append(all, source.Kind(i.cache, each.object(), announces[*metav1.PartialObjectMetadata](i.changed)))
	}
	return all
}

// ofGates selects the ConfigMaps with admin gates and acknowledgements.
func ofGates() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.NewTypedPredicateFuncs(func(object *metav1.PartialObjectMetadata) bool {
		return object.Namespace == acksNamespace && object.Name == acksName || object.Namespace == gatesNamespace && object.Name == gatesName
	})
}

// follow watches the objects whose CustomResourceDefinition exists, and no others.
func (i *inputs) follow(ctx context.Context) error {
	var failed []error
	for _, each := range definedKinds() {
		defined := definitions()
		err := i.cache.Get(ctx, client.ObjectKey{Name: each.definition()}, defined)
		exists := err == nil && defined.DeletionTimestamp.IsZero()
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			failed = append(failed, fmt.Errorf("could not read CustomResourceDefinition %q: %w", each.definition(), err))
		case exists && !i.watched[each]:
			err := i.watch(source.Kind(i.cache, each.object(), announces[*metav1.PartialObjectMetadata](i.changed)))
			i.watched[each] = err == nil
			failed = append(failed, err)
		case !exists && i.watched[each]:
			delete(i.watched, each)
			failed = append(failed, i.cache.RemoveInformer(ctx, each.object()))
		}
	}
	return errors.Join(failed...)
}

// announces calls a function for every event, and reconciles nothing.
func announces[T any](changed func()) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(context.Context, event.TypedCreateEvent[T], workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			changed()
		},
		UpdateFunc: func(context.Context, event.TypedUpdateEvent[T], workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			changed()
		},
		DeleteFunc: func(context.Context, event.TypedDeleteEvent[T], workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			changed()
		},
	}
}

// differs selects updates of more than the metadata that every write changes. What is
// compared is what trim keeps: a node that only reports its state again is the same.
func differs[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
		before, old := e.ObjectOld.DeepCopyObject().(client.Object)
		after, changed := e.ObjectNew.DeepCopyObject().(client.Object)
		if !old || !changed {
			return true // no copy of an object is anything else
		}
		before.SetResourceVersion("")
		after.SetResourceVersion("")
		return !equality.Semantic.DeepEqual(before, after)
	}}
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
	return watched.And(inputNeeds()).And(objectNeeds()).And(upgradeconfig.Needs()).And(published.Needs()).And(console.Needs()).And(runner.RunNeeds(image.PullAll, rehearsal.Off)).And(hold.CancelNeeds()).And(followup.Needs())
}

// objectNeeds are the permissions for UpdatePreflights, and for their events, which are
// in the namespace of events about objects without a namespace.
func objectNeeds() access.Needs {
	object := access.Request{Group: v1alpha1.Group, Resource: v1alpha1.Resource}
	status := access.Request{Group: v1alpha1.Group, Resource: v1alpha1.Resource, Subresource: "status"}
	recorded := access.Request{Group: "events.k8s.io", Resource: "events", Namespace: metav1.NamespaceDefault}
	return access.Needs{Required: slices.Concat(
		access.Verbs(object, "list", "watch", "create", "patch", "delete"), access.Verbs(status, "patch"), access.Verbs(recorded, "create", "patch"),
	)}
}
