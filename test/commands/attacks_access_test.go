package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
)

// accessAttack is a permission of every ServiceAccount of the namespace of a check, by which
// the check could write past the read-only guard.
type accessAttack struct {
	attack string
	group  string
	rule   rbacv1.PolicyRule
	// reported is a part of the message about the accounts.
	reported string
}

func accessAttacks() []accessAttack {
	const accounts, unauthenticated = "system:serviceaccounts:" + zooNamespace, "system:unauthenticated"
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	return []accessAttack{
		{"impersonate one account", accounts, rule("", "serviceaccounts", "impersonate", "admin"), "impersonate serviceaccounts admin"},
		{"connect to one kubelet", accounts, rule("", "nodes/proxy", "create", "node-1"), "create nodes/proxy node-1"},
		{"constrained impersonation", accounts, rule("authentication.k8s.io", "users", "impersonate:user-info"), "impersonate:user-info users"},
		{
			"constrained impersonation for one action", accounts, rule("", "pods", "impersonate-on:user-info:create"),
			"impersonate-on:user-info:create pods",
		},
		{"write without a token", unauthenticated, rule("", "configmaps", "create"), "create configmaps"},
	}
}

// A check does not run where the read-only guard cannot deny what it may do.
func TestAttacksByPermissions(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	var table bytes.Buffer
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "ATTACK\tREACHED\tREPORTED")
	for _, attack := range accessAttacks() {
		t.Run(attack.attack, func(t *testing.T) {
			fmt.Fprintf(rows, "%s\tthe check does not run\t%s\n", attack.attack, attack.reported)
			attack.run(t)
		})
	}
	_ = rows.Flush() // to a buffer
	t.Log("\n" + table.String())
}

func (a accessAttack) run(t *testing.T) {
	t.Helper()
	a.grant(t)
	findings := map[string]finding.Finding{}
	for _, f := range runPreflight(t, exit.Undecided, "--to", to).Findings {
		findings[f.Name] = f
	}
	group, check := findings["ReadOnlyAccess-"+zooNamespace], findings["Zoo.Healthy"]
	if group.Reason != "UnguardedAccess" || group.Outcome != preflight.Unknown || !strings.Contains(group.Message, a.reported) {
		t.Errorf("the accounts: %+v, want a blocking Unknown with %q", group, a.reported)
	}
	if check.Reason != "UnguardedAccess" || check.Outcome != preflight.Unknown || check.Job != nil {
		t.Errorf("the check: %+v, want Unknown without a Job", check)
	}
	testCluster.ExpectNothingLeft(t)
}

// grant binds the rule to the group for the time of the test.
func (a accessAttack) grant(t *testing.T) {
	t.Helper()
	roles := testCluster.Client(t).RbacV1()
	name := metav1.ObjectMeta{Name: "attack"}
	if _, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{a.rule}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: a.group}},
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := roles.ClusterRoleBindings().Delete(ctx, name.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := roles.ClusterRoles().Delete(ctx, name.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
