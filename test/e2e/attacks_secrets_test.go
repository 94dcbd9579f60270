package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/user"
	"github.com/openshift/update-preflight/test/zoo"
)

// secretAttack is a check that writes with the token of a Secret of another account.
type secretAttack struct {
	name, reached string
	// prepare creates the Secret, and returns the check and further arguments of the run.
	prepare func(*testing.T) (animal, []string)
	code    int
	// check and account are what is reported about the check, and about its account; empty for a finding that there is not.
	check, account string
}

// TestAttacksBySecrets lets checks write as cluster-admin with a token that they find in a Secret, and prints a
// table.
func TestAttacksBySecrets(t *testing.T) {
	createAccount(t, testCluster.Client(t), "owner")
	testCluster.Kubectl(t, "create", "clusterrolebinding", "attack-owner", "--clusterrole=cluster-admin",
		"--serviceaccount="+zooNamespace+":owner")
	cleanUp(t, "delete", "clusterrolebinding", "attack-owner")
	const refused = "Fail(RefusedTokenSecret)"
	var rows []attackRow
	for _, a := range []secretAttack{
		{
			name: "token Secret, mounted, of a run by a user who may read no Secrets", reached: "a write as cluster-admin", prepare: unreadToken,
			code: 4, check: "Unknown(UnguardedAccess)", account: "Unknown(UnknownSecret)",
		},
		{
			name: "token in an Opaque Secret, mounted", reached: "a write as cluster-admin", prepare: copiedToken(mountSecret), code: 3,
			check: refused,
		},
		{name: "token in a ConfigMap, mounted", reached: "a write as cluster-admin", prepare: tokenInConfigMap, code: 3, check: refused},
		{
			name: "token in an Opaque Secret that a role of the release names", reached: "a write as cluster-admin", prepare: copiedToken(byRole),
			code: 3, check: refused,
		},
		{
			name: "token in an Opaque Secret that a role of the copied account names", reached: "a write as cluster-admin",
			prepare: copiedToken(byCopiedAccount), code: 3, check: refused,
		},
	} {
		t.Run(a.name, func(t *testing.T) { rows = append(rows, a.run(t)) })
	}
	t.Run("AcceptedByName", acceptedSecret)
	t.Run("CreatedMeanwhile", func(t *testing.T) { rows = append(rows, createdToken(t)) })
	t.Log("\n" + attackTable(rows))
}

func (a secretAttack) run(t *testing.T) attackRow {
	t.Helper()
	check, args := a.prepare(t)
	publish(t, map[string]animal{"borrower": check})
	result := runPreflight(t, a.code, append([]string{"--to", to}, args...)...)
	described := map[string]string{}
	for _, f := range result.Findings {
		described[f.Name] = fmt.Sprintf("%s(%s)", f.Outcome, f.Reason)
		if strings.Contains(f.Message, "eyJ") {
			t.Errorf("%s has the content of the Secret: %s", f.Name, f.Message)
		}
	}
	if got := described["Zoo.Borrower"]; got != a.check {
		t.Errorf("the check: %q, want %q: %+v", got, a.check, result.Findings)
	}
	account := accountFinding(result)
	if got := described[account]; got != a.account {
		t.Errorf("the account: %q, want %q", got, a.account)
	}
	if a.account != "" && !strings.Contains(byName(result)[account].Message, `Secret "attack" in namespace "`+zooNamespace+`"`) {
		t.Errorf("%q does not name the Secret", byName(result)[account].Message)
	}
	expectNoDroppings(t)
	testCluster.ExpectNothingLeft(t)
	return attackRow{a.name, a.reached + ", before", described["Zoo.Borrower"] + " " + a.account}
}

// accountFinding is the name of the finding about the only account of the checks.
func accountFinding(result report.Report) string {
	for _, f := range result.Findings {
		if strings.HasPrefix(f.Name, "ReadOnlyAccess-"+zooNamespace+".") {
			return f.Name
		}
	}
	return ""
}

// expectNoDroppings fails the test if a check has written, and deletes what it has.
func expectNoDroppings(t *testing.T) {
	t.Helper()
	droppings := testCluster.Client(t).CoreV1().ConfigMaps(zooNamespace)
	if err := droppings.Delete(t.Context(), "droppings", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap of the check: %v, want NotFound", err)
	}
}

// tokenOfOwner returns a token of the account that is bound to cluster-admin.
func tokenOfOwner(t *testing.T) string {
	t.Helper()
	token, err := testCluster.Client(t).CoreV1().ServiceAccounts(zooNamespace).CreateToken(t.Context(), "owner",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// createSecret creates the Secret "attack" until the end of the test.
func createSecret(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	secret.Name = "attack"
	if _, err := testCluster.Client(t).CoreV1().Secrets(zooNamespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, "delete", "secret", "attack", "-n", zooNamespace)
}

// mountSecret is a check that mounts the Secret, which need not exist.
func mountSecret(*testing.T) animal {
	return animal{Ending: "borrow", Change: mount("/attack",
		corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "attack", Optional: new(true)}})}
}

// byRole is a check whose account of the release may read the Secret.
func byRole(*testing.T) animal {
	beside := strings.ReplaceAll(zoo.Access("get", zoo.Annotated), "resources: [configmaps]", "resources: [secrets], resourceNames: [attack]")
	return animal{Ending: "borrow", Change: zoo.AsCandidate, Beside: beside}
}

// byCopiedAccount is a check whose account of the cluster may read the Secret.
func byCopiedAccount(t *testing.T) animal {
	t.Helper()
	createAccount(t, testCluster.Client(t), "borrower")
	testCluster.Kubectl(t, "create", "role", "borrower", "-n", zooNamespace, "--verb=get", "--resource=secrets", "--resource-name=attack")
	testCluster.Kubectl(t, "create", "rolebinding", "borrower", "-n", zooNamespace, "--role=borrower",
		"--serviceaccount="+zooNamespace+":borrower")
	cleanUp(t, "delete", "rolebinding,role", "borrower", "-n", zooNamespace)
	return animal{Ending: "borrow", Change: func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "borrower" }}
}

// copiedToken is a Secret whose type does not state that it has a token.
func copiedToken(read func(*testing.T) animal) func(*testing.T) (animal, []string) {
	return func(t *testing.T) (animal, []string) {
		t.Helper()
		createSecret(t, &corev1.Secret{StringData: map[string]string{"token": tokenOfOwner(t)}})
		return read(t), nil
	}
}

// tokenInConfigMap is a ConfigMap with a token.
func tokenInConfigMap(t *testing.T) (animal, []string) {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, Data: map[string]string{"token": tokenOfOwner(t)}}
	if _, err := testCluster.Client(t).CoreV1().ConfigMaps(zooNamespace).Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, "delete", "configmap", "attack", "-n", zooNamespace)
	return animal{Ending: "borrow", Change: mount("/attack", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "attack"},
	}})}, nil
}

// unreadToken is a Secret with a token, and a user who may run checks, but not read Secrets.
func unreadToken(t *testing.T) (animal, []string) {
	t.Helper()
	createSecret(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.ServiceAccountNameKey: "owner"}},
		Type:       corev1.SecretTypeServiceAccountToken,
		StringData: map[string]string{"token": tokenOfOwner(t)},
	})
	return mountSecret(t), []string{"--as", userWithout(t)}
}

// userWithout returns a new user with the roles that "auth run" prints for any release, which has no Secret of a check,
// without those for these resources.
func userWithout(t *testing.T, resources ...string) string {
	t.Helper()
	roles := user.Roles(t, call(t, "auth", "run").Stdout)
	for i := range roles {
		roles[i].Rules = slices.DeleteFunc(roles[i].Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(rule.Resources, func(resource string) bool { return slices.Contains(resources, resource) })
		})
	}
	return user.Bound(t, local.Config, roles...)
}

// acceptedSecret accepts the finding about a Secret of unknown type: the check runs.
func acceptedSecret(t *testing.T) {
	createSecret(t, &corev1.Secret{StringData: map[string]string{"token": "none"}})
	check := mountSecret(t)
	check.Ending = "pass"
	publish(t, map[string]animal{"borrower": check})
	name := "ReadOnlyAccess-" + zooNamespace + ".default"
	result := runPreflight(t, 0, "--to", to, "--as", userWithout(t), "--accept", name)
	if f := byName(result)["Zoo.Animal"]; f.Outcome != preflight.Pass {
		t.Errorf("the check: %+v, want Pass after the acceptance", f)
	}
	reading := runPreflight(t, 0, "--to", to)
	if f := byName(reading)[name]; f.Outcome != preflight.Warn || f.Reason != "ReadsSecrets" ||
		!strings.Contains(f.Message, `Secret "attack"`) {
		t.Errorf("the account: %+v, want a warning that names the Secret", f)
	}
	testCluster.ExpectNothingLeft(t)
}

// createdToken creates the Secret while the check runs.
func createdToken(t *testing.T) attackRow {
	t.Helper()
	check := mountSecret(t)
	mounted := check.Change
	check.Ending, check.Change = "patient", func(job *batchv1.Job) {
		mounted(job)
		job.Spec.Template.Spec.ServiceAccountName = "watcher" // which may read the ConfigMap "go"
	}
	publish(t, map[string]animal{"waiting": check})
	createAccount(t, testCluster.Client(t), "watcher")
	testCluster.Kubectl(t, "create", "rolebinding", "watcher", "-n", zooNamespace, "--clusterrole=view",
		"--serviceaccount="+zooNamespace+":watcher")
	cleanUp(t, "delete", "rolebinding", "watcher", "-n", zooNamespace)
	r := begin(t)
	createSecret(t, &corev1.Secret{StringData: map[string]string{"token": tokenOfOwner(t)}})
	r.code = 4
	f := byName(r.end(t))["ReadOnlyAccess-"+zooNamespace+".watcher"]
	if f.Outcome != preflight.Unknown || f.Reason != "SecretChanged" || !f.Blocks ||
		!strings.Contains(f.Message, "has a token of a ServiceAccount now") {
		t.Errorf("the account: %+v, want a blocking Unknown", f)
	}
	testCluster.ExpectNothingLeft(t)
	return attackRow{
		"token Secret that is created while the check runs", "the token, where a volume is updated",
		"ReadOnlyAccess: Unknown (SecretChanged)",
	}
}
