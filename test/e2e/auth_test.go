package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/user"
	"github.com/openshift/update-preflight/test/zoo"
)

// Every command works for a user with the roles that "auth" prints for it, applied as its
// help describes. That each of their rules is required is tested by test/commands.
func TestRolesSuffice(t *testing.T) {
	beside := zoo.Access("get, list", zoo.Annotated) + `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewer, namespace: CAGE` + zoo.Annotated + `},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view},
 subjects: [{kind: ServiceAccount, name: candidate, namespace: CAGE}]}
`
	w := publish(t, map[string]animal{"candidate": {Ending: "pass", Change: zoo.AsCandidate, Beside: beside}})
	const gate = "ack-4.18-zoo" // of another version than that of the cluster
	w.State.Gates = map[string]string{gate: "Feed all animals."}
	w.Apply(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: zoo.NamespaceOf(t)}}
	if _, err := testCluster.Client(t).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, "delete", "namespace", namespace.Name, "--wait=false")
	manifest := testCluster.Manifest(t, zoo.Candidate{Animal: animal{Ending: "pass"}})
	for _, tc := range []struct {
		name, reason  string
		auth, command []string
		progress      string // a part of standard error
	}{
		{
			name: "run", reason: "a run that copies accounts, roles and bindings, and leaves its objects",
			auth: []string{"run", "--to", to}, command: []string{"run", "--to", to, "--keep"},
		},
		{name: "cleanup", reason: "the objects of all runs", auth: []string{"cleanup"}, command: []string{"cleanup", "--all"}},
		{
			name: "pull", reason: "the node pulls the images", progress: "ImagePull: Pass",
			auth: []string{"run", "--to", to, "--images", "pull"}, command: []string{"run", "--to", to, "--images", "pull"},
		},
		{name: "checks", reason: "the list of checks", auth: []string{"checks"}, command: []string{"checks", "--to", to}},
		{name: "verify", reason: "the signature alone", auth: []string{"verify"}, command: []string{"verify", w.PullSpec}},
		{name: "ack", reason: "an acknowledgement", auth: []string{"ack"}, command: []string{"ack", gate}},
		{
			name: "conformance", reason: "trials of a manifest", auth: []string{"conformance"},
			command: append([]string{"conformance"}, manifest...),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := call(t, append(slices.Clone(tc.command), "--as", newUser(t, tc.auth...))...)
			if got.Code != 0 || !strings.Contains(got.Stderr, tc.progress) {
				t.Errorf("%s: exit code %d under the roles for it, want 0 and %q\n%s%s", tc.reason, got.Code, tc.progress, got.Stderr, got.Stdout)
			}
		})
	}
	testCluster.ExpectNothingLeft(t)
}

// newUser returns the name of a new user with only the roles that "auth" prints for a command.
func newUser(t *testing.T, command ...string) string {
	t.Helper()
	name := "user-" + strings.ToLower(filepath.Base(t.Name()))
	got := call(t, append([]string{"auth", "--bind", "user:" + name}, command...)...)
	if got.Code != 0 {
		t.Fatalf("auth %v: exit code %d\n%s", command, got.Code, got.Stderr)
	}
	file := filepath.Join(t.TempDir(), "roles.yaml")
	if err := os.WriteFile(file, []byte(got.Stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	testCluster.Kubectl(t, "apply", "-f", file)
	cleanUp(t, "delete", "-f", file, "--wait=false")
	user.Await(t, local.Config, name, user.Roles(t, got.Stdout)...)
	return name
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

func createAccount(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: zooNamespace}}
	_, err := api.CoreV1().ServiceAccounts(zooNamespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
