// Package inventory answers: which objects does a run have in the cluster, and of which kinds?
//
// [New] returns the [Objects] of a cluster, which the launcher, the read-only guard and the cleanup share: requests for
// them, and a record of the objects that this process has created, ended, or found to differ from the plan. The kinds
// are the kinds that a run may create.
package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// The kinds that are treated apart.
const (
	JobKind     = "Job"
	PodKind     = "Pod"
	PolicyKind  = "ValidatingAdmissionPolicy"
	BindingKind = "ValidatingAdmissionPolicyBinding"
	// SecretKind is the kind of Secrets, which a release may not contain.
	SecretKind = "Secret"
	// ConfigMapKind is the kind of ConfigMaps, which may have what a Secret has.
	ConfigMapKind = "ConfigMap"
)

// Kind is a kind of objects that a run creates, itself or through a controller.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
	// Guard is true for the kinds of the guard. A run works without them if the API
	// does not exist or the user has no permission.
	Guard bool
}

// Kinds returns all kinds in the order of their deletion: an object is deleted before those that it refers to.
func Kinds() []Kind {
	admission := admissionregistrationv1.SchemeGroupVersion
	return []Kind{
		{Name: JobKind, Resource: batchv1.SchemeGroupVersion.WithResource("jobs")},
		{Name: PodKind, Resource: corev1.SchemeGroupVersion.WithResource("pods")},
		{Name: "RoleBinding", Resource: rbacv1.SchemeGroupVersion.WithResource("rolebindings")},
		{Name: "ClusterRoleBinding", Resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")},
		{Name: "Role", Resource: rbacv1.SchemeGroupVersion.WithResource("roles")},
		{Name: "ClusterRole", Resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles")},
		{Name: "ServiceAccount", Resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts")},
		{Name: BindingKind, Resource: admission.WithResource("validatingadmissionpolicybindings"), Guard: true},
		{Name: PolicyKind, Resource: admission.WithResource("validatingadmissionpolicies"), Guard: true},
		{Name: ConfigMapKind, Resource: corev1.SchemeGroupVersion.WithResource("configmaps")},
	}
}

// Namespaced is true for a kind whose objects are in a namespace.
func (k Kind) Namespaced() bool {
	return !k.Guard && k.Name != "ClusterRole" && k.Name != "ClusterRoleBinding"
}

// KindOf returns the kind of a planned object.
func KindOf(object payload.Object) (Kind, error) {
	name := object.GetObjectKind().GroupVersionKind().Kind
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("a preflight creates no objects of kind %q", name)
}

// Request is the kind in a request for access.
func (k Kind) Request() access.Request {
	return access.Request{Group: k.Resource.Group, Resource: k.Resource.Resource}
}

// Object names an object of the kind.
func (k Kind) Object(object metav1.Object) preflight.Object {
	return preflight.Object{
		APIVersion: k.Resource.GroupVersion().String(), Kind: k.Name, Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// Reference identifies an object. Namespace is empty for cluster roles and their bindings.
type Reference struct {
	Kind, Namespace, Name string
}

// Refer returns the reference to an object.
func Refer(kind, namespace, name string) Reference {
	return Reference{Kind: kind, Namespace: namespace, Name: name}
}

func (r Reference) String() string {
	if r.Namespace == "" {
		return fmt.Sprintf("%s %q", r.Kind, r.Name)
	}
	return fmt.Sprintf("%s %q in namespace %q", r.Kind, r.Name, r.Namespace)
}

// ReferenceTo returns the reference to a planned object, which has its kind.
func ReferenceTo(object payload.Object) Reference {
	return Reference{object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName()}
}

// CompareReferences orders bindings last, since the API server requires the objects that they refer to.
func CompareReferences(a, b Reference) int {
	return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func rank(kind string) int {
	if IsBinding(kind) {
		return 1
	}
	return 0
}

// IsBinding is true for a kind whose objects refer to a role and to accounts.
func IsBinding(kind string) bool { return kind == "RoleBinding" || kind == "ClusterRoleBinding" }

// Objects are the objects of the runs in one cluster: the requests for them, and what
// this process knows of them. Its methods may be called concurrently.
type Objects struct {
	Kubernetes kubernetes.Interface
	Metadata   metadata.Interface
	// Namespace is the only namespace with objects of runs; empty for all. A run that is confined to it has no
	// cluster-scoped objects but its guard.
	Namespace string

	// Created objects were created or adopted; the deletion of Ended objects was requested before the end of the run.
	// Present objects were found when the run was continued; Foreign objects have a planned name and differ from the
	// plan.
	Created, Ended, Present, Foreign *Set
}

// New returns the objects of a cluster, without any known yet. The clients should have no rate limit (rest.Config.QPS
// -1): the requests of a run are few and bounded.
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

// metadataOf returns the client for the metadata of a kind. An empty namespace selects all namespaces, and
// cluster-scoped objects.
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

// OfAnyRun selects the objects of all runs: only of runs that are confined to the namespace, if one is given.
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

// listError is nil if the kind does not exist and belongs to the guard.
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

// Set is a set of objects of runs, with their UIDs.
type Set struct {
	mutex sync.Mutex
	// objects are by the ID of the run.
	objects map[string]map[preflight.Object]types.UID
}

func newSet() *Set { return &Set{objects: map[string]map[preflight.Object]types.UID{}} }

// Add adds an object of a run.
func (s *Set) Add(run string, object preflight.Object, uid types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.objects[run] == nil {
		s.objects[run] = map[preflight.Object]types.UID{}
	}
	s.objects[run][object] = uid
}

// Delete removes an object of a run.
func (s *Set) Delete(run string, object preflight.Object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.objects[run], object)
}

// UID returns the UID of an object of a run; false if it is not in the set.
func (s *Set) UID(run string, object preflight.Object) (types.UID, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	uid, found := s.objects[run][object]
	return uid, found
}

// Of returns the objects of a run, sorted.
func (s *Set) Of(run string) []preflight.Object {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(s.objects[run]), Compare)
}

// HasUID reports whether an object of a run has one of the UIDs.
func (s *Set) HasUID(run string, uids ...types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, uid := range s.objects[run] {
		if slices.Contains(uids, uid) {
			return true
		}
	}
	return false
}

// Compare orders objects by kind, namespace and name.
func Compare(a, b preflight.Object) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Watch watches the objects of a kind in all namespaces of the runs.
func (o *Objects) Watch(ctx context.Context, k Kind, options metav1.ListOptions) (watch.Interface, error) {
	from, err := o.metadataOf(k, o.within(k)).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	t := &trimming{from: from, trimmed: make(chan watch.Event), stopped: make(chan struct{})}
	go t.forward()
	return t, nil
}

// trimming is a watch whose objects are trimmed. Unlike the watch of watch.Filter, it ends when it is stopped, even if
// its current event is not received.
type trimming struct {
	from    watch.Interface
	trimmed chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements watch.Interface.
func (t *trimming) ResultChan() <-chan watch.Event { return t.trimmed }

// Stop implements watch.Interface.
func (t *trimming) Stop() {
	t.once.Do(func() { close(t.stopped) })
	t.from.Stop()
}

func (t *trimming) forward() {
	defer close(t.trimmed)
	for event := range t.from.ResultChan() {
		if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
			trim(object)
		}
		select {
		case t.trimmed <- event:
		case <-t.stopped:
			return
		}
	}
}

// trim removes the large fields that are not used, since thousands of objects may
// be held. The annotations of a bookmark are kept: they end the initial events.
func trim(object *metav1.PartialObjectMetadata) {
	object.ManagedFields = nil
	if object.Name != "" {
		object.Annotations = nil
	}
}
