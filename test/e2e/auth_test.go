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

// viewer binds the captive to a role that every cluster has.
const viewer = `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: CAGE` + zoo.Marked + `},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
 subjects: [{kind: ServiceAccount, name: captive, namespace: CAGE}]}
`

// Every command works for a user who has the roles that "auth" prints for it.
// With any rule of them taken away, it names what is missing before it does
// anything, or does without, as "auth" says.
func TestCommandsNeedTheRolesThatAuthPrints(t *testing.T) {
	captive := animal{Ending: "pass", Change: zoo.AsCaptive, Beside: zoo.Access("get, list", zoo.Marked) + viewer}
	w := publish(t, map[string]animal{"captive": captive})
	for name, tc := range map[string]struct {
		reason        string
		auth, command []string
		prepare       func()
	}{
		"Run": {
			reason: "with copies of accounts, roles and bindings", auth: []string{"run", "--to", to}, command: []string{"run", "--to", to},
		},
		"Checks": {
			reason: "what would be run", auth: []string{"checks"}, command: []string{"checks", "--to", to},
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
			reason: "whatever any run left", auth: []string{"cleanup"}, command: []string{"cleanup", "--all"},
			prepare: func() { reported(t, 0, "--to", to, "--keep") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.prepare != nil {
				tc.prepare()
			}
			o := appoint(t, tc.auth...)
			if got := o.call(t, tc.command...); got.Code != 0 {
				t.Fatalf("%s: exit code %d under the roles for it\n%s%s", tc.reason, got.Code, got.Stderr, got.Stdout)
			}
			for _, rule := range o.rules() {
				t.Run(rule.String(), func(t *testing.T) { o.goWithout(t, rule, tc.command) })
			}
			house.ExpectNothingLeft(t)
		})
	}
}

// Without a release to read, the roles are for every one that brings no rights
// of its own; for others they lack just those.
func TestRolesForAnyRelease(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	o := appoint(t, "run")
	if got := o.call(t, "run", "--to", to); got.Code != 0 {
		t.Errorf("exit code %d under the roles for any release\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	beside := strings.ReplaceAll(zoo.Access("get, list", zoo.Marked), "configmaps", "limitranges")
	publish(t, map[string]animal{"captive": {Ending: "pass", Change: zoo.AsCaptive, Beside: beside}})
	got := o.call(t, "run", "--to", to)
	complaint := errorLine(got.Stderr)
	if got.Code != 1 || !strings.Contains(complaint, "attempting to grant RBAC permissions not currently held") || !strings.Contains(complaint, `Resources:["limitranges"]`) {
		t.Errorf("exit code %d, %q; want 1, and the permissions that the user cannot grant without having them", got.Code, complaint)
	}
	house.ExpectNothingLeft(t)
}

// Conformance is held to its roles too; it is too slow to do without each rule
// in turn.
func TestConformanceUnderItsRoles(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zoo.Cage(t)}}
	if _, err := house.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := appoint(t, "conformance")
	command := append([]string{"conformance"}, house.Manifest(t, zoo.Captive{Animal: animal{Ending: "pass"}})...)
	if got := o.call(t, command...); got.Code != 0 {
		t.Fatalf("exit code %d under the roles for it\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	for _, rule := range o.rules() {
		if slices.Contains([]string{"pods", "jobs", "subjectaccessreviews"}, rule.Resources[0]) {
			t.Run(rule.String(), func(t *testing.T) { o.goWithout(t, rule, command) })
		}
	}
	house.Kubectl(t, "delete", "namespace", zoo.Cage(t), "--wait")
}

// Nodes that pull images take what "auth" prints for that, too.
func TestPullUnderItsRoles(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	command := []string{"run", "--to", to, "--images", "pull"}
	o := appoint(t, command...)
	got := o.call(t, command...)
	if got.Code != 0 || !strings.Contains(got.Stderr, "ImagePull: Pass") {
		t.Fatalf("exit code %d under the roles for it\n%s%s", got.Code, got.Stderr, got.Stdout)
	}
	for _, rule := range o.rules() {
		if rule.Resources[0] == "nodes/proxy" || rule.Resources[0] == "jobs" {
			t.Run(rule.String(), func(t *testing.T) { o.goWithout(t, rule, command) })
		}
	}
	house.ExpectNothingLeft(t)
}

// A run without the optional permissions continues, and reports them.
func TestRunWithoutWhatIsOptional(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	o := appoint(t, "run", "--to", to)
	for _, rule := range o.rules() {
		if slices.Contains([]string{"validatingadmissionpolicies", "subjectaccessreviews"}, rule.Resources[0]) {
			o.take(t, rule)
		}
	}
	decided := reported(t, 0, "--to", to, "--as", o.user, "--accept", "AdmissionPolicies")
	if f := byName(decided)["AdmissionPolicies"]; f.Outcome != preflight.Unknown || f.Reason != "Forbidden" {
		t.Errorf("the check of the policies is %+v; want Unknown (Forbidden)", f)
	}
	for name, reason := range map[string]string{"ReadOnlyGuard": "NoReadOnlyGuard", "ReadOnlyAccess": "NotAudited"} {
		if f := byName(decided)[name]; f.Outcome != preflight.Warn || f.Reason != reason || f.Remediation == "" {
			t.Errorf("%s is %+v; want Warn (%s), with a remedy", name, f, reason)
		}
	}
	house.ExpectNothingLeft(t)
}

// officer is a user who has the roles that "auth" prints, and no other.
type officer struct {
	user string
	// text is what was printed.
	text  string
	roles []*rbacv1.Role // without a namespace for ClusterRoles
}

// rule is one of an officer's roles.
type rule struct {
	rbacv1.PolicyRule
	role  *rbacv1.Role
	index int
}

func (r rule) String() string {
	return fmt.Sprintf("%s %s in %q", strings.Join(r.Verbs, ","), strings.Join(r.Resources, ","), r.role.Namespace)
}

// appoint makes an officer for a command.
func appoint(t *testing.T, args ...string) officer {
	t.Helper()
	o := officer{user: "officer-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))}
	got := call(t, append([]string{"auth", "--bind", "user:" + o.user}, args...)...)
	if got.Code != 0 {
		t.Fatalf("auth %v: exit code %d\n%s", args, got.Code, got.Stderr)
	}
	o.text = got.Stdout
	file := filepath.Join(t.TempDir(), "roles.yaml")
	if err := os.WriteFile(file, []byte(got.Stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	house.Kubectl(t, "apply", "-f", file)
	cleanUp(t, "delete", "-f", file, "--wait=false")
	for document := range strings.SplitSeq(got.Stdout, "---\n") {
		var role rbacv1.Role // a ClusterRole has nothing else in it
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "Role" || role.Kind == "ClusterRole" {
			o.roles = append(o.roles, &role)
		}
	}
	for _, rule := range o.rules() {
		o.settle(t, rule, true)
	}
	return o
}

// cleanUp runs kubectl when the test has ended.
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

func (o officer) call(t *testing.T, args ...string) zoo.Ended {
	t.Helper()
	return call(t, append(slices.Clone(args), "--as", o.user)...)
}

func (o officer) rules() []rule {
	var all []rule
	for _, role := range o.roles {
		for i, each := range role.Rules {
			all = append(all, rule{each, role, i})
		}
	}
	return all
}

// goWithout runs the command without one rule.
func (o officer) goWithout(t *testing.T, missing rule, command []string) {
	t.Helper()
	o.take(t, missing)
	defer o.give(t, missing)
	got := o.call(t, command...)
	complaint := errorLine(got.Stderr)
	optional := strings.Join(strings.Fields(strings.ReplaceAll(o.text, "\n#", " ")), " ")
	optional, _, _ = strings.Cut(optional, "apiVersion:")
	named := func(text string) bool {
		return slices.ContainsFunc(missing.Resources, func(resource string) bool { return strings.Contains(text, resource) })
	}
	switch {
	case got.Code == 0 && named(optional):
	case got.Code == 4 && named(optional) && strings.Contains(got.Stdout, "(Forbidden)"):
		// The check that reads it is inconclusive.
	case got.Code == 1 && (named(complaint) || missing.Verbs[0] == "bind" && strings.Contains(complaint, "RBAC permissions not currently held")):
		if strings.Contains(got.Stderr, "running the checks") || strings.Contains(got.Stderr, "running the check ") {
			t.Errorf("something was started all the same:\n%s", got.Stderr)
		}
	default:
		t.Errorf("exit code %d, %q; want what is missing, or that it is not needed", got.Code, got.Stderr)
	}
}

// give gives an officer a rule.
func (o officer) give(t *testing.T, of rule) {
	t.Helper()
	o.change(t, of.role, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule { return append(rules, of.PolicyRule) })
	o.settle(t, of, true)
}

// take takes a rule away.
func (o officer) take(t *testing.T, of rule) {
	t.Helper()
	o.change(t, of.role, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return slices.DeleteFunc(rules, func(each rbacv1.PolicyRule) bool { return each.String() == of.PolicyRule.String() })
	})
	o.settle(t, of, false)
}

func (officer) change(t *testing.T, role *rbacv1.Role, change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) {
	t.Helper()
	api, ctx := house.Client(t).RbacV1(), t.Context()
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

// settle waits until the API server goes by a rule that was given or taken away.
func (o officer) settle(t *testing.T, of rule, given bool) {
	t.Helper()
	resource, subresource, _ := strings.Cut(of.Resources[0], "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: o.user, Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: of.Verbs[0], Group: of.APIGroups[0], Resource: resource, Subresource: subresource, Namespace: of.role.Namespace,
		},
	}}
	if len(of.ResourceNames) > 0 {
		review.Spec.ResourceAttributes.Name = of.ResourceNames[0]
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		answer, err := house.Client(t).AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed == given, err
	})
	if err != nil {
		t.Fatalf("%s: allowed is not %t: %v", of, given, err)
	}
}

// The copy of an existing account has its read access only; of a copy of the release,
// the report has what the roles of the release allow.
func TestIdentitiesAreAudited(t *testing.T) {
	writing := func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "auditor" }
	publish(t, map[string]animal{
		"captive": {Ending: "pass", Change: zoo.AsCaptive, Beside: zoo.Access("get, list", zoo.Marked)},
		"writer":  {Ending: "plain-pass", Plain: true, Change: writing},
		"healthy": {Ending: "plain-pass", Plain: true},
	})
	createAccount(t, house.Client(t), "auditor")
	house.Kubectl(t, "create", "rolebinding", "auditor", "-n", "kube-public", "--clusterrole=edit", "--serviceaccount="+zooNamespace+":auditor")
	cleanUp(t, "delete", "rolebinding", "auditor", "-n", "kube-public")
	decided := byName(reported(t, 0, "--to", to))
	for name, want := range map[string]string{
		"ReadOnlyAccess-" + zooNamespace + ".captive": "is a temporary copy of ServiceAccount of the release " + zooNamespace + "/captive; the roles of the release allow it to get, list configmaps",
		"ReadOnlyAccess-" + zooNamespace + ".default": "is a temporary copy of ServiceAccount " + zooNamespace + "/default with its read access",
		"ReadOnlyAccess-" + zooNamespace + ".auditor": "is a temporary copy of ServiceAccount " + zooNamespace + "/auditor with its read access, without Secrets of any name",
		"ReadOnlyAccess-" + zooNamespace:              "have no write access (",
	} {
		f := decided[name]
		if f.Outcome != preflight.Pass || f.Reason != "ReadOnly" || !strings.Contains(f.Message, want) || f.Blocks {
			t.Errorf("%s is %+v; want a pass that contains %q", name, f, want)
		}
	}
	house.ExpectNothingLeft(t)
}

func createAccount(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: zooNamespace}}
	_, err := api.CoreV1().ServiceAccounts(zooNamespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
