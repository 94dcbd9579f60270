package launch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
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
			from := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: name},
				Key:                  "token",
			}}
			spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: from}}
		},
	}
}

// accountToken is a token of a ServiceAccount, with a signature that is none.
const accountToken = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6a3ViZS1zeXN0ZW06YWRtaW4ifQ.c2lnbmF0dXJl"

// secrets creates a Secret with a token, one with the token as a value, and one without in a namespace.
func secrets(t *testing.T, namespace string) {
	t.Helper()
	if _, err := api.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{}); err != nil {
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
			"Token": {
				reason: "the guard does not recognize the token", secret: "token", launcher: newLauncher(t, config),
				wantReasons: []string{"RefusedTokenSecret"},
			},
			"Copied": {
				reason: "the type says nothing about the values", secret: "copied", launcher: newLauncher(t, config),
				wantReasons: []string{"RefusedTokenSecret"},
			},
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

// usesOfConfigMap are all ways in which a container can read a ConfigMap.
func usesOfConfigMap() map[string]func(*corev1.PodSpec, string) {
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	return map[string]func(*corev1.PodSpec, string){
		"Volume": func(spec *corev1.PodSpec, name string) {
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: configMap(name)}}
		},
		"Projection": func(spec *corev1.PodSpec, name string) {
			spec.Volumes = []corev1.Volume{{
				Name:         "v",
				VolumeSource: projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named(name)}}),
			}}
		},
		"Variables": func(spec *corev1.PodSpec, name string) {
			spec.InitContainers = []corev1.Container{{
				Name: "first", Image: releasetest.Image,
				EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named(name)}}},
			}}
		},
		"Variable": func(spec *corev1.PodSpec, name string) {
			from := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name), Key: "token"}}
			spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: from}}
		},
	}
}

// configMaps are ConfigMaps of a namespace.
func configMaps() map[string]*corev1.ConfigMap {
	const user = "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: {"
	return map[string]*corev1.ConfigMap{
		"token":      {Data: map[string]string{"a": "ordinary", "token": accountToken}},
		"binary":     {BinaryData: map[string][]byte{"token": []byte(accountToken)}},
		"kubeconfig": {Data: map[string]string{"kubeconfig": user + "token: opaque}\n"}},
		"plain":      {Data: map[string]string{"token": "settings of the check"}},
		"ofpod":      {Data: map[string]string{"kubeconfig": user + "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}\n"}},
	}
}

// What a check reads counts by its content, whatever its kind.
func TestAttacksByConfigMaps(t *testing.T) {
	namespace := newNamespace(t)
	for name, config := range configMaps() {
		config.Name = name
		if _, err := api.CoreV1().ConfigMaps(namespace).Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	limited := allowed(t, checksOf(namespace)) // may create Jobs, but not read ConfigMaps
	for use, read := range usesOfConfigMap() {
		for name, tc := range map[string]struct {
			reason, config string
			launcher       *process
			want           string
			unknown        bool
		}{
			"Token": {
				reason: "the guard does not recognize the token", config: "token", launcher: newLauncher(t, config),
				want: "RefusedTokenSecret",
			},
			"Binary":     {reason: "binary data is mounted, too", config: "binary", launcher: newLauncher(t, config), want: "RefusedTokenSecret"},
			"Kubeconfig": {reason: "a kubeconfig with a token", config: "kubeconfig", launcher: newLauncher(t, config), want: "RefusedTokenSecret"},
			"Plain":      {reason: "an ordinary ConfigMap", config: "plain", launcher: newLauncher(t, config)},
			"OfPod":      {reason: "a kubeconfig for the token of the pod", config: "ofpod", launcher: newLauncher(t, config)},
			"Missing":    {reason: "a ConfigMap may be optional", config: "missing", launcher: newLauncher(t, config)},
			"Published":  {reason: "the certificates of the API server, which a controller writes", config: "kube-root-ca.crt", launcher: limited},
			"NotAllowed": {reason: "the audit bars the check: nothing is known of it", config: "plain", launcher: limited, unknown: true},
		} {
			t.Run(use+name, func(t *testing.T) {
				findings, valid := tc.launcher.Validate(t.Context(),
					releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
						job.Namespace = namespace
						read(&job.Spec.Template.Spec, tc.config)
					}))))
				got := ""
				for _, f := range findings {
					got = f.Reason
				}
				if known := valid.Secrets[inventory.Refer("ConfigMap", namespace, tc.config)]; got != tc.want || (known.Type != nil) != tc.unknown {
					t.Errorf("%s: %q, want %q; the error is %v", tc.reason, got, tc.want, known.Type)
				}
				var read []string
				for _, account := range accountcopy.Of(valid) {
					for _, secret := range account.Secrets {
						read = append(read, secret.Name)
					}
				}
				if (len(read) > 0) != tc.unknown {
					t.Errorf("%s: the audit names %q", tc.reason, read)
				}
			})
		}
	}
}

// A release may bring a credential itself.
func TestAttacksByCredentialsOfTheRelease(t *testing.T) {
	namespace := newNamespace(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*payload.Release)
		want   string
	}{
		"None": {reason: "an ordinary release", change: func(*payload.Release) {}},
		"ConfigMap": {reason: "a supporting object", want: "RefusedTokenSecret", change: func(release *payload.Release) {
			for _, supporting := range release.Supporting {
				if config, ok := supporting.Object.(*corev1.ConfigMap); ok {
					config.Data = map[string]string{"token": accountToken}
				}
			}
		}},
		"Environment": {reason: "a variable with the token itself", want: "RefusedTokenSecret", change: func(release *payload.Release) {
			release.Jobs[0].Job.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: accountToken}}
		}},
		"Argument": {reason: "an argument with the token", want: "RefusedTokenSecret", change: func(release *payload.Release) {
			release.Jobs[0].Job.Spec.Template.Spec.Containers[0].Args = []string{"--token=" + accountToken}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			release := aFullRelease(namespace)
			tc.change(release)
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

// A role of the release may name a Secret with a token, which the check can read.
func TestAttacksByTokenSecretsOfRoles(t *testing.T) {
	namespace := newNamespace(t)
	secrets(t, namespace)
	shared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: map[string]string{"a": accountToken}}
	if _, err := api.CoreV1().ConfigMaps(namespace).Create(t.Context(), shared, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		rule   rbacv1.PolicyRule
		want   string
	}{
		"Token": {"the guard does not recognize the token", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"get"}, ResourceNames: []string{"token"},
		}, "RefusedTokenSecret"},
		"Watch": {"a watch has the content, too", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"pods", "secrets"},
			Verbs: []string{"watch"}, ResourceNames: []string{"other", "token"},
		}, "RefusedTokenSecret"},
		"Copied": {"the type says nothing about the values", rbacv1.PolicyRule{
			APIGroups: []string{"*"}, Resources: []string{"secrets"},
			Verbs: []string{"list"}, ResourceNames: []string{"copied"},
		}, "RefusedTokenSecret"},
		"Path": {"no object has this name", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"get"}, ResourceNames: []string{"a/b", ".."},
		}, ""},
		"Plain": {"other Secrets have no token of the API server", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			Verbs: []string{"get"}, ResourceNames: []string{"plain"},
		}, ""},
		"Missing": {"a Secret may not exist", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
			ResourceNames: []string{"missing"},
		}, ""},
		"ConfigMap": {"a ConfigMap with a token", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"get"}, ResourceNames: []string{"shared"},
		}, "RefusedTokenSecret"},
		"OtherAPI": {"the name of another object", rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"get"}, ResourceNames: []string{"token"},
		}, ""},
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
			drafted := jobplan.New(releasetest.Run().From,
				releasetest.Release(releasetest.Job(func(job *batchv1.Job) { read(&job.Spec.Template.Spec, "settings") })))
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
			reason: "a stream has the Secrets of its namespace with credentials of registries",
			rules:  []rbacv1.PolicyRule{rule("image.openshift.io", "imagestreams/secrets", []string{"cli"}, "get")},
			want:   []access.Request{{Verb: "get", Group: "image.openshift.io", Resource: "imagestreams", Subresource: "secrets"}},
		},
		"Named": {
			reason: "the release names the Secrets",
			rules:  []rbacv1.PolicyRule{rule("", "secrets", []string{"cloud"}, "get", "list")},
		},
		"OtherGroup": {
			reason: "the resource of another group is no Secret",
			rules:  []rbacv1.PolicyRule{rule("example.com", "secrets", nil, "get")},
		},
		"Pods": {reason: "pods have no tokens", rules: []rbacv1.PolicyRule{rule("", "pods", nil, "get")}},
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
		"Created": {
			reason: "it may have had another content before", change: steps{ordinary},
			want: "was created meanwhile in namespace " + namespace,
		},
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

// A ConfigMap is read again when the checks have ended, also one that the run has created: only a credential counts, since
// the user may read all of it.
func TestAttacksByConfigMapsThatChange(t *testing.T) {
	namespace := newNamespace(t)
	put := func(t *testing.T, name, value string) {
		t.Helper()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": value}}
		_, err := api.CoreV1().ConfigMaps(namespace).Update(t.Context(), config, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = api.CoreV1().ConfigMaps(namespace).Create(t.Context(), config, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	own := func(plan jobplan.Plan) string {
		return plan.Checks[0].Job.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name
	}
	for name, tc := range map[string]struct {
		reason, before, after string
		ofRun                 bool
		want                  string
	}{
		"Updated":      {reason: "other settings", before: "x", after: "y"},
		"Created":      {reason: "settings that are read now", after: "x"},
		"UpdatedToken": {reason: "the kubelet updates volumes", before: "x", after: accountToken, want: "has a token of a ServiceAccount now"},
		"CreatedToken": {reason: "the check may have written with it", after: accountToken, want: "has a token of a ServiceAccount now"},
		"OfTheRun": {
			reason: "a user edits the copy of the run", after: accountToken, ofRun: true,
			want: "has a token of a ServiceAccount now",
		},
		"OfTheRunKept": {reason: "the copy of the run", ofRun: true},
	} {
		t.Run(name, func(t *testing.T) {
			changing := "changing-" + strings.ToLower(name)
			if tc.before != "" {
				put(t, changing, tc.before)
			}
			release := aFullRelease(namespace)
			if !tc.ofRun {
				usesOfConfigMap()["Volume"](&release.Jobs[0].Job.Spec.Template.Spec, changing)
			}
			launcher := newLauncher(t, config)
			findings, plan := launcher.Validate(t.Context(), releasetest.Plan(newRun(), release))
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			create(t, launcher, plan)
			if tc.ofRun {
				changing = own(plan)
			}
			if tc.after != "" {
				put(t, changing, tc.after)
			}
			want := map[inventory.Reference]string{}
			if tc.want != "" {
				want[inventory.Refer("ConfigMap", namespace, changing)] = tc.want
			}
			if diff := cmp.Diff(want, launcher.ChangedSecrets(t.Context(), plan)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
