package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/payload"
)

// kind is how the API server is asked about one kind of object.
type kind struct {
	name, version, resource string
	// guard is true for what guards a run, and is not one of its checks'.
	guard  bool
	create func(context.Context, payload.Object, metav1.CreateOptions) error
	get    func(ctx context.Context, namespace, name string) (payload.Object, error)
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// remove deletes everything in a namespace that the list options select.
	remove func(context.Context, string, metav1.DeleteOptions, metav1.ListOptions) error
}

// client is the part of client-go's typed clients that a kind needs.
type client[T payload.Object, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
}

func newKind[T payload.Object, L runtime.Object](name, version string, in func(namespace string) client[T, L]) kind {
	return kind{
		name: name, version: version, resource: resourceOf(name),
		create: func(ctx context.Context, object payload.Object, options metav1.CreateOptions) error {
			typed, ok := object.(T)
			if !ok {
				return fmt.Errorf("a %T is not a %s", object, name)
			}
			_, err := in(object.GetNamespace()).Create(ctx, typed, options)
			return err
		},
		get: func(ctx context.Context, namespace, name string) (payload.Object, error) {
			return in(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found, err := in(metav1.NamespaceAll).List(ctx, options)
			if err != nil {
				return nil, err
			}
			return found, meta.EachListItem(found, slim)
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			found, err := in(metav1.NamespaceAll).Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(found, func(event watch.Event) (watch.Event, bool) {
				event.Object = slimCopy(event.Object)
				return event, true
			}), nil
		},
		remove: func(ctx context.Context, namespace string, options metav1.DeleteOptions, selection metav1.ListOptions) error {
			return in(namespace).DeleteCollection(ctx, options, selection)
		},
	}
}

// slim drops what makes an object big. Of what is there already only the names
// and whose it is are of interest, and there may be thousands.
func slim(object runtime.Object) error {
	switch object := object.(type) {
	case *batchv1.Job:
		object.Spec, object.Status = batchv1.JobSpec{}, batchv1.JobStatus{}
	case *corev1.Pod:
		object.Spec, object.Status = corev1.PodSpec{}, corev1.PodStatus{}
	case *corev1.ConfigMap:
		object.Data, object.BinaryData = nil, nil
	}
	if object, ok := object.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return nil
}

// slimCopy is slim for an object that may be somebody else's too.
func slimCopy(object runtime.Object) runtime.Object {
	switch object := object.(type) {
	case *batchv1.Job:
		return &batchv1.Job{TypeMeta: object.TypeMeta, ObjectMeta: object.ObjectMeta}
	case *corev1.Pod:
		return &corev1.Pod{TypeMeta: object.TypeMeta, ObjectMeta: object.ObjectMeta}
	}
	return object
}

// kindsOf are all kinds of objects that a run leads to, in the order in which
// they are deleted: what uses others goes first.
func kindsOf(c kubernetes.Interface) []kind {
	return []kind{
		newKind(jobKind, "batch/v1", func(ns string) client[*batchv1.Job, *batchv1.JobList] { return c.BatchV1().Jobs(ns) }),
		newKind(podKind, "v1", func(ns string) client[*corev1.Pod, *corev1.PodList] { return c.CoreV1().Pods(ns) }),
		newKind("RoleBinding", rbacVersion, func(ns string) client[*rbacv1.RoleBinding, *rbacv1.RoleBindingList] {
			return c.RbacV1().RoleBindings(ns)
		}),
		newKind("ClusterRoleBinding", rbacVersion, func(string) client[*rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList] {
			return c.RbacV1().ClusterRoleBindings()
		}),
		newKind("Role", rbacVersion, func(ns string) client[*rbacv1.Role, *rbacv1.RoleList] { return c.RbacV1().Roles(ns) }),
		newKind("ClusterRole", rbacVersion, func(string) client[*rbacv1.ClusterRole, *rbacv1.ClusterRoleList] { return c.RbacV1().ClusterRoles() }),
		newKind("ServiceAccount", "v1", func(ns string) client[*corev1.ServiceAccount, *corev1.ServiceAccountList] {
			return c.CoreV1().ServiceAccounts(ns)
		}),
		guardKind(newKind(bindingKind, admissionVersion, func(string) client[*admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.ValidatingAdmissionPolicyBindingList] {
			return c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
		})),
		guardKind(newKind(policyKind, admissionVersion, func(string) client[*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyList] {
			return c.AdmissionregistrationV1().ValidatingAdmissionPolicies()
		})),
		newKind("ConfigMap", "v1", func(ns string) client[*corev1.ConfigMap, *corev1.ConfigMapList] { return c.CoreV1().ConfigMaps(ns) }),
	}
}

const (
	jobKind = "Job"
	podKind = "Pod"
)

// guardKind is a kind that a run does without where the API is missing or the
// caller may not use it.
func guardKind(k kind) kind {
	list := k.list
	k.guard = true
	k.list = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		found, err := list(ctx, options)
		switch {
		case apierrors.IsNotFound(err):
			return &admissionregistrationv1.ValidatingAdmissionPolicyList{}, nil
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("%w: %w", errUnseen, err)
		}
		return found, err
	}
	return k
}

// errUnseen means that it is not known what there is of a kind.
var errUnseen = errors.New("the user may not look")

// resourceOf is the resource of a kind that a run leads to.
func resourceOf(kind string) string {
	if kind == policyKind {
		return "validatingadmissionpolicies"
	}
	return strings.ToLower(kind) + "s"
}

// about is the kind as a request has it.
func (k kind) about() access.Request {
	group, _, found := strings.Cut(k.version, "/")
	if !found {
		group = "" // the core group has a version only
	}
	return access.Request{Group: group, Resource: k.resource}
}

func (l *Launcher) kindOf(object payload.Object) (kind, error) {
	name := object.GetObjectKind().GroupVersionKind().Kind
	for _, k := range l.kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("%q is not a kind that a preflight brings", name)
}
