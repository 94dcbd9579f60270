package launch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// runsAs returns a plan with one check that runs as an existing ServiceAccount.
func runsAs(namespace, account string) jobplan.Plan {
	return releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
		job.Namespace, job.Spec.Template.Spec.ServiceAccountName = namespace, account
	})))
}

// administrator is the ClusterRole that is bound in the whole cluster.
const administrator = "cluster-admin"

// anAccount creates a ServiceAccount to which this ClusterRole is bound, in its
// namespace or, for an administrator, in the whole cluster.
func anAccount(t *testing.T, namespace, name, role string) {
	t.Helper()
	account := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Name: name, Annotations: map[string]string{"example.com/role": "admin"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}, AutomountServiceAccountToken: new(true),
	}
	if _, err := api.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{GenerateName: "bound-"}
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	if role != administrator {
		if _, err := api.RbacV1().RoleBindings(namespace).Create(t.Context(),
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: refer, Subjects: subjects}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	made, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(),
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: refer, Subjects: subjects}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.RbacV1().ClusterRoleBindings().Delete(context.Background(), made.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// asCopy returns the client of the copy that the checks of a plan run as.
func asCopy(t *testing.T, plan jobplan.Plan) kubernetes.Interface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(copyConfig(t, plan))
}

func copyConfig(t *testing.T, plan jobplan.Plan) *rest.Config {
	t.Helper()
	account := accountcopy.Of(plan)[0]
	token, err := api.CoreV1().ServiceAccounts(account.Namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	identity := rest.AnonymousClientConfig(config)
	identity.BearerToken = token.Status.Token
	return identity
}

// The guard does not deny anything here, since the token is of no pod.
func TestCopiedAccountsOnlyRead(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, role string
		omitted      []string
	}{
		"View": {reason: "view reads neither Secrets nor connections", role: "view"},
		"Edit": {
			reason: "edit writes and reads Secrets", role: "edit",
			omitted: []string{"Secrets of any name", "connections to pods, nodes and services"},
		},
		"Administrator": {
			reason: "cluster-admin may do everything", role: administrator,
			omitted: []string{"Secrets of any name", "connections to pods, nodes and services", "paths with a wildcard"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			anAccount(t, namespace, "existing", tc.role)
			launcher := newLauncher(t, config)
			findings, plan := launcher.Validate(t.Context(), runsAs(namespace, "existing"))
			if len(findings) > 0 || len(plan.Checks) != 1 {
				t.Fatalf("%s: findings %+v", tc.reason, findings)
			}
			copied := accountcopy.Of(plan)[0]
			if !copied.Copied || copied.Author != "existing" || copied.Name == "existing" ||
				plan.Checks[0].Job.Spec.Template.Spec.ServiceAccountName != copied.Name {
				t.Errorf("%s: account %+v, want a copy", tc.reason, copied)
			}
			if diff := cmp.Diff(tc.omitted, copied.Omitted); diff != "" {
				t.Errorf("%s: omitted (-want, +got):\n%s", tc.reason, diff)
			}
			if err := launcher.Prepare(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if removal, err := launcher.Cleanup(context.Background(), plan.Run.ID); err != nil {
					t.Errorf("left %v: %v", removal.Left, err)
				}
			})
			made, err := api.CoreV1().ServiceAccounts(namespace).Get(t.Context(), copied.Name, metav1.GetOptions{})
			if err != nil || len(made.ImagePullSecrets) != 1 || made.ImagePullSecrets[0].Name != "pull" ||
				made.Annotations["example.com/role"] != "" {
				t.Errorf("%s: %v, %+v; want the image pull secrets and no annotation of the original", tc.reason, err, made)
			}
			client := asCopy(t, plan)
			await(t, tc.reason+": reads pods", func() error {
				_, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
				return err
			})
			_, secretsErr := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			_, writeErr := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "written"}}, metav1.CreateOptions{})
			for action, err := range map[string]error{
				"list Secrets":         secretsErr,
				"create a ConfigMap":   writeErr,
				"delete the namespace": client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}),
				"delete every policy": client.AdmissionregistrationV1().ValidatingAdmissionPolicies().DeleteCollection(t.Context(),
					metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "none=none"}),
				"connect to a kubelet": client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/any/proxy/pods").Do(t.Context()).Error(),
				"impersonate":          impersonating(t, plan).CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces").Do(t.Context()).Error(),
			} {
				if err == nil || !strings.Contains(err.Error(), "forbidden") {
					t.Errorf("%s: the copy may %s: %v", tc.reason, action, err)
				}
			}
		})
	}
}

// impersonating returns the client of the copy that impersonates an administrator.
func impersonating(t *testing.T, plan jobplan.Plan) kubernetes.Interface {
	t.Helper()
	identity := copyConfig(t, plan)
	identity.Impersonate = rest.ImpersonationConfig{UserName: "system:admin", Groups: []string{"system:masters"}}
	return kubernetes.NewForConfigOrDie(identity)
}

// await repeats a request until it succeeds: the authorizer observes new roles after a
// delay.
func await(t *testing.T, what string, request func() error) {
	t.Helper()
	var failure error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		failure = request()
		return failure == nil, nil
	})
	if err != nil {
		t.Errorf("%s: %v", what, failure)
	}
}

func TestCopyWithoutPermissionToReadBindings(t *testing.T) {
	namespace := newNamespace(t)
	anAccount(t, namespace, "existing", "view")
	limited := allowed(t, checksOf(namespace))
	findings, plan := limited.Validate(t.Context(), runsAs(namespace, "existing"))
	if len(findings) > 0 || len(plan.Supporting) != 1 {
		t.Fatalf("findings %+v, %d objects; want a copy without permissions", findings, len(plan.Supporting))
	}
	if copied := accountcopy.Of(plan)[0]; copied.Unread == nil || !copied.Copied || len(copied.Rules) > 0 {
		t.Errorf("account %+v, want that its permissions are unknown", copied)
	}
}

// The API server lets a user grant only permissions of their own.
func TestCopyOfWhatTheUserMayNotGrant(t *testing.T) {
	namespace := newNamespace(t)
	anAccount(t, namespace, "existing", "view")
	grants := access.Needs{Required: []access.Request{
		{Verb: "create", Group: rbacv1.GroupName, Resource: "roles", Namespace: namespace},
		{Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings", Namespace: namespace},
		{Verb: "get", Group: rbacv1.GroupName, Resource: "*"},
		{Verb: "list", Group: rbacv1.GroupName, Resource: "*"},
	}}
	limited := allowed(t, checksOf(namespace).And(grants))
	findings, plan := limited.Validate(t.Context(), runsAs(namespace, "existing"))
	if len(plan.Checks) > 0 || len(findings) != 1 {
		t.Fatalf("%d checks, findings %+v; want one finding", len(plan.Checks), findings)
	}
	f := findings[0]
	if f.Outcome != preflight.Unknown || f.Reason != "AccountNotCopied" || !f.Blocks || f.Remediation == "" ||
		!strings.Contains(f.Message, "attempting to grant RBAC permissions not currently held") {
		t.Errorf("%+v, want a blocking Unknown with the permissions that are missing", f)
	}
	if err := launch.Ungrantable(findings); err != nil {
		t.Errorf("the other checks do not run: %v", err)
	}
}

// Runs do not share copies, and a second call for a run changes nothing.
func TestCopyAccountsIsRepeatable(t *testing.T) {
	namespace := newNamespace(t)
	anAccount(t, namespace, "existing", "view")
	launcher := newLauncher(t, config)
	original := runsAs(namespace, "existing")
	once := launcher.CopyAccounts(t.Context(), original)
	twice := launcher.CopyAccounts(t.Context(), once)
	if diff := cmp.Diff(once.Supporting, twice.Supporting); diff != "" || len(once.Supporting) != 3 {
		t.Errorf("a second call changes %d objects (-first, +second):\n%s", len(once.Supporting), diff)
	}
	if len(original.Supporting) > 0 || original.Checks[0].Job.Spec.Template.Spec.ServiceAccountName != "existing" {
		t.Error("the plan itself is changed")
	}
	var kinds []string
	for _, object := range once.Supporting {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	if !slices.Equal(kinds, []string{"Role", "ServiceAccount", "RoleBinding"}) {
		t.Errorf("objects %q, want bindings last", kinds)
	}
}
