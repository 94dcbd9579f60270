// Package user answers: does this work with exactly these permissions?
package user

import (
	"context"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
)

// observed bounds the wait for the authorizer of an API server.
const observed = time.Minute

// With returns the configuration of a new user who has exactly these permissions,
// required, optional and given. The API server already uses them: its authorizer reads
// roles from a watch, so the first requests of a user would be forbidden otherwise. The
// roles are deleted at the end of the test. Their namespaces must exist.
func With(tb testing.TB, admin *rest.Config, needs access.Needs) *rest.Config {
	tb.Helper()
	name := "user-" + rand.String(8)
	client := dynamic.NewForConfigOrDie(admin)
	for _, object := range needs.Roles(name, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}) {
		create(tb, client, object)
	}
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	all := access.Needs{Required: append(needs.OnlyOptional(), needs.Required...)}
	reviews := kubernetes.NewForConfigOrDie(config).AuthorizationV1()
	var missing error
	err := wait.PollUntilContextTimeout(tb.Context(), 20*time.Millisecond, observed, true, func(ctx context.Context) (bool, error) {
		missing = all.Check(ctx, reviews)
		return missing == nil, nil
	})
	if err != nil {
		tb.Fatalf("the API server does not use the roles of user %s: %v; %v", name, missing, err)
	}
	return config
}

// create creates a role or a binding, and deletes it at the end of the test.
func create(tb testing.TB, client dynamic.Interface, object runtime.Object) {
	tb.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		tb.Fatal(err)
	}
	role := &unstructured.Unstructured{Object: content}
	kind := rbacv1.SchemeGroupVersion.WithResource(strings.ToLower(role.GetKind()) + "s")
	resource := client.Resource(kind).Namespace(role.GetNamespace())
	if _, err := resource.Create(tb.Context(), role, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := resource.Delete(context.WithoutCancel(tb.Context()), role.GetName(), metav1.DeleteOptions{}); err != nil {
			tb.Error(err)
		}
	})
}
