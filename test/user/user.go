// Package user answers: does this work with exactly these permissions?
package user

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/access"
)

// observed bounds the wait for the authorizer of an API server.
const observed = time.Minute

// With returns the configuration of a new user who has exactly these permissions,
// required, optional and given.
func With(tb testing.TB, admin *rest.Config, needs access.Needs) *rest.Config {
	tb.Helper()
	var roles []rbacv1.Role
	for _, object := range needs.Roles("", nil) {
		switch role := object.(type) {
		case *rbacv1.Role:
			roles = append(roles, *role)
		case *rbacv1.ClusterRole:
			roles = append(roles, rbacv1.Role{Rules: role.Rules})
		}
	}
	config := rest.CopyConfig(admin)
	config.Impersonate.UserName = Bound(tb, admin, roles...)
	return config
}

// Bound returns the name of a new user to whom copies of these roles are bound, and no
// others. A role without a namespace is a ClusterRole. The API server already uses the
// roles: its authorizer reads them from a watch, so the first requests of the user would be
// forbidden otherwise. They are deleted at the end of the test. Their namespaces must exist.
func Bound(tb testing.TB, admin *rest.Config, roles ...rbacv1.Role) string {
	tb.Helper()
	unlimited := rest.CopyConfig(admin)
	unlimited.QPS = -1
	b := binder{client: kubernetes.NewForConfigOrDie(unlimited), user: "user-" + rand.String(8)}
	for _, role := range roles {
		b.bind(tb, role)
	}
	b.await(tb, roles)
	return b.user
}

// Roles returns the roles in YAML documents. A ClusterRole is a role without a namespace.
func Roles(tb testing.TB, documents string) []rbacv1.Role {
	tb.Helper()
	var roles []rbacv1.Role
	for document := range strings.SplitSeq(documents, "---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			tb.Fatal(err)
		}
		if role.Kind == "Role" || role.Kind == "ClusterRole" {
			roles = append(roles, role)
		}
	}
	return roles
}

// Await returns when the API server uses roles that were just bound to a user.
func Await(tb testing.TB, admin *rest.Config, user string, roles ...rbacv1.Role) {
	tb.Helper()
	binder{client: kubernetes.NewForConfigOrDie(admin), user: user}.await(tb, roles)
}

// binder creates roles and bindings, which have the name of their user.
type binder struct {
	client kubernetes.Interface
	user   string
}

func (b binder) bind(tb testing.TB, role rbacv1.Role) {
	tb.Helper()
	meta := metav1.ObjectMeta{Name: b.user, Namespace: role.Namespace}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: b.user}}
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: b.user}
	if role.Namespace == "" {
		refer.Kind = "ClusterRole"
		roles, bindings := b.client.RbacV1().ClusterRoles(), b.client.RbacV1().ClusterRoleBindings()
		create(tb, roles, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: role.Rules}, b.user)
		create(tb, bindings, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: refer}, b.user)
		return
	}
	roles, bindings := b.client.RbacV1().Roles(role.Namespace), b.client.RbacV1().RoleBindings(role.Namespace)
	create(tb, roles, &rbacv1.Role{ObjectMeta: meta, Rules: role.Rules}, b.user)
	create(tb, bindings, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: refer}, b.user)
}

// creator is the client of one resource.
type creator[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// create creates an object, and deletes it at the end of the test.
func create[T any](tb testing.TB, objects creator[T], object T, name string) {
	tb.Helper()
	if _, err := objects.Create(tb.Context(), object, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := objects.Delete(context.WithoutCancel(tb.Context()), name, metav1.DeleteOptions{}); err != nil {
			tb.Error(err)
		}
	})
}

// await returns when the API server uses all roles. The rules of a role take effect at once.
func (b binder) await(tb testing.TB, roles []rbacv1.Role) {
	tb.Helper()
	err := wait.PollUntilContextTimeout(tb.Context(), 20*time.Millisecond, observed, true, func(ctx context.Context) (bool, error) {
		for len(roles) > 0 {
			if allowed, err := b.allowed(ctx, roles[0]); !allowed {
				return false, err
			}
			roles = roles[1:]
		}
		return true, nil
	})
	if err != nil {
		tb.Fatalf("the API server does not use the role of user %s in namespace %q: %v", b.user, roles[0].Namespace, err)
	}
}

// allowed reports whether the user may make the first request of a role; true if it has no
// rules.
func (b binder) allowed(ctx context.Context, role rbacv1.Role) (bool, error) {
	if len(role.Rules) == 0 {
		return true, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: b.user}}
	rule := role.Rules[0]
	if len(rule.NonResourceURLs) > 0 {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
	} else {
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: role.Namespace, Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: rule.Verbs[0],
		}
		if len(rule.ResourceNames) > 0 {
			review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
		}
	}
	reviewed, err := b.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return reviewed.Status.Allowed, nil
}
