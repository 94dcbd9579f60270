package launch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// usesOfSecret are all ways in which a container can read a Secret.
func usesOfSecret() map[string]func(*corev1.PodSpec, string) {
	return map[string]func(*corev1.PodSpec, string){
		"Volume": func(spec *corev1.PodSpec, name string) {
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
		},
		"Projection": func(spec *corev1.PodSpec, name string) {
			projected := &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
			}}
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: projected}}}
		},
		"Variables": func(spec *corev1.PodSpec, name string) {
			from := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
			spec.Containers[0].EnvFrom = []corev1.EnvFromSource{from}
		},
		"Variable": func(spec *corev1.PodSpec, name string) {
			from := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "token"}}
			spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: from}}
		},
	}
}

// accountToken is a token of a ServiceAccount, with a signature that is none.
const accountToken = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6a3ViZS1zeXN0ZW06YWRtaW4ifQ.c2lnbmF0dXJl"

// secrets creates a Secret with a token, one with the token as a value, and one without in a namespace.
func secrets(t *testing.T, namespace string) {
	t.Helper()
	if _, err := api.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, StringData: map[string]string{"token": "secret of another service"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "copied"}, StringData: map[string]string{"token": accountToken}},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "owner"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		},
	} {
		if _, err := api.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTokenSecretsAreRejected tests each use of a Secret.
func TestTokenSecretsAreRejected(t *testing.T) {
	namespace := newNamespace(t)
	secrets(t, namespace)
	// The user may create Jobs, but not read Secrets.
	limited := allowed(t, checksOf(namespace))
	for use, read := range usesOfSecret() {
		for name, tc := range map[string]struct {
			reason, secret string
			launcher       *process
			wantReasons    []string
			unknown        bool
		}{
			"Token":      {reason: "the guard does not recognize the token", secret: "token", launcher: newLauncher(t, config), wantReasons: []string{"RefusedTokenSecret"}},
			"Copied":     {reason: "the type says nothing about the values", secret: "copied", launcher: newLauncher(t, config), wantReasons: []string{"RefusedTokenSecret"}},
			"Plain":      {reason: "this Secret has no known credential", secret: "plain", launcher: newLauncher(t, config)},
			"Missing":    {reason: "a Secret may be optional", secret: "missing", launcher: newLauncher(t, config)},
			"NotAllowed": {reason: "the audit bars the check: the type is unknown to this user", secret: "token", launcher: limited, unknown: true},
		} {
			t.Run(use+name, func(t *testing.T) {
				plan := releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
					job.Namespace = namespace
					read(&job.Spec.Template.Spec, tc.secret)
				})))
				findings, valid := tc.launcher.Validate(t.Context(), plan)
				var reasons []string
				for _, f := range findings {
					reasons = append(reasons, f.Reason)
					if f.Outcome != preflight.Fail || !f.Blocks || !strings.Contains(f.Message, tc.secret) {
						t.Errorf("%s: want a blocking Fail that names the Secret, got %+v", tc.reason, f)
					}
				}
				if diff := cmp.Diff(tc.wantReasons, reasons); diff != "" || len(valid.Checks)+len(findings) != 1 {
					t.Errorf("%s: %d valid checks, reasons (-want, +got):\n%s", tc.reason, len(valid.Checks), diff)
				}
				if known := valid.Secrets[inventory.Refer("Secret", namespace, tc.secret)]; (known.Type != nil) != tc.unknown {
					t.Errorf("%s: the error of the type is %v", tc.reason, known.Type)
				}
			})
		}
	}
}

// A role of the release may name a Secret with a token, which the check can read.
func TestAttacksByTokenSecretsOfRoles(t *testing.T) {
	namespace := newNamespace(t)
	secrets(t, namespace)
	for name, tc := range map[string]struct {
		reason string
		rule   rbacv1.PolicyRule
		want   string
	}{
		"Token":    {"the guard does not recognize the token", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"token"}}, "RefusedTokenSecret"},
		"Watch":    {"a watch has the content, too", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "secrets"}, Verbs: []string{"watch"}, ResourceNames: []string{"other", "token"}}, "RefusedTokenSecret"},
		"Copied":   {"the type says nothing about the values", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"secrets"}, Verbs: []string{"list"}, ResourceNames: []string{"copied"}}, "RefusedTokenSecret"},
		"Path":     {"no object has this name", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"a/b", ".."}}, ""},
		"Plain":    {"other Secrets have no token of the API server", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"plain"}}, ""},
		"Missing":  {"a Secret may not exist", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"missing"}}, ""},
		"OtherAPI": {"the name of another object", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}, ResourceNames: []string{"token"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			release := aFullRelease(namespace)
			for _, supporting := range release.Supporting {
				if role, ok := supporting.Object.(*rbacv1.Role); ok {
					role.Rules = []rbacv1.PolicyRule{tc.rule}
				}
			}
			findings, _ := newLauncher(t, config).Validate(t.Context(), releasetest.Plan(newRun(), release))
			got := ""
			for _, f := range findings {
				got = f.Reason
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q: %+v", tc.reason, got, tc.want, findings)
			}
		})
	}
}

// TestNeedsIncludeSecrets checks that the request of the validation is declared.
func TestNeedsIncludeSecrets(t *testing.T) {
	for use, read := range usesOfSecret() {
		t.Run(use, func(t *testing.T) {
			drafted := jobplan.New(releasetest.Run().From, releasetest.Release(releasetest.Job(func(job *batchv1.Job) { read(&job.Spec.Template.Spec, "settings") })))
			var got []access.Request
			for _, request := range drafted.Needs().Optional {
				if request.Resource == "secrets" {
					got = append(got, request)
				}
			}
			want := access.Verbs(access.Request{Resource: "secrets", Namespace: "default", Name: "settings"}, "list", "get")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the Secret is read by name (-want, +got):\n%s", diff)
			}
		})
	}
}

func TestSecretReads(t *testing.T) {
	rule := func(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	for name, tc := range map[string]struct {
		reason string
		rules  []rbacv1.PolicyRule
		want   []access.Request
	}{
		"Get": {
			reason: "a token Secret is read by its name", rules: []rbacv1.PolicyRule{rule("", "secrets", nil, "get")},
			want: []access.Request{{Verb: "get", Resource: "secrets"}},
		},
		"TwoRules": {
			reason: "rules are additive", rules: []rbacv1.PolicyRule{rule("", "secrets", nil, "list"), rule("*", "secrets", nil, "watch")},
			want: []access.Request{{Verb: "list", Resource: "secrets"}, {Verb: "watch", Resource: "secrets"}},
		},
		"EmptyName": {
			reason: "a list without a name has an empty one", rules: []rbacv1.PolicyRule{rule("", "secrets", []string{"cloud", ""}, "get", "list")},
			want: []access.Request{{Verb: "list", Resource: "secrets"}},
		},
		"ImageStream": {
			reason: "a stream has the Secrets of its namespace with credentials of registries", rules: []rbacv1.PolicyRule{rule("image.openshift.io", "imagestreams/secrets", []string{"cli"}, "get")},
			want: []access.Request{{Verb: "get", Group: "image.openshift.io", Resource: "imagestreams", Subresource: "secrets"}},
		},
		"Named":      {reason: "the release names the Secrets", rules: []rbacv1.PolicyRule{rule("", "secrets", []string{"cloud"}, "get", "list")}},
		"OtherGroup": {reason: "the resource of another group is no Secret", rules: []rbacv1.PolicyRule{rule("example.com", "secrets", nil, "get")}},
		"Pods":       {reason: "pods have no tokens", rules: []rbacv1.PolicyRule{rule("", "pods", nil, "get")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, accountcopy.Account{Rules: tc.rules}.SecretReads()); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// steps change a Secret of this name, one after the other.
type steps []func(t *testing.T, name string)

// A Secret is read again when the checks have ended.
func TestAttacksBySecretsThatChange(t *testing.T) {
	namespace := newNamespace(t)
	secrets(t, namespace)
	create := func(t *testing.T, name, value string) {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"a": value}}
		if _, err := api.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, name string) {
		t.Helper()
		if err := api.CoreV1().Secrets(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	update := func(t *testing.T, name, value string) {
		t.Helper()
		patch := []byte(`{"stringData": {"a": "` + value + `"}}`)
		if _, err := api.CoreV1().Secrets(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	created := func(value string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			t.Helper()
			create(t, name, value)
		}
	}
	updated := func(value string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			t.Helper()
			update(t, name, value)
		}
	}
	ordinary, token, rotated, stolen := created("x"), created(accountToken), updated("y"), updated(accountToken)
	for name, tc := range map[string]struct {
		reason string
		exists bool
		change steps
		want   string
	}{
		"Unchanged": {reason: "most Secrets", exists: true},
		"Absent":    {reason: "an optional one"},
		"Created":   {reason: "it may have had another content before", change: steps{ordinary}, want: "was created meanwhile in namespace " + namespace},
		"CreatedToken": {
			reason: "the check may have written with it", change: steps{token}, want: "has a token of a ServiceAccount now",
		},
		"Updated":      {reason: "a rotation of its value", exists: true, change: steps{rotated}},
		"UpdatedToken": {reason: "the kubelet updates volumes", exists: true, change: steps{stolen}, want: "has a token of a ServiceAccount now"},
		"Replaced": {
			reason: "another one of the name", exists: true, want: "was created meanwhile in namespace " + namespace,
			change: steps{remove, ordinary},
		},
		"Deleted": {reason: "the check reads nothing", exists: true, change: steps{remove}},
	} {
		t.Run(name, func(t *testing.T) {
			secret := "changing-" + strings.ToLower(name)
			if tc.exists {
				create(t, secret, "x")
			}
			launcher := newLauncher(t, config)
			findings, plan := launcher.Validate(t.Context(), releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
				job.Namespace = namespace
				usesOfSecret()["Volume"](&job.Spec.Template.Spec, secret)
			}))))
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			if err := errors.Join(launcher.Prepare(t.Context(), plan), launcher.Start(t.Context(), plan.Checks[0])); err != nil {
				t.Fatal(err)
			}
			for _, step := range tc.change {
				step(t, secret)
			}
			want := map[inventory.Reference]string{}
			if tc.want != "" {
				want[inventory.Refer("Secret", namespace, secret)] = tc.want
			}
			if diff := cmp.Diff(want, launcher.ChangedSecrets(t.Context(), plan)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if left, err := launcher.Cleanup(t.Context(), plan.Run.ID); err != nil {
				t.Errorf("left %v: %v", left, err)
			}
		})
	}
}
