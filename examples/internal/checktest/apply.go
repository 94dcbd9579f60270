package checktest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
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
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// Apply creates the objects of a YAML stream, their status and the namespaces
// they are in, and deletes the objects at the end of t.
func (s *Stage) Apply(t *testing.T, stream string) {
	t.Helper()
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(stream), 4096); ; {
		var object unstructured.Unstructured
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			s.create(t, &object)
		}
	}
}

// ApplyFile is Apply of a file.
func (s *Stage) ApplyFile(t *testing.T, name string) {
	t.Helper()
	stream, err := os.ReadFile(name) //nolint:gosec // A file of the test's own package.
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(t, string(stream))
}

func (s *Stage) create(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if namespace := object.GetNamespace(); namespace != "" {
		s.createNamespace(t, namespace)
	}
	client := s.client(t, object)
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("cannot create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("cannot delete %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		// Others have to see to what protects it, and must not be in the way of the next test.
		eventually(context.Background(), t, object.GetKind()+" "+object.GetName()+" to be gone", func(ctx context.Context) (bool, error) {
			_, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
			return len(created.GetFinalizers()) == 0 || apierrors.IsNotFound(err), nil
		})
	})
	if status, ok := object.Object["status"]; ok {
		// A resource without the subresource took the status with the rest.
		taken := created.Object["status"] != nil
		created.Object["status"] = status
		_, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		if err != nil && (!taken || !apierrors.IsNotFound(err)) {
			t.Fatalf("cannot set the status of %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	if object.GetKind() == "Role" || object.GetKind() == "ClusterRole" {
		s.roles = append(s.roles, object)
	}
}

func (s *Stage) createNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// client finds the resource of the object. That of a CRD that was just created
// may take a moment to be served.
func (s *Stage) client(t *testing.T, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := object.GroupVersionKind()
	var client dynamic.ResourceInterface
	eventually(t.Context(), t, "the resource of "+kind.String(), func(context.Context) (bool, error) {
		mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			s.mapper.Reset()
			return false, nil
		}
		if err != nil {
			return false, err
		}
		client = s.objects.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			client = s.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		return true, nil
	})
	return client
}

func eventually(ctx context.Context, t *testing.T, what string, done wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, done); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// applyManifests applies those of the check, but for the Job, and waits until
// user may what they allow.
func (s *Stage) applyManifests(t *testing.T, user string) {
	t.Helper()
	files, err := filepath.Glob("manifests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "-job.yaml") {
			s.ApplyFile(t, file)
		}
	}
	for _, role := range s.roles {
		s.awaitRole(t, user, role)
	}
}

// awaitRole waits until the API server, which learns of roles and bindings
// from watches of its own, lets user do what the role says.
func (s *Stage) awaitRole(t *testing.T, user string, object *unstructured.Unstructured) {
	t.Helper()
	var role rbacv1.Role
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		for _, question := range questions(role.Namespace, rule) {
			question.User = user
			review := &authorizationv1.SubjectAccessReview{Spec: question}
			eventually(t.Context(), t, object.GetKind()+" "+role.Name+" to be in force", func(ctx context.Context) (bool, error) {
				answer, err := s.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				return err == nil && answer.Status.Allowed, err
			})
		}
	}
}

// questions are what to ask to learn whether the rule is in force.
func questions(namespace string, rule rbacv1.PolicyRule) []authorizationv1.SubjectAccessReviewSpec {
	var asked []authorizationv1.SubjectAccessReviewSpec
	for _, path := range rule.NonResourceURLs {
		asked = append(asked, authorizationv1.SubjectAccessReviewSpec{
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: rule.Verbs[0]},
		})
	}
	if len(rule.Resources) == 0 {
		return asked
	}
	for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
		asked = append(asked, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Name: name, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
		}})
	}
	return asked
}
