package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/zoo"
)

// viewer binds the ServiceAccount of the candidate to the ClusterRole view.
const viewer = `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: CAGE` + zoo.Annotated + `},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
 subjects: [{kind: ServiceAccount, name: candidate, namespace: CAGE}]}
`

// Every command works for a user with the roles that "auth" prints for it. Without any
// one of their rules, it either reports the missing permission before it changes anything,
// or continues if "auth" lists the permission as optional.
func TestCommandsNeedTheRolesThatAuthPrints(t *testing.T) {
	candidate := animal{Ending: "pass", Change: zoo.AsCandidate, Beside: zoo.Access("get, list", zoo.Annotated) + viewer}
	w := publish(t, map[string]animal{"candidate": candidate})
	for name, tc := range map[string]struct {
		reason        string
		auth, command []string
		prepare       func()
	}{
		"Run": {
			reason: "a run that copies accounts, roles and bindings", auth: []string{"run", "--to", to}, command: []string{"run", "--to", to},
		},
		"Checks": {
			reason: "the list of checks", auth: []string{"checks"}, command: []string{"checks", "--to", to},
		},
		"Verify": {
			reason: "the signature alone", auth: []string{"verify"}, command: []string{"verify", w.PullSpec},
		},
		"Ack": {
			reason: "an acknowledgement", auth: []string{"ack"}, command: []string{"ack", "ack-4.18-zoo"},
			prepare: func() {
				w.State.Gates = map[string]string{"ack-4.18-zoo": "Feed all animals."}
				w.Apply(t)
			},
		},
		"Cleanup": {
			reason: "the objects of all runs", auth: []string{"cleanup"}, command: []string{"cleanup", "--all"},
			prepare: func() { runPreflight(t, 0, "--to", to, "--keep") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.prepare != nil {
				tc.prepare()
			}
			u := newRoleUser(t, tc.auth...)
			if got := u.call(t, tc.command...); got.Code != 0 {
				t.Fatalf("%s: exit code %d under the roles for it\n%s%s", tc.reason, got.Code, got.Stderr, got.Stdout)
			}
			for _, rule := range u.rules() {
				t.Run(rule.String(), func(t *testing.T) { u.runWithout(t, rule, tc.command) })
			}
			testCluster.ExpectNothingLeft(t)
		})
	}
}

// Without a release, "auth" prints the roles for every release that grants its checks no
// permissions; for others, only these permissions are missing.
func TestRolesForAnyRelease(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	u := newRoleUser(t, "run")
	if got := u.call(t, "run", "--to", to); got.Code != 0 {
		t.Errorf("exit code %d under the roles for any release\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	beside := strings.ReplaceAll(zoo.Access("get, list", zoo.Annotated), "configmaps", "limitranges")
	publish(t, map[string]animal{"candidate": {Ending: "pass", Change: zoo.AsCandidate, Beside: beside}})
	got := u.call(t, "run", "--to", to)
	message := errorLine(got.Stderr)
	if got.Code != 1 || !strings.Contains(message, "attempting to grant RBAC permissions not currently held") || !strings.Contains(message, `Resources:["limitranges"]`) {
		t.Errorf("exit code %d, %q; want 1 and the permissions that the user does not have and therefore cannot grant", got.Code, message)
	}
	testCluster.ExpectNothingLeft(t)
}

// "conformance" works with the roles for it, too. Only some of the rules are removed, since
// it is too slow to try all.
func TestConformanceUnderItsRoles(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zoo.NamespaceOf(t)}}
	if _, err := testCluster.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u := newRoleUser(t, "conformance")
	command := append([]string{"conformance"}, testCluster.Manifest(t, zoo.Candidate{Animal: animal{Ending: "pass"}})...)
	if got := u.call(t, command...); got.Code != 0 {
		t.Fatalf("exit code %d under the roles for it\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	for _, rule := range u.rules() {
		if slices.Contains([]string{"pods", "jobs", "subjectaccessreviews"}, rule.Resources[0]) {
			t.Run(rule.String(), func(t *testing.T) { u.runWithout(t, rule, command) })
		}
	}
	testCluster.Kubectl(t, "delete", "namespace", zoo.NamespaceOf(t), "--wait")
}

// A run with --images=pull works with the roles for it, too.
func TestPullUnderItsRoles(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	command := []string{"run", "--to", to, "--images", "pull"}
	u := newRoleUser(t, command...)
	got := u.call(t, command...)
	if got.Code != 0 || !strings.Contains(got.Stderr, "ImagePull: Pass") {
		t.Fatalf("exit code %d under the roles for it\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	for _, rule := range u.rules() {
		if rule.Resources[0] == "nodes/proxy" || rule.Resources[0] == "jobs" {
			t.Run(rule.String(), func(t *testing.T) { u.runWithout(t, rule, command) })
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// A run without the optional permissions continues, and reports them.
func TestRunWithoutOptionalPermissions(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	u := newRoleUser(t, "run", "--to", to)
	for _, rule := range u.rules() {
		if slices.Contains([]string{"validatingadmissionpolicies", "subjectaccessreviews"}, rule.Resources[0]) {
			u.revoke(t, rule)
		}
	}
	result := runPreflight(t, 0, "--to", to, "--as", u.name, "--accept", "AdmissionPolicies")
	if f := byName(result)["AdmissionPolicies"]; f.Outcome != preflight.Unknown || f.Reason != "Forbidden" {
		t.Errorf("the check of the policies: %+v; want Unknown (Forbidden)", f)
	}
	for name, reason := range map[string]string{"ReadOnlyGuard": "NoReadOnlyGuard", "ReadOnlyAccess": "NotAudited"} {
		if f := byName(result)[name]; f.Outcome != preflight.Warn || f.Reason != reason || f.Remediation == "" {
			t.Errorf("%s: %+v; want Warn (%s) with a remedy", name, f, reason)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// roleUser is a user who has only the roles that "auth" prints.
type roleUser struct {
	name string
	// text is the output of "auth".
	text  string
	roles []*rbacv1.Role // without a namespace for ClusterRoles
}

// rule is one rule of a role.
type rule struct {
	rbacv1.PolicyRule
	role  *rbacv1.Role
	index int
}

func (r rule) String() string {
	return fmt.Sprintf("%s %s in %q", strings.Join(r.Verbs, ","), strings.Join(r.Resources, ","), r.role.Namespace)
}

// newRoleUser creates a user with the roles for a command.
func newRoleUser(t *testing.T, args ...string) roleUser {
	t.Helper()
	u := roleUser{name: "user-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))}
	got := call(t, append([]string{"auth", "--bind", "user:" + u.name}, args...)...)
	if got.Code != 0 {
		t.Fatalf("auth %v: exit code %d\n%s", args, got.Code, got.Stderr)
	}
	u.text = got.Stdout
	file := filepath.Join(t.TempDir(), "roles.yaml")
	if err := os.WriteFile(file, []byte(got.Stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	testCluster.Kubectl(t, "apply", "-f", file)
	cleanUp(t, "delete", "-f", file, "--wait=false")
	for document := range strings.SplitSeq(got.Stdout, "---\n") {
		var role rbacv1.Role // decodes a ClusterRole, too
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "Role" || role.Kind == "ClusterRole" {
			u.roles = append(u.roles, &role)
		}
	}
	for _, rule := range u.rules() {
		u.await(t, rule, true)
	}
	return u
}

// cleanUp runs kubectl when the test ends.
func cleanUp(t *testing.T, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		command := exec.CommandContext(context.Background(), filepath.Join(root, "bin", "kubectl"), args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+local.Kubeconfig)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("kubectl %s: %v\n%s", args[0], err, out)
		}
	})
}

func (u roleUser) call(t *testing.T, args ...string) zoo.Result {
	t.Helper()
	return call(t, append(slices.Clone(args), "--as", u.name)...)
}

func (u roleUser) rules() []rule {
	var all []rule
	for _, role := range u.roles {
		for i, each := range role.Rules {
			all = append(all, rule{each, role, i})
		}
	}
	return all
}

// runWithout runs the command without one rule.
func (u roleUser) runWithout(t *testing.T, missing rule, command []string) {
	t.Helper()
	u.revoke(t, missing)
	defer u.grant(t, missing)
	got := u.call(t, command...)
	message := errorLine(got.Stderr)
	optional := strings.Join(strings.Fields(strings.ReplaceAll(u.text, "\n#", " ")), " ")
	optional, _, _ = strings.Cut(optional, "apiVersion:")
	named := func(text string) bool {
		return slices.ContainsFunc(missing.Resources, func(resource string) bool { return strings.Contains(text, resource) })
	}
	switch {
	case got.Code == 0 && named(optional):
	case got.Code == 4 && named(optional) && strings.Contains(got.Stdout, "(Forbidden)"):
		// The check that reads it is inconclusive.
	case got.Code == 1 && (named(message) || missing.Verbs[0] == "bind" && strings.Contains(message, "RBAC permissions not currently held")):
		if strings.Contains(got.Stderr, "running the checks") || strings.Contains(got.Stderr, "running the check ") {
			t.Errorf("checks ran without the permission:\n%s", got.Stderr)
		}
	default:
		t.Errorf("exit code %d, %q; want the missing permission as an error, or as optional", got.Code, got.Stderr)
	}
}

// grant adds a rule to its role.
func (u roleUser) grant(t *testing.T, added rule) {
	t.Helper()
	u.change(t, added.role, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule { return append(rules, added.PolicyRule) })
	u.await(t, added, true)
}

// revoke removes a rule from its role.
func (u roleUser) revoke(t *testing.T, removed rule) {
	t.Helper()
	u.change(t, removed.role, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return slices.DeleteFunc(rules, func(each rbacv1.PolicyRule) bool { return each.String() == removed.PolicyRule.String() })
	})
	u.await(t, removed, false)
}

func (roleUser) change(t *testing.T, role *rbacv1.Role, change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) {
	t.Helper()
	api, ctx := testCluster.Client(t).RbacV1(), t.Context()
	if role.Namespace == "" {
		found, err := api.ClusterRoles().Get(ctx, role.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found.Rules = change(found.Rules)
		if _, err := api.ClusterRoles().Update(ctx, found, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	found, err := api.Roles(role.Namespace).Get(ctx, role.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Rules = change(found.Rules)
	if _, err := api.Roles(role.Namespace).Update(ctx, found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await returns when the API server applies the change of a rule.
func (u roleUser) await(t *testing.T, changed rule, granted bool) {
	t.Helper()
	resource, subresource, _ := strings.Cut(changed.Resources[0], "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.name, Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: changed.Verbs[0], Group: changed.APIGroups[0], Resource: resource, Subresource: subresource, Namespace: changed.role.Namespace,
		},
	}}
	if len(changed.ResourceNames) > 0 {
		review.Spec.ResourceAttributes.Name = changed.ResourceNames[0]
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		response, err := testCluster.Client(t).AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && response.Status.Allowed == granted, err
	})
	if err != nil {
		t.Fatalf("%s: allowed is not %t: %v", changed, granted, err)
	}
}

// The copy of an existing account has only the read access of the account. For the copy of
// an account of the release, the report lists the permissions by the roles of the release.
func TestIdentitiesAreAudited(t *testing.T) {
	asAuditor := func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "auditor" }
	publish(t, map[string]animal{
		"candidate": {Ending: "pass", Change: zoo.AsCandidate, Beside: zoo.Access("get, list", zoo.Annotated)},
		"writer":    {Ending: "plain-pass", Plain: true, Change: asAuditor},
		"healthy":   {Ending: "plain-pass", Plain: true},
	})
	createAccount(t, testCluster.Client(t), "auditor")
	testCluster.Kubectl(t, "create", "rolebinding", "auditor", "-n", "kube-public", "--clusterrole=edit", "--serviceaccount="+zooNamespace+":auditor")
	cleanUp(t, "delete", "rolebinding", "auditor", "-n", "kube-public")
	findings := byName(runPreflight(t, 0, "--to", to))
	for name, want := range map[string]string{
		"ReadOnlyAccess-" + zooNamespace + ".candidate": "is a temporary copy of ServiceAccount of the release " + zooNamespace + "/candidate; the roles of the release allow it to get, list configmaps",
		"ReadOnlyAccess-" + zooNamespace + ".default":   "is a temporary copy of ServiceAccount " + zooNamespace + "/default with its read access",
		"ReadOnlyAccess-" + zooNamespace + ".auditor":   "is a temporary copy of ServiceAccount " + zooNamespace + "/auditor with its read access, without Secrets of any name",
		"ReadOnlyAccess-" + zooNamespace:                "have no write access (",
	} {
		f := findings[name]
		if f.Outcome != preflight.Pass || f.Reason != "ReadOnly" || !strings.Contains(f.Message, want) || f.Blocks {
			t.Errorf("%s: %+v; want a pass that contains %q", name, f, want)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

func createAccount(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: zooNamespace}}
	_, err := api.CoreV1().ServiceAccounts(zooNamespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
