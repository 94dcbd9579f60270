package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/followup"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
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

// differs selects updates of more than the metadata that every write changes. It compares the fields that trim keeps: a
// node that only reports its state again is the same.
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
	return watched.And(inputNeeds()).And(objectNeeds()).And(upgradeconfig.Needs()).And(published.Needs()).And(console.Needs()).And(
		runner.RunNeeds(image.PullAll, rehearsal.Off)).And(hold.CancelNeeds()).And(followup.Needs())
}

// objectNeeds are the permissions for UpdatePreflights, and for their events, which are
// in the namespace of events about objects without a namespace.
func objectNeeds() access.Needs {
	object := access.Request{Group: v1alpha1.Group, Resource: v1alpha1.Resource}
	status := access.Request{Group: v1alpha1.Group, Resource: v1alpha1.Resource, Subresource: "status"}
	recorded := access.Request{Group: "events.k8s.io", Resource: "events", Namespace: metav1.NamespaceDefault}
	return access.Needs{Required: slices.Concat(
		access.Verbs(object, "list", "watch", "create", "patch", "delete"), access.Verbs(status, "patch"),
		access.Verbs(recorded, "create", "patch"),
	)}
}

// name is the name of the one ClusterVersion.
const name = "version"

// The annotations of a node by which the machine-config operator requests a drain and
// reports that it was done.
const (
	desiredDrain = "machineconfiguration.openshift.io/desiredDrain"
	lastDrain    = "machineconfiguration.openshift.io/lastAppliedDrain"
)

// The namespaces of the ConfigMaps with the admin gates and their acknowledgements.
const (
	acksNamespace  = "openshift-config"
	gatesNamespace = published.Namespace
)

// The names of these ConfigMaps.
const (
	acksName  = "admin-acks"
	gatesName = "admin-gates"
)

func metadataOf(group, kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	version := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	object.SetGroupVersionKind(version)
	return object
}

func records() *metav1.PartialObjectMetadata { return metadataOf("", "ConfigMap") }
func definitions() *metav1.PartialObjectMetadata {
	return metadataOf("apiextensions.k8s.io", "CustomResourceDefinition")
}

// Cache returns the content of the manager's cache: the ClusterVersion, the relevant parts of nodes and
// ClusterOperators, and the metadata of other objects.
func Cache() (cache.Options, error) {
	recorded, err := labels.NewRequirement(record.Label, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{
		DefaultTransform: trim,
		ByObject: map[client.Object]cache.ByObject{
			&configv1.ClusterVersion{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				record.Namespace: {LabelSelector: labels.NewSelector().Add(*recorded)},
				acksNamespace:    {FieldSelector: fields.OneTermEqualSelector("metadata.name", acksName)},
				gatesNamespace:   {}, // a selector cannot have the names of two
			}},
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
	switch object := object.(type) {
	case *corev1.Node:
		trimNode(object)
	case *configv1.ClusterOperator:
		trimOperator(object)
	}
	return object, nil
}

// trimNode keeps the fields of a node that built-in checks evaluate, without the times at which it reports.
func trimNode(node *corev1.Node) {
	status := corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: node.Status.NodeInfo.KubeletVersion}}
	for _, condition := range node.Status.Conditions {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{Type: condition.Type, Status: condition.Status})
	}
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints}
	node.Status = status
}

// trimOperator keeps the fields of a ClusterOperator that built-in checks evaluate.
func trimOperator(operator *configv1.ClusterOperator) {
	status := configv1.ClusterOperatorStatus{Versions: operator.Status.Versions}
	for _, condition := range operator.Status.Conditions {
		status.Conditions = append(status.Conditions,
			configv1.ClusterOperatorStatusCondition{Type: condition.Type, Status: condition.Status, Reason: condition.Reason})
	}
	operator.Spec, operator.Status = configv1.ClusterOperatorSpec{}, status
}

// draining is true while the machine-config operator drains the node.
func draining(node corev1.Node) bool {
	desired := node.Annotations[desiredDrain]
	return strings.HasPrefix(desired, "drain-") && desired != node.Annotations[lastDrain]
}

// listTimeout bounds the first list of UpdatePreflights, which fails while
// the API server does not serve them.
const listTimeout = 10 * time.Second

// definition is the name of the CustomResourceDefinition of UpdatePreflights.
const definition = ownsignal.Definition

// objects are the UpdatePreflights. Only Reconcile uses them, which is not called
// concurrently.
type objects struct {
	cache  cache.Cache
	logger *slog.Logger
	// watch has each event of a source reconcile.
	watch func(source.Source) error
	// watched is true while the objects are watched, and missing while it is known that
	// the CustomResourceDefinition does not exist.
	watched, missing bool
	// last are the objects of the last list.
	last []v1alpha1.UpdatePreflight
}

// list returns the objects that are not being deleted, or, with an error, the objects of the last list. It returns none
// if the CustomResourceDefinition does not exist: its creation reconciles.
func (o *objects) list(ctx context.Context) ([]v1alpha1.UpdatePreflight, error) {
	defined := definitions()
	err := o.cache.Get(ctx, client.ObjectKey{Name: definition}, defined)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !defined.DeletionTimestamp.IsZero():
		return nil, o.unwatch(ctx)
	case err != nil:
		return o.last, fmt.Errorf("could not read CustomResourceDefinition %q: %w", definition, err)
	}
	if err := o.read(ctx); err != nil {
		return o.last, err
	}
	return o.last, o.startWatch()
}

// read sets last.
func (o *objects) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all v1alpha1.UpdatePreflightList
	if err := o.cache.List(ctx, &all); err != nil {
		return fmt.Errorf("could not list the UpdatePreflights: %w", err)
	}
	o.last = slices.DeleteFunc(all.Items, func(object v1alpha1.UpdatePreflight) bool {
		return !object.DeletionTimestamp.IsZero() || object.Spec.HostedCluster != nil // those are package hostedruns's
	})
	if len(o.last) > runplan.MaxObjects {
		o.logger.Warn("there are too many UpdatePreflights: the newest have no status", "number", len(o.last), "limit", runplan.MaxObjects)
	}
	return nil
}

// startWatch has each change of a spec or a label reconcile.
func (o *objects) startWatch() error {
	if o.watched {
		return nil
	}
	changed := predicate.Or(
		predicate.TypedGenerationChangedPredicate[*v1alpha1.UpdatePreflight]{}, predicate.TypedLabelChangedPredicate[*v1alpha1.UpdatePreflight]{})
	if err := o.watch(source.Kind(o.cache, &v1alpha1.UpdatePreflight{}, plan[*v1alpha1.UpdatePreflight](), changed)); err != nil {
		return fmt.Errorf("could not watch the UpdatePreflights: %w", err)
	}
	o.watched, o.missing = true, false
	o.logger.Info("watching the UpdatePreflights")
	return nil
}

// unwatch ends the watch of objects that no longer exist.
func (o *objects) unwatch(ctx context.Context) error {
	if !o.missing {
		o.logger.Warn("CustomResourceDefinition does not exist: the controller runs without UpdatePreflights until it is created", "name",
			definition)
	}
	o.missing = true
	if !o.watched {
		return nil
	}
	o.watched, o.last = false, nil
	return o.cache.RemoveInformer(ctx, &v1alpha1.UpdatePreflight{})
}
