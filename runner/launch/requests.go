package launch

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// objects is the client for the metadata of a kind. An empty namespace is all of
// them, and that of objects without one.
func (l *Launcher) objects(k kind, namespace string) metadata.ResourceInterface {
	return l.metadata.Resource(k.resource).Namespace(namespace)
}

// post creates an object, and returns it as it was admitted.
func (l *Launcher) post(ctx context.Context, k kind, object payload.Object, options metav1.CreateOptions) (payload.Object, error) {
	namespace := object.GetNamespace()
	return whole(l.group(k).Post().UseProtobufAsDefault().NamespaceIfScoped(namespace, namespace != "").Resource(k.resource.Resource).
		VersionedParams(&options, scheme.ParameterCodec).Body(object).Do(ctx).Get())
}

// get returns the existing object with the name of this one.
func (l *Launcher) get(ctx context.Context, k kind, object payload.Object) (payload.Object, error) {
	namespace := object.GetNamespace()
	return whole(l.group(k).Get().UseProtobufAsDefault().NamespaceIfScoped(namespace, namespace != "").Resource(k.resource.Resource).
		Name(object.GetName()).Do(ctx).Get())
}

// whole is the object of a response.
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

// group is the client for the API group of a kind.
func (l *Launcher) group(k kind) rest.Interface {
	switch k.resource.Group {
	case batchv1.GroupName:
		return l.client.BatchV1().RESTClient()
	case rbacv1.GroupName:
		return l.client.RbacV1().RESTClient()
	case admissionregistrationv1.GroupName:
		return l.client.AdmissionregistrationV1().RESTClient()
	}
	return l.client.CoreV1().RESTClient()
}

// ofRun selects the objects with the label of a run.
func ofRun(runID string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: runID}.String()}
}

// errUnseen means that the objects of a kind cannot be listed.
var errUnseen = errors.New("the user has no permission to list them")

// page lists the objects of a kind in all namespaces. The error is errUnseen for a
// kind of the guard that the user may not list.
func (l *Launcher) page(ctx context.Context, k kind, options metav1.ListOptions) (runtime.Object, error) {
	found, err := l.objects(k, metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return &metav1.PartialObjectMetadataList{}, k.listError(err)
	}
	for i := range found.Items {
		trim(&found.Items[i])
	}
	return found, nil
}

// wholePage is page with whole objects.
func (l *Launcher) wholePage(ctx context.Context, k kind, options metav1.ListOptions) (runtime.Object, error) {
	found, err := l.group(k).Get().UseProtobufAsDefault().Resource(k.resource.Resource).
		VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Get()
	if err != nil {
		return &metav1.PartialObjectMetadataList{}, k.listError(err)
	}
	return found, nil
}

// listError is nil if the kind does not exist and is of the guard.
func (k kind) listError(err error) error {
	switch {
	case k.guard && apierrors.IsNotFound(err):
		return nil
	case k.guard && apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", errUnseen, err)
	}
	return err
}

// watch watches the objects of a kind in all namespaces.
func (l *Launcher) watch(ctx context.Context, k kind, options metav1.ListOptions) (watch.Interface, error) {
	events, err := l.objects(k, metav1.NamespaceAll).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
			trim(object)
		}
		return event, true
	}), nil
}

// trim removes the large fields that are not used, since thousands of objects may
// be held. The annotations of a bookmark are kept: they end the initial events.
func trim(object *metav1.PartialObjectMetadata) {
	object.ManagedFields = nil
	if object.Name != "" {
		object.Annotations = nil
	}
}
