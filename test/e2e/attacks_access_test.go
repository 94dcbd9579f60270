package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"text/tabwriter"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// attempt is one attack with the identity of the pod of a check.
type attempt struct {
	name string
	run  func(ctx context.Context, client kubernetes.Interface, on target) error
}

// target is the name of the guard and of the node of a run.
type target struct{ guard, node string }

// attackRow is a row of the table: an attack, its effect, and the finding about it.
type attackRow struct{ attack, reached, reported string }

// TestAttacksOnAccess attacks the cluster as a check whose ServiceAccount is bound to
// cluster-admin, during the run and with the leaked token after it, and prints a table.
func TestAttacksOnAccess(t *testing.T) {
	var rows []attackRow
	t.Run("Account", func(t *testing.T) { rows = append(rows, attackAsAdministrator(t)...) })
	t.Run("Guard", func(t *testing.T) { rows = append(rows, attackGuard(t)...) })
	t.Run("Group", func(t *testing.T) { rows = append(rows, attackAsGroup(t)...) })
	t.Run("GroupWithoutGuard", func(t *testing.T) { rows = append(rows, attackWithoutGuard(t)) })
	t.Log("\n" + attackTable(rows))
}

func attackTable(rows []attackRow) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "attack\treached\treported")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\n", row.attack, row.reached, row.reported)
	}
	if err := table.Flush(); err != nil {
		return err.Error()
	}
	return text.String()
}

// attempts returns requests that a cluster-admin may send and a check must not.
func attempts() []attempt {
	none := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	return []attempt{
		{"delete the policy of the guard", func(ctx context.Context, client kubernetes.Interface, on target) error {
			return client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, on.guard, none)
		}},
		{"delete the binding of the guard", func(ctx context.Context, client kubernetes.Interface, on target) error {
			return client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, on.guard, none)
		}},
		{"patch the policy of the guard", func(ctx context.Context, client kubernetes.Interface, on target) error {
			_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Patch(ctx, on.guard, types.JSONPatchType,
				[]byte(`[{"op": "replace", "path": "/spec/validations/0/expression", "value": "true"}]`), metav1.PatchOptions{DryRun: none.DryRun})
			return err
		}},
		{"impersonate an administrator", func(ctx context.Context, client kubernetes.Interface, _ target) error {
			return client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces").SetHeader("Impersonate-User", "system:admin").
				SetHeader("Impersonate-Group", "system:masters").Do(ctx).Error()
		}},
		{"connect to a kubelet by nodes/proxy", func(ctx context.Context, client kubernetes.Interface, on target) error {
			return client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + on.node + "/proxy/pods").Do(ctx).Error()
		}},
		{"list Secrets", func(ctx context.Context, client kubernetes.Interface, _ target) error {
			_, err := client.CoreV1().Secrets(zooNamespace).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"create a ConfigMap", func(ctx context.Context, client kubernetes.Interface, _ target) error {
			_, err := client.CoreV1().ConfigMaps(zooNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "attack-"}},
				metav1.CreateOptions{})
			return err
		}},
		{"request a token of another account", func(ctx context.Context, client kubernetes.Interface, _ target) error {
			_, err := client.CoreV1().ServiceAccounts(zooNamespace).CreateToken(ctx, "writer", &authenticationv1.TokenRequest{},
				metav1.CreateOptions{})
			return err
		}},
		{"grant itself cluster-admin", func(ctx context.Context, client kubernetes.Interface, _ target) error {
			return client.RbacV1().RESTClient().Post().AbsPath("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings").Param("dryRun",
				metav1.DryRunAll).
				SetHeader("Content-Type", "application/json").
				Body([]byte(`{"metadata":{"name":"attack"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`)).Do(ctx).Error()
		}},
	}
}

// waiting returns a check that runs as this ServiceAccount until the ConfigMap "go" exists.
func waiting(account string) animal {
	return animal{Ending: "patient", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = account }}
}

// attackAsAdministrator runs all attempts with the token of a running check, and again with
// the same token after the run.
func attackAsAdministrator(t *testing.T) []attackRow {
	t.Helper()
	publish(t, map[string]animal{"waiting": waiting("writer")})
	createAccount(t, testCluster.Client(t), "writer")
	testCluster.Kubectl(t, "create", "clusterrolebinding", "writer", "--clusterrole=cluster-admin", "--serviceaccount="+zooNamespace+":writer")
	cleanUp(t, "delete", "clusterrolebinding", "writer")
	r := begin(t)
	client := r.identity(t)
	var rows []attackRow
	attack := func(when string, one attempt) {
		err := one.run(t.Context(), client, target{guard: r.guard(t), node: r.pod.Spec.NodeName})
		row := attackRow{when + one.name, "denied", "ReadOnlyAccess: Pass (ReadOnly), a temporary copy"}
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			row.reached = "reached"
			t.Errorf("%s%s: %v, want Forbidden", when, one.name, err)
		}
		rows = append(rows, row)
	}
	for _, one := range attempts() {
		attack("", one)
	}
	result := r.end(t)
	for _, one := range attempts() {
		attack("after the run, with a leaked token: ", one)
	}
	f := byName(result)["ReadOnlyAccess-"+zooNamespace+".writer"]
	if f.Outcome != preflight.Pass || !strings.Contains(f.Message,
		"is a temporary copy of ServiceAccount "+zooNamespace+"/writer with its read access, without Secrets of any name") {
		t.Errorf("the account: %+v, want a copy without access to Secrets", f)
	}
	if guard := byName(result)["ReadOnlyGuard"]; guard.Outcome != preflight.Pass {
		t.Errorf("the guard: %+v, want Pass", guard)
	}
	if f := byName(result)["Zoo.Animal"]; f.Outcome != preflight.Pass {
		t.Errorf("the check: %+v, want Pass by its read access", f)
	}
	testCluster.ExpectNothingLeft(t)
	return rows
}

// attackGuard deletes the guard as a user other than a check.
func attackGuard(t *testing.T) []attackRow {
	t.Helper()
	publish(t, map[string]animal{"waiting": waiting("viewing")})
	createAccount(t, testCluster.Client(t), "viewing")
	testCluster.Kubectl(t, "create", "rolebinding", "viewing", "-n", zooNamespace, "--clusterrole=view",
		"--serviceaccount="+zooNamespace+":viewing")
	cleanUp(t, "delete", "rolebinding", "viewing", "-n", zooNamespace)
	r := begin(t)
	testCluster.Kubectl(t, "delete", "validatingadmissionpolicybinding", r.guard(t))
	r.code = 4
	guard := byName(r.end(t))["ReadOnlyGuard"]
	if guard.Outcome != preflight.Unknown || guard.Reason != "GuardChanged" || !guard.Blocks ||
		!strings.Contains(guard.Message, "was deleted") {
		t.Errorf("the guard: %+v, want a blocking Unknown", guard)
	}
	testCluster.ExpectNothingLeft(t)
	return []attackRow{{"another user deletes the binding of the guard", "reached", "ReadOnlyGuard: Unknown (GuardChanged)"}}
}

// attackAsGroup allows the group of the ServiceAccounts of the namespace to impersonate users.
func attackAsGroup(t *testing.T) []attackRow {
	t.Helper()
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	testCluster.Kubectl(t, "create", "clusterrole", "attack-impersonate", "--verb=impersonate", "--resource=users")
	testCluster.Kubectl(t, "create", "clusterrolebinding", "attack-impersonate", "--clusterrole=attack-impersonate",
		"--group=system:serviceaccounts:"+zooNamespace)
	cleanUp(t, "delete", "clusterrolebinding,clusterrole", "attack-impersonate")
	result := runPreflight(t, 4, "--to", to)
	group, check := byName(result)["ReadOnlyAccess-"+zooNamespace], byName(result)["Zoo.Healthy"]
	if group.Reason != "UnguardedAccess" || group.Outcome != preflight.Unknown || !strings.Contains(group.Message, "impersonate users") {
		t.Errorf("the group: %+v, want a blocking Unknown", group)
	}
	if check.Reason != "UnguardedAccess" || check.Outcome != preflight.Unknown || check.Job != nil {
		t.Errorf("the check: %+v, want Unknown without a Job", check)
	}
	accepted := runPreflight(t, 0, "--to", to, "--accept", "ReadOnlyAccess-"+zooNamespace)
	if f := byName(accepted)["Zoo.Animal"]; f.Outcome != preflight.Pass {
		t.Errorf("the check: %+v, want Pass after the acceptance", f)
	}
	testCluster.ExpectNothingLeft(t)
	return []attackRow{{
		"impersonate by the group of the namespace", "the check does not run",
		"ReadOnlyAccess-" + zooNamespace + ": Unknown (UnguardedAccess)",
	}}
}

// attackWithoutGuard allows the group of the ServiceAccounts of the namespace to write, where the user may not create
// the guard.
func attackWithoutGuard(t *testing.T) attackRow {
	t.Helper()
	publish(t, map[string]animal{"writer": {Ending: "write"}})
	testCluster.Kubectl(t, "create", "role", "attack-write", "-n", zooNamespace, "--verb=create", "--resource=configmaps")
	testCluster.Kubectl(t, "create", "rolebinding", "attack-write", "-n", zooNamespace, "--role=attack-write",
		"--group=system:serviceaccounts:"+zooNamespace)
	cleanUp(t, "delete", "rolebinding,role", "attack-write", "-n", zooNamespace)
	limited, name := userWithout(t, "validatingadmissionpolicies"), "ReadOnlyAccess-"+zooNamespace
	result := runPreflight(t, 4, "--to", to, "--as", limited, "--accept", "AdmissionPolicies,Drain")
	group, check := byName(result)[name], byName(result)["Zoo.Writer"]
	if group.Reason != "UnguardedAccess" || group.Outcome != preflight.Unknown || !strings.Contains(group.Message, "create configmaps") {
		t.Errorf("the group: %+v, want a blocking Unknown", group)
	}
	if check.Reason != "UnguardedAccess" || check.Outcome != preflight.Unknown || check.Job != nil {
		t.Errorf("the check: %+v, want Unknown without a Job", check)
	}
	expectNoDroppings(t)
	testCluster.ExpectNothingLeft(t)
	return attackRow{
		"write by the group of the namespace, of a run by a user who may not create the guard", "a write, before",
		name + ": Unknown (UnguardedAccess)",
	}
}

// ongoing is a preflight whose check waits for the ConfigMap "go".
type ongoing struct {
	wait   func() error
	stdout *bytes.Buffer
	pod    corev1.Pod
	code   int
	exit   func() int
}

// begin starts a preflight and returns when its check runs.
func begin(t *testing.T) *ongoing {
	t.Helper()
	command := preflightCommand(t, "run", "--to", to, "-o", "json")
	r := &ongoing{stdout: &bytes.Buffer{}, exit: func() int { return command.ProcessState.ExitCode() }}
	command.Stdout = r.stdout
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	r.wait = func() error {
		if _, err := io.Copy(io.Discard, stderr); err != nil {
			return err
		}
		_ = command.Wait() // the exit code is compared
		return nil
	}
	lines := bufio.NewScanner(stderr)
	for running := false; !running; running = strings.Contains(lines.Text(), "Zoo.Waiting: running") {
		if !lines.Scan() {
			t.Fatalf("the run ended before its check: %v", lines.Err())
		}
		t.Log(lines.Text())
	}
	pods, err := testCluster.Client(t).CoreV1().Pods(zooNamespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: "preflight.openshift.io/run"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, error %v", len(pods.Items), err)
	}
	r.pod = pods.Items[0]
	return r
}

// guard returns the name of the policy of the run, and of its binding.
func (r *ongoing) guard(t *testing.T) string {
	t.Helper()
	return "preflight-read-only-" + strings.ReplaceAll(r.pod.Labels["preflight.openshift.io/run"], "-", "")[:10]
}

// identity returns a client with a token that is bound to the pod.
func (r *ongoing) identity(t *testing.T) kubernetes.Interface {
	t.Helper()
	token, err := testCluster.Client(t).CoreV1().ServiceAccounts(zooNamespace).CreateToken(t.Context(), r.pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
				Kind: "Pod", APIVersion: "v1",
				Name: r.pod.Name, UID: r.pod.UID,
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(local.Config)
	config.BearerToken = token.Status.Token
	return kubernetes.NewForConfigOrDie(config)
}

// end makes the check end, and returns the report.
func (r *ongoing) end(t *testing.T) report.Report {
	t.Helper()
	testCluster.Kubectl(t, "create", "configmap", "go", "-n", zooNamespace)
	defer testCluster.Kubectl(t, "delete", "configmap", "go", "-n", zooNamespace)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	var result report.Report
	if err := json.Unmarshal(r.stdout.Bytes(), &result); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	if got := r.exit(); got != r.code {
		t.Errorf("exit code %d, want %d: %s", got, r.code, r.stdout)
	}
	return result
}
