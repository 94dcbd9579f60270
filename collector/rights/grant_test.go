package rights_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/rights"
)

func replaceAll(texts []string, old, by string) []string {
	var replaced []string
	for _, text := range texts {
		replaced = append(replaced, strings.ReplaceAll(text, old, by))
	}
	return replaced
}

func TestGrants(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	pods, nodes := rule("", "pods", "get"), rule("", "nodes", "*")
	home, away := newNamespace(t, api), newNamespace(t, api)
	subject := func(kind, name string) rbacv1.Subject {
		if kind == rbacv1.ServiceAccountKind {
			return rbacv1.Subject{Kind: kind, Namespace: home, Name: name}
		}
		return rbacv1.Subject{Kind: kind, APIGroup: rbacv1.GroupName, Name: name}
	}
	for name, tc := range map[string]struct {
		reason, account string
		grants          []grant
		want            []rights.Grant
	}{
		"None": {reason: "no binding names it", account: "none"},
		"ByName": {
			reason: "in namespaces and in the cluster", account: "named",
			grants: []grant{
				{namespace: away, rules: pods, subject: subject(rbacv1.ServiceAccountKind, "named")},
				{namespace: away, rules: nodes, subject: subject(rbacv1.ServiceAccountKind, "named")},
				{rules: nodes, subject: subject(rbacv1.ServiceAccountKind, "named")},
			},
			want: []rights.Grant{{Rules: nodes}, {Namespace: away, Rules: append(append([]rbacv1.PolicyRule(nil), pods...), nodes...)}},
		},
		"ByUserName": {
			reason: "a binding may name the account as a user", account: "user",
			grants: []grant{{namespace: away, rules: pods, subject: subject(rbacv1.UserKind, "system:serviceaccount:"+home+":user")}},
			want:   []rights.Grant{{Namespace: away, Rules: pods}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, each := range tc.grants {
				each.make(t, api)
			}
			account := types.NamespacedName{Namespace: home, Name: tc.account}
			got, err := rights.Grants(t.Context(), api.RbacV1(), []types.NamespacedName{account})
			if err != nil || got[account].Err != nil {
				t.Fatal(err, got[account].Err)
			}
			sorted := cmp.Transformer("rules", func(rules []rbacv1.PolicyRule) map[string]bool {
				texts := map[string]bool{}
				for _, rule := range rules {
					texts[rule.String()] = true
				}
				return texts
			})
			if diff := cmp.Diff(tc.want, got[account].Grants, sorted); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGrantsOfTheGroup(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	namespace := newNamespace(t, api)
	grant{namespace: namespace, rules: rule("", "pods", "get"), subject: rbacv1.Subject{
		Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + namespace,
	}}.make(t, api)
	account := types.NamespacedName{Namespace: namespace, Name: "any"}
	got, err := rights.Grants(t.Context(), api.RbacV1(), []types.NamespacedName{account})
	if diff := cmp.Diff([]rights.Grant{{Namespace: namespace, Rules: rule("", "pods", "get")}}, got[account].Grants); diff != "" ||
		err != nil {
		t.Errorf("error %v (-want, +got):\n%s", err, diff)
	}
}

// The controller of aggregated ClusterRoles writes their rules.
func TestGrantsOfAnAggregatedRole(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	namespace := newNamespace(t, api)
	grant{
		namespace: namespace, role: "view",
		subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "viewer"},
	}.make(t, api)
	account := types.NamespacedName{Namespace: namespace, Name: "viewer"}
	got, err := rights.Grants(t.Context(), api.RbacV1(), []types.NamespacedName{account})
	if err != nil || len(got[account].Grants) != 1 || len(got[account].Grants[0].Rules) < 5 {
		t.Errorf("error %v, granted %+v; want the rules of view", err, got[account])
	}
}

func TestGrantsAreBounded(t *testing.T) {
	const many = 201
	var objects []runtime.Object
	for i := range many {
		namespace := fmt.Sprintf("ns-%d", i)
		objects = append(objects, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bound", Namespace: namespace}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "here", Name: "busy"}},
		})
	}
	account := types.NamespacedName{Namespace: "here", Name: "busy"}
	got, err := rights.Grants(t.Context(), fake.NewClientset(objects...).RbacV1(), []types.NamespacedName{account})
	if err != nil || got[account].Err == nil || len(got[account].Grants) > 0 {
		t.Errorf("error %v, granted %+v; want an error of the account", err, got[account])
	}
}

func TestGrantsOfAMissingRole(t *testing.T) {
	account := types.NamespacedName{Namespace: "here", Name: "dangling"}
	api := fake.NewClientset(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bound"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "absent"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "here", Name: "dangling"}},
	})
	got, err := rights.Grants(t.Context(), api.RbacV1(), []types.NamespacedName{account})
	if diff := cmp.Diff(rights.Granted{Grants: []rights.Grant{{}}}, got[account]); diff != "" || err != nil {
		t.Errorf("error %v; a role that does not exist grants nothing (-want, +got):\n%s", err, diff)
	}
}

func TestGrantsWithoutPermission(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	_, err := rights.Grants(t.Context(), kubernetes.NewForConfigOrDie(unprivileged).RbacV1(),
		[]types.NamespacedName{{Namespace: "default", Name: "default"}})
	if !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want Forbidden", err)
	}
}
