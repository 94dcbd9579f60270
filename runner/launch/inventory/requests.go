package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// Objects are the objects of the runs in one cluster: the requests for them, and what
// this process knows of them. Its methods may be called concurrently.
type Objects struct {
	Kubernetes kubernetes.Interface
	Metadata   metadata.Interface
	// Namespace is the only one with objects of runs; empty for all. A run that is confined to it has no
	// object of the cluster but its guard.
	Namespace string

	// Created were created or adopted, Ended are the ones whose deletion was
	// requested before the end of the run. Present were found when the run was continued,
	// Foreign have a planned name and differ from the plan.
	Created, Ended, Present, Foreign *Set
}

// New returns the objects of a cluster, of which nothing is known yet. The clients
// should have no rate limit (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface, objects metadata.Interface) *Objects {
	return &Objects{Kubernetes: client, Metadata: objects, Created: newSet(), Ended: newSet(), Present: newSet(), Foreign: newSet()}
}

// Kinds of objects that the runs may have, in the order of [Kinds].
func (o *Objects) Kinds() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return o.Namespace != "" && !k.Namespaced() && !k.Guard })
}

func (o *Objects) within(k Kind) string {
	if !k.Namespaced() {
		return metav1.NamespaceAll
	}
	return o.Namespace
}

// metadataOf returns the client for the metadata of a kind. An empty namespace is all of
// them, and that of objects without one.
func (o *Objects) metadataOf(k Kind, namespace string) metadata.ResourceInterface {
	return o.Metadata.Resource(k.Resource).Namespace(namespace)
}

// Post creates an object, and returns it as it was admitted.
func (o *Objects) Post(ctx context.Context, k Kind, object payload.Object, options metav1.CreateOptions) (payload.Object, error) {
	namespace := object.GetNamespace()
	return whole(o.group(k).Post().UseProtobufAsDefault().NamespaceIfScoped(namespace, namespace != "").Resource(k.Resource.Resource).
		VersionedParams(&options, scheme.ParameterCodec).Body(object).Do(ctx).Get())
}

// Get returns the existing object with the name of this one.
func (o *Objects) Get(ctx context.Context, k Kind, object payload.Object) (payload.Object, error) {
	namespace := object.GetNamespace()
	return whole(o.group(k).Get().UseProtobufAsDefault().NamespaceIfScoped(namespace, namespace != "").Resource(k.Resource.Resource).
		Name(object.GetName()).Do(ctx).Get())
}

func whole(response runtime.Object, err error) (payload.Object, error) {
	if err != nil {
		return nil, err
	}
	object, ok := response.(payload.Object)
	if !ok {
		return nil, fmt.Errorf("unexpected %T", response)
	}
	return object, nil
}

// Remove deletes the object with this name and UID. No error means that it is gone or
// terminating; another object of the name is not deleted.
func (o *Objects) Remove(ctx context.Context, k Kind, object metav1.Object, uid types.UID, options metav1.DeleteOptions) error {
	options.Preconditions = &metav1.Preconditions{UID: &uid}
	err := retry.Do(ctx, func(ctx context.Context) error {
		return o.metadataOf(k, object.GetNamespace()).Delete(ctx, object.GetName(), options)
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("could not delete %s: %w", Reference{k.Name, object.GetNamespace(), object.GetName()}, err)
}

func (o *Objects) group(k Kind) rest.Interface {
	switch k.Resource.Group {
	case batchv1.GroupName:
		return o.Kubernetes.BatchV1().RESTClient()
	case rbacv1.GroupName:
		return o.Kubernetes.RbacV1().RESTClient()
	case admissionregistrationv1.GroupName:
		return o.Kubernetes.AdmissionregistrationV1().RESTClient()
	}
	return o.Kubernetes.CoreV1().RESTClient()
}

// OfRun selects the objects with the label of a run.
func OfRun(runID string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: runID}.String()}
}

// OfAnyRun selects the objects of all runs: of those that are confined to the namespace, if there is one.
func (o *Objects) OfAnyRun() string {
	if o.Namespace == "" {
		return label.Run
	}
	return label.Run + "," + labels.Set{label.ControlPlane: o.Namespace}.String()
}

// ErrUnseen means that the objects of a kind cannot be listed.
var ErrUnseen = errors.New("the user has no permission to list them")

// Page lists the objects of a kind in all namespaces of the runs. The error is errUnseen for a
// kind of the guard that the user may not list.
func (o *Objects) Page(ctx context.Context, k Kind, options metav1.ListOptions) (runtime.Object, error) {
	found, err := o.metadataOf(k, o.within(k)).List(ctx, options)
	if err != nil {
		return &metav1.PartialObjectMetadataList{}, k.listError(err)
	}
	for i := range found.Items {
		trim(&found.Items[i])
	}
	return found, nil
}

// WholePage is Page with whole objects.
func (o *Objects) WholePage(ctx context.Context, k Kind, options metav1.ListOptions) (runtime.Object, error) {
	namespace := o.within(k)
	found, err := o.group(k).Get().UseProtobufAsDefault().NamespaceIfScoped(namespace, namespace != "").Resource(k.Resource.Resource).
		VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Get()
	if err != nil {
		return &metav1.PartialObjectMetadataList{}, k.listError(err)
	}
	return found, nil
}

// listError is nil if the kind does not exist and is of the guard.
func (k Kind) listError(err error) error {
	switch {
	case k.Guard && apierrors.IsNotFound(err):
		return nil
	case k.Guard && apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", ErrUnseen, err)
	}
	return err
}

// Foreground keeps an object until its dependents are gone.
func Foreground() metav1.DeleteOptions {
	policy := metav1.DeletePropagationForeground
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}

// MaxParallel bounds the concurrent requests.
const MaxParallel = 32

// Concurrently sends all requests, at most [MaxParallel] at a time, and returns their errors in the same order.
func Concurrently(requests []func() error) []error {
	errs := make([]error, len(requests))
	var group errgroup.Group
	group.SetLimit(MaxParallel)
	for i, request := range requests {
		group.Go(func() error {
			errs[i] = request()
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	return errs
}

// IsPresent is true for an object that Resume has found.
func (o *Objects) IsPresent(k Kind, object payload.Object) bool {
	_, present := o.Present.UID(object.GetLabels()[label.Run], k.Object(object))
	return present
}

// Forget removes an object from those that Resume has found.
func (o *Objects) Forget(object payload.Object) {
	if k, err := KindOf(object); err == nil {
		o.Present.Delete(object.GetLabels()[label.Run], k.Object(object))
	}
}
