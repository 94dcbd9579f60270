package checktest

import (
	"context"
	"os"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// Apply creates the objects of a YAML stream with their status, and their namespaces.
// It deletes the objects at the end of t.
func (e *Environment) Apply(t *testing.T, stream string) {
	t.Helper()
	for _, object := range parse(t, []byte(stream)) {
		e.create(t, object)
	}
}

// ApplyFile is Apply for a file.
func (e *Environment) ApplyFile(t *testing.T, name string) {
	t.Helper()
	stream, err := os.ReadFile(name) //nolint:gosec // A file of the test's package.
	if err != nil {
		t.Fatal(err)
	}
	e.Apply(t, string(stream))
}

func (e *Environment) create(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if namespace := object.GetNamespace(); namespace != "" {
		e.createNamespace(t, namespace)
	}
	client := e.client(t, object)
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("cannot create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("cannot delete %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		// An object with finalizers is deleted later by its controllers.
		eventually(context.Background(), t, object.GetKind()+" "+object.GetName()+" to be deleted", func(ctx context.Context) (bool, error) {
			_, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
			return len(created.GetFinalizers()) == 0 || apierrors.IsNotFound(err), nil
		})
	})
	if status, ok := object.Object["status"]; ok {
		// A resource without the subresource accepts the status in the creation.
		accepted := created.Object["status"] != nil
		created.Object["status"] = status
		_, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		if err != nil && (!accepted || !apierrors.IsNotFound(err)) {
			t.Fatalf("cannot set the status of %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	if object.GetKind() == "Role" || object.GetKind() == "ClusterRole" {
		e.roles = append(e.roles, object)
	}
}

func (e *Environment) createNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := e.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// client returns a client for the resource of the object. It waits until the resource
// of a new CRD is served.
func (e *Environment) client(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := object.GroupVersionKind()
	var client dynamic.ResourceInterface
	eventually(t.Context(), t, "the resource of "+kind.String(), func(context.Context) (bool, error) {
		mapping, err := e.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			e.mapper.Reset()
			return false, nil
		}
		if err != nil {
			return false, err
		}
		client = e.objects.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			client = e.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		return true, nil
	})
	return client
}

func eventually(ctx context.Context, t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, maxWait, true, done); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// applyManifests applies the manifests of the check except the Job, and waits until
// the API server enforces the roles for user.
func (e *Environment) applyManifests(t *testing.T, user string) {
	t.Helper()
	for _, object := range manifests(t) {
		if object.GetKind() != "Job" {
			e.create(t, object)
		}
	}
	for _, role := range e.roles {
		e.awaitRole(t, user, role)
	}
}

// awaitRole waits until the API server, which watches roles and bindings, grants the
// permissions of the role to user.
func (e *Environment) awaitRole(t *testing.T, user string, object *unstructured.Unstructured) {
	t.Helper()
	var role rbacv1.Role
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		for _, request := range requests(role.Namespace, rule) {
			request.User = user
			review := &authorizationv1.SubjectAccessReview{Spec: request}
			eventually(t.Context(), t, object.GetKind()+" "+role.Name+" to be enforced", func(ctx context.Context) (bool, error) {
				response, err := e.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				return err == nil && response.Status.Allowed, err
			})
		}
	}
}

// requests returns requests that are allowed once the rule is enforced.
func requests(namespace string, rule rbacv1.PolicyRule) []authorizationv1.SubjectAccessReviewSpec {
	var all []authorizationv1.SubjectAccessReviewSpec
	for _, path := range rule.NonResourceURLs {
		all = append(all, authorizationv1.SubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: rule.Verbs[0]},
		})
	}
	if len(rule.Resources) == 0 {
		return all
	}
	for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
		all = append(all, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Name: name, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
		}})
	}
	return all
}
