package rights_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
)

// grant is a role with its binding, in a namespace or for the whole cluster.
type grant struct {
	namespace string
	role      string // an existing ClusterRole; empty for a new one with these rules
	rules     []rbacv1.PolicyRule
	subject   rbacv1.Subject
}

func (g grant) make(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	name := g.role
	if name == "" {
		role, err := api.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"}, Rules: g.rules,
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		name = role.Name
		t.Cleanup(func() { _ = api.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	meta := metav1.ObjectMeta{GenerateName: "granted-", Namespace: g.namespace}
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	if g.namespace != "" {
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: refer, Subjects: []rbacv1.Subject{g.subject}}
		if _, err := api.RbacV1().RoleBindings(g.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	made, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: refer, Subjects: []rbacv1.Subject{g.subject},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.RbacV1().ClusterRoleBindings().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	})
}

func rule(group, resource string, verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}
}

func TestWritesOfAnAccount(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	for name, tc := range map[string]struct {
		reason string
		grants func(home, away string, checker rbacv1.Subject) []grant
		want   func(home, away string) []string
	}{
		"Nothing": {
			reason: "an account without permissions",
			grants: func(string, string, rbacv1.Subject) []grant { return nil },
			want:   func(string, string) []string { return nil },
		},
		"Reads": {
			reason: "reading and reviews are no writes",
			grants: func(_, _ string, checker rbacv1.Subject) []grant {
				return []grant{
					{rules: rule("*", "pods", "get", "list", "watch"), subject: checker},
					{rules: rule("authorization.k8s.io", "*", "create"), subject: checker},
				}
			},
			want: func(string, string) []string { return nil },
		},
		"ReadsEverything": {
			reason: "reading everything includes connections",
			grants: func(_, away string, checker rbacv1.Subject) []grant {
				return []grant{{rules: rule("*", "*", "get", "list", "watch"), subject: checker, namespace: away}}
			},
			want: func(_, away string) []string {
				var all []string
				for _, resource := range []string{"pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"} {
					all = append(all, "get "+resource+" in namespace "+away)
				}
				return all
			},
		},
		"AtHome": {
			reason: "a write in the account's own namespace",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{{namespace: home, rules: rule("", "configmaps", "get", "create", "delete"), subject: checker}}
			},
			want: func(home, _ string) []string {
				return []string{"create configmaps in namespace " + home, "delete configmaps in namespace " + home}
			},
		},
		"Away": {
			reason: "a write in another namespace, where a binding names the account",
			grants: func(_, away string, checker rbacv1.Subject) []grant {
				return []grant{{namespace: away, rules: rule("apps", "deployments/scale", "patch"), subject: checker}}
			},
			want: func(_, away string) []string { return []string{"patch deployments/scale.apps in namespace " + away} },
		},
		"ByItsUserName": {
			reason: "a binding may name the account as a user",
			grants: func(_, away string, checker rbacv1.Subject) []grant {
				user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccount:" + checker.Namespace + ":" + checker.Name}
				return []grant{{namespace: away, rules: rule("", "configmaps", "create"), subject: user}}
			},
			want: func(_, away string) []string { return []string{"create configmaps in namespace " + away} },
		},
		"ByItsGroup": {
			reason: "a binding may name all accounts of a namespace",
			grants: func(home, away string, _ rbacv1.Subject) []grant {
				return []grant{{namespace: away, rules: rule("", "configmaps", "create"), subject: group("system:serviceaccounts:" + home)}}
			},
			want: func(_, away string) []string { return []string{"create configmaps in namespace " + away} },
		},
		"Everywhere": {
			reason: "a write in all namespaces is reported once, and one without a namespace",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{
					{rules: append(rule("", "configmaps", "create"), rule("", "nodes", "delete")...), subject: checker},
					{namespace: home, rules: rule("", "configmaps", "create"), subject: checker},
				}
			},
			want: func(string, string) []string { return []string{"create configmaps", "delete nodes"} },
		},
		"Everything": {
			reason: "one request describes an administrator",
			grants: func(_, _ string, checker rbacv1.Subject) []grant {
				return []grant{{role: "cluster-admin", subject: checker}}
			},
			want: func(string, string) []string { return []string{"do everything"} },
		},
		"Connects": {
			reason: "a node's proxy can run commands in its pods",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{{rules: rule("", "nodes/proxy", "get"), subject: checker}, {namespace: home, rules: rule("", "pods/exec", "get"), subject: checker}}
			},
			want: func(home, _ string) []string {
				return []string{"get nodes/proxy", "get pods/exec in namespace " + home}
			},
		},
		"Impersonates": {
			reason: "an account that impersonates has the permissions of others",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{
					{rules: rule("", "users", "impersonate"), subject: checker},
					{namespace: home, rules: rule("", "serviceaccounts", "impersonate"), subject: checker},
				}
			},
			want: func(home, _ string) []string {
				return []string{"impersonate users", "impersonate serviceaccounts in namespace " + home}
			},
		},
		"Default": {
			reason: "a permission of every user is not the account's",
			grants: func(string, string, rbacv1.Subject) []grant {
				return []grant{{rules: rule("apps", "controllerrevisions", "create"), subject: group("system:authenticated")}}
			},
			want: func(string, string) []string { return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			home, away := newNamespace(t, api), newNamespace(t, api)
			account := types.NamespacedName{Namespace: home, Name: "checker"}
			for _, each := range tc.grants(home, away, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: "checker"}) {
				each.make(t, api)
			}
			want := tc.want(home, away)
			slices.Sort(want)
			if diff := cmp.Diff(want, writes(t, api, account)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// writes are the write requests that an account may make.
func writes(t *testing.T, api kubernetes.Interface, account types.NamespacedName) []string {
	t.Helper()
	rights, err := rights.Writes(t.Context(), api, []types.NamespacedName{account})
	if err != nil || len(rights) != 1 || rights[0].Account != account || len(rights[0].Unserved) > 0 {
		t.Fatalf("rights %+v, error %v", rights, err)
	}
	var texts []string
	for _, request := range rights[0].Writes {
		texts = append(texts, access.Describe(request))
	}
	slices.Sort(texts)
	return texts
}

func newNamespace(t *testing.T, api kubernetes.Interface) string {
	t.Helper()
	made, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "access-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// The API server's authorizer decides the same, also about wildcards and names.
func TestWritesAgreeWithAccessReviews(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	home, away := newNamespace(t, api), newNamespace(t, api)
	account := types.NamespacedName{Namespace: home, Name: "checker"}
	named := rule("", "configmaps", "update")
	named[0].ResourceNames = []string{"one"}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	grant{namespace: home, subject: subject, rules: slices.Concat(rule("apps", "*/scale", "patch"), rule("batch", "*", "delete"), named)}.make(t, api)
	grant{namespace: away, subject: subject, rules: slices.Concat(rule("*", "deployments", "create"), rule("", "pods/exec", "*"))}.make(t, api)
	grant{subject: subject, rules: rule("", "persistentvolumes", "*")}.make(t, api)
	rights, err := rights.Writes(t.Context(), api, []types.NamespacedName{account})
	if err != nil {
		t.Fatal(err)
	}
	verbs := []string{"create", "update", "patch", "delete"}
	requests := slices.Concat(
		access.Verbs(access.Request{Group: "apps", Resource: "deployments"}, verbs...),
		access.Verbs(access.Request{Group: "batch", Resource: "jobs"}, verbs...),
		access.Verbs(access.Request{Resource: "configmaps"}, verbs...),
		access.Verbs(access.Request{Resource: "persistentvolumes"}, verbs...),
		access.Verbs(access.Request{Group: "apps", Resource: "deployments", Subresource: "scale"}, "update", "patch"),
		access.Verbs(access.Request{Group: "batch", Resource: "jobs", Subresource: "status"}, "update", "patch"),
		access.Verbs(access.Request{Resource: "pods", Subresource: "exec"}, "create", "get"),
	)
	for _, request := range requests {
		for _, request.Namespace = range []string{home, away, ""} {
			got := slices.ContainsFunc(rights[0].Writes, func(wider access.Request) bool { return access.Includes(wider, request) })
			if want := reviewed(t, api, account, request, got); want != got {
				t.Errorf("%s: allowed %t, by the API server %t", access.Describe(request), got, want)
			}
		}
	}
}

// reviewed is whether the API server allows a request. The authorizer observes roles
// after a delay, so there are several reviews until it agrees with want.
func reviewed(t *testing.T, api kubernetes.Interface, account types.NamespacedName, request access.Request, want bool) bool {
	t.Helper()
	allowed := !want
	for tries := 0; tries < 20 && allowed != want; tries++ {
		review, err := api.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: rights.User(account), ResourceAttributes: &request},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		allowed = review.Status.Allowed
	}
	return allowed
}

func TestNoAccountsNeedNoRequests(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	rights, err := rights.Writes(t.Context(), kubernetes.NewForConfigOrDie(unprivileged), nil)
	if err != nil || len(rights) > 0 {
		t.Errorf("rights %v, error %v", rights, err)
	}
}

func TestWritesWithoutPermission(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	_, err := rights.Writes(t.Context(), kubernetes.NewForConfigOrDie(unprivileged), []types.NamespacedName{{Namespace: "default", Name: "default"}})
	if !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want Forbidden", err)
	}
}

// An API that is registered and does not respond may have any resource.
func TestUnservedAPIIsReported(t *testing.T) {
	offerUnserved(t)
	api := kubernetes.NewForConfigOrDie(config)
	var versions []string
	for tries := 0; tries < 100 && len(versions) == 0; tries++ { // until the API server has tried it
		rights, err := rights.Writes(t.Context(), api, []types.NamespacedName{{Namespace: "default", Name: "default"}})
		if err != nil {
			t.Fatal(err)
		}
		versions = rights[0].Unserved
	}
	if diff := cmp.Diff([]string{unserved + "/v1"}, versions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// offerUnserved registers the group unserved of a server that does not exist.
func offerUnserved(t *testing.T) {
	t.Helper()
	services := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	broken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + unserved},
		"spec": map[string]any{
			"group": unserved, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "absent"},
		},
	}}
	if _, err := services.Create(t.Context(), broken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.Delete(context.Background(), "v1."+unserved, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
