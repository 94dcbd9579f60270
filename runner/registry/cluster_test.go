package registry_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/test/user"
)

const (
	payloadRepository = "quay.io/openshift-release-dev/ocp-release"
	digest            = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

// state is the configuration of the test cluster.
type state struct {
	digests  map[string][]configv1.ImageDigestMirrors
	tags     map[string][]configv1.ImageTagMirrors
	policies map[string][]operatorv1alpha1.RepositoryDigestMirrors
	sources  configv1.RegistrySources
	trusted  map[string]string // additionalTrustedCA
	bundle   string
	proxy    configv1.ProxyStatus
	auths    map[string]string // key to user:password
	raw      string            // of the pull secret
}

func clientsOf(t *testing.T, config *rest.Config) registry.PullConfig {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return registry.PullConfig{
		Kubernetes: kubernetes.NewForConfigOrDie(config), OpenShift: configclient.NewForConfigOrDie(config),
		Dynamic: dynamic.NewForConfigOrDie(config), Release: payloadRepository + digest,
	}
}

// apply configures the test cluster until the end of the test.
func apply(t *testing.T, s state) registry.PullConfig {
	t.Helper()
	c := clientsOf(t, config)
	openshift := c.OpenShift.ConfigV1()
	for name, mirrors := range s.digests {
		_, err := openshift.ImageDigestMirrorSets().Create(t.Context(), &configv1.ImageDigestMirrorSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       configv1.ImageDigestMirrorSetSpec{ImageDigestMirrors: mirrors},
		}, metav1.CreateOptions{})
		created(t, err, func(ctx context.Context) error {
			return openshift.ImageDigestMirrorSets().Delete(ctx, name, metav1.DeleteOptions{})
		})
	}
	for name, mirrors := range s.tags {
		_, err := openshift.ImageTagMirrorSets().Create(t.Context(), &configv1.ImageTagMirrorSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       configv1.ImageTagMirrorSetSpec{ImageTagMirrors: mirrors},
		}, metav1.CreateOptions{})
		created(t, err, func(ctx context.Context) error {
			return openshift.ImageTagMirrorSets().Delete(ctx, name, metav1.DeleteOptions{})
		})
	}
	icsp := c.Dynamic.Resource(operatorv1alpha1.GroupVersion.WithResource("imagecontentsourcepolicies"))
	for name, mirrors := range s.policies {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&operatorv1alpha1.ImageContentSourcePolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1alpha1.GroupVersion.String(), Kind: "ImageContentSourcePolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: operatorv1alpha1.ImageContentSourcePolicySpec{RepositoryDigestMirrors: mirrors},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = icsp.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		created(t, err, func(ctx context.Context) error { return icsp.Delete(ctx, name, metav1.DeleteOptions{}) })
	}
	s.applyConfig(t, c)
	return c
}

func (s state) applyConfig(t *testing.T, c registry.PullConfig) {
	t.Helper()
	openshift, core := c.OpenShift.ConfigV1(), c.Kubernetes.CoreV1()
	image := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: configv1.ImageSpec{RegistrySources: s.sources}}
	if s.trusted != nil {
		image.Spec.AdditionalTrustedCA.Name = "registry-cas"
	}
	_, err := openshift.Images().Create(t.Context(), image, metav1.CreateOptions{})
	created(t, err, func(ctx context.Context) error {
		return openshift.Images().Delete(ctx, "cluster", metav1.DeleteOptions{})
	})
	proxy, err := openshift.Proxies().Create(t.Context(), &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}},
		metav1.CreateOptions{})
	created(t, err, func(ctx context.Context) error {
		return openshift.Proxies().Delete(ctx, "cluster", metav1.DeleteOptions{})
	})
	proxy.Status = s.proxy
	if _, err := openshift.Proxies().UpdateStatus(t.Context(), proxy, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"openshift-config", "openshift-config-managed"} {
		_, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for at, data := range map[[2]string]map[string]string{
		{"openshift-config", "registry-cas"}:              s.trusted,
		{"openshift-config-managed", "trusted-ca-bundle"}: {"ca-bundle.crt": s.bundle},
	} {
		if data == nil {
			continue
		}
		_, err := core.ConfigMaps(at[0]).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: at[1]}, Data: data},
			metav1.CreateOptions{})
		created(t, err, func(ctx context.Context) error {
			return core.ConfigMaps(at[0]).Delete(ctx, at[1], metav1.DeleteOptions{})
		})
	}
	if s.auths == nil && s.raw == "" {
		return
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pull-secret"},
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: authFile(t, s.auths)},
	}
	if s.raw != "" {
		secret.Data[corev1.DockerConfigJsonKey] = []byte(s.raw)
	}
	_, err = core.Secrets("openshift-config").Create(t.Context(), secret, metav1.CreateOptions{})
	created(t, err, func(ctx context.Context) error {
		return core.Secrets("openshift-config").Delete(ctx, "pull-secret", metav1.DeleteOptions{})
	})
}

func created(t *testing.T, err error, remove func(context.Context) error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// authFile is the file with an entry for each key.
func authFile(t *testing.T, auths map[string]string) []byte {
	t.Helper()
	entries := map[string]any{}
	for key, account := range auths {
		entries[key] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(account))}
	}
	content, err := json.Marshal(map[string]any{"auths": entries})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func mirrored(source string, mirrors ...configv1.ImageMirror) configv1.ImageDigestMirrors {
	return configv1.ImageDigestMirrors{Source: source, Mirrors: mirrors}
}

func TestPlaces(t *testing.T) {
	never := func(set configv1.ImageDigestMirrors) configv1.ImageDigestMirrors {
		set.MirrorSourcePolicy = configv1.NeverContactSource
		return set
	}
	list := func(sets ...configv1.ImageDigestMirrors) []configv1.ImageDigestMirrors { return sets }
	for name, tc := range map[string]struct {
		reason   string
		state    state
		image    string // the payload by digest when empty
		want     []string
		warnings []string
	}{
		"None": {reason: "without configuration only the source is used", want: []string{"source quay.io/openshift-release-dev/ocp-release"}},
		"Mirror": {
			reason: "mirrors precede the source, and keep the rest of the name",
			state: state{digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored("quay.io/openshift-release-dev",
				"a.example.com:5000/ocp", "b.example.com"))}}, want: []string{
				"mirror a.example.com:5000/ocp/ocp-release", "mirror b.example.com/ocp-release", "source quay.io/openshift-release-dev/ocp-release",
			},
		},
		"Longest": {reason: "only the longest source applies", state: state{digests: map[string][]configv1.ImageDigestMirrors{
			"a": list(mirrored("quay.io", "short.example.com")), "b": list(mirrored(payloadRepository, "long.example.com/release")),
		}}, want: []string{"mirror long.example.com/release", "source quay.io/openshift-release-dev/ocp-release"}},
		"PartOfName": {reason: "a source ends where a part of the name ends", state: state{digests: map[string][]configv1.ImageDigestMirrors{
			"a": list(mirrored("quay.io/openshift-release", "wrong.example.com"),
				mirrored("quay.io/openshift-release-dev/ocp", "wrong.example.com")),
		}}, want: []string{"source quay.io/openshift-release-dev/ocp-release"}},
		"Merged": {reason: "two objects for one source are merged in a consistent order", state: state{
			digests: map[string][]configv1.ImageDigestMirrors{"b": list(mirrored("quay.io", "c.example.com", "d.example.com"))},
			policies: map[string][]operatorv1alpha1.RepositoryDigestMirrors{"a": {{
				Source:  "quay.io",
				Mirrors: []string{"a.example.com", "c.example.com"},
			}}},
		}, want: []string{
			"mirror a.example.com/openshift-release-dev/ocp-release", "mirror c.example.com/openshift-release-dev/ocp-release",
			"mirror d.example.com/openshift-release-dev/ocp-release", "source quay.io/openshift-release-dev/ocp-release",
		}},
		"Contradictory order": {
			reason: "contradictory orders use that of the first list",
			state: state{digests: map[string][]configv1.ImageDigestMirrors{
				"a": list(mirrored("quay.io", "a.example.com", "b.example.com")), "b": list(mirrored("quay.io", "b.example.com", "a.example.com")),
			}}, want: []string{
				"mirror a.example.com/openshift-release-dev/ocp-release", "mirror b.example.com/openshift-release-dev/ocp-release",
				"source quay.io/openshift-release-dev/ocp-release",
			},
		},
		"Source among mirrors": {
			reason: "the source may be listed among its mirrors",
			state:  state{digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored("quay.io", "quay.io", "a.example.com"))}},
			want: []string{
				"source quay.io/openshift-release-dev/ocp-release", "mirror a.example.com/openshift-release-dev/ocp-release",
			},
		},
		"Never": {
			reason: "the policy closes the source",
			state:  state{digests: map[string][]configv1.ImageDigestMirrors{"a": list(never(mirrored("quay.io", "a.example.com")))}}, want: []string{
				"mirror a.example.com/openshift-release-dev/ocp-release",
				`source quay.io/openshift-release-dev/ocp-release never contacted by policy: mirrorSourcePolicy of "quay.io" is NeverContactSource`,
			},
		},
		"Never without mirrors": {
			reason: "the policy applies only with a mirror",
			state:  state{digests: map[string][]configv1.ImageDigestMirrors{"a": list(never(mirrored("quay.io")))}},
			want:   []string{"source quay.io/openshift-release-dev/ocp-release"},
		},
		"Contradictory policies": {
			reason: "the stricter policy applies; the check MirrorSets warns",
			state: state{digests: map[string][]configv1.ImageDigestMirrors{
				"a": list(mirrored("quay.io", "a.example.com")), "b": list(never(mirrored("quay.io", "a.example.com"))),
			}}, want: []string{
				"mirror a.example.com/openshift-release-dev/ocp-release",
				`source quay.io/openshift-release-dev/ocp-release never contacted by policy: mirrorSourcePolicy of "quay.io" is NeverContactSource`,
			},
		},
		"Tag": {reason: "tags have separate mirrors", image: payloadRepository + ":4.21.3", state: state{
			digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored("quay.io", "digests.example.com"))},
			tags:    map[string][]configv1.ImageTagMirrors{"a": {{Source: "quay.io", Mirrors: []configv1.ImageMirror{"tags.example.com"}}}},
		}, want: []string{"mirror tags.example.com/openshift-release-dev/ocp-release", "source quay.io/openshift-release-dev/ocp-release"}},
		"Longer tag mirror": {reason: "the longest source applies, for tags or digests", state: state{
			digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored("quay.io", "digests.example.com"))},
			tags: map[string][]configv1.ImageTagMirrors{"a": {{
				Source:  payloadRepository,
				Mirrors: []configv1.ImageMirror{"tags.example.com/release"},
			}}},
		}, want: []string{"source quay.io/openshift-release-dev/ocp-release"}},
		"Wildcard": {
			reason: "a source can be all hosts of a domain", image: "sub.example.com/product/repo" + digest,
			state: state{digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored("*.example.com", "mirror.local/redhat"))}},
			want: []string{
				"mirror mirror.local/redhat/product/repo", "source sub.example.com/product/repo",
			},
		},
		"Blocked": {
			reason: "a registry can be blocked", image: "evil.example.com/repo" + digest,
			state: state{sources: configv1.RegistrySources{BlockedRegistries: []string{"*.example.com"}}}, want: []string{
				`source evil.example.com/repo blocked by the cluster: blockedRegistries covers "*.example.com"`,
			},
		},
		"Blocked mirror": {reason: "a mirror can be blocked", state: state{
			digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored("quay.io", "evil.example.com/x", "good.example.com"))},
			sources: configv1.RegistrySources{BlockedRegistries: []string{"evil.example.com"}},
		}, want: []string{
			`mirror evil.example.com/x/openshift-release-dev/ocp-release blocked by the cluster: blockedRegistries covers "evil.example.com"`,
			"mirror good.example.com/openshift-release-dev/ocp-release", "source quay.io/openshift-release-dev/ocp-release",
		}},
		"Blocked release": {
			reason: "MCO blocks the release's own repository only when there is a mirror of it",
			state:  state{sources: configv1.RegistrySources{BlockedRegistries: []string{"quay.io"}}},
			want:   []string{"source quay.io/openshift-release-dev/ocp-release"}, warnings: []string{"BlockedRegistryIgnored"},
		},
		"Blocked release with mirror": {reason: "MCO blocks the release's repository when it has a mirror", state: state{
			digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored(payloadRepository, "good.example.com/release"))},
			sources: configv1.RegistrySources{BlockedRegistries: []string{"quay.io"}},
		}, want: []string{
			"mirror good.example.com/release",
			`source quay.io/openshift-release-dev/ocp-release blocked by the cluster: blockedRegistries covers "quay.io/openshift-release-dev/ocp-release"`,
		}},
		"No name": {
			reason: "an ImageContentSourcePolicy can hold anything",
			state: state{policies: map[string][]operatorv1alpha1.RepositoryDigestMirrors{"a": {{
				Source:  "quay.io",
				Mirrors: []string{"HTTPS://x y"},
			}}}}, want: []string{
				"mirror HTTPS://x y/openshift-release-dev/ocp-release not the name of a repository", "source quay.io/openshift-release-dev/ocp-release",
			},
		},
		"Docker Hub": {
			reason: "Docker Hub's server has another name", image: "ubuntu" + digest,
			state: state{digests: map[string][]configv1.ImageDigestMirrors{"a": list(mirrored("docker.io", "hub.example.com"))}},
			want:  []string{"mirror hub.example.com/library/ubuntu", "source docker.io/library/ubuntu"},
		},
		"Allowed": {
			reason: "an allowed registry is not closed",
			state:  state{sources: configv1.RegistrySources{AllowedRegistries: []string{"quay.io"}}},
			want:   []string{"source quay.io/openshift-release-dev/ocp-release"},
		},
		"Not allowed": {
			reason: "a registry that is not allowed is closed, mirrored or not", image: "other.example.com/x" + digest,
			state: state{sources: configv1.RegistrySources{AllowedRegistries: []string{"quay.io"}}}, want: []string{"RegistryNotAllowed"},
		},
		"Malformed": {reason: "a malformed pull spec", image: "Not A Pull Spec", want: []string{"InvalidPullSpec"}},
	} {
		t.Run(name, func(t *testing.T) {
			access := registry.FromCluster(t.Context(), apply(t, tc.state), registry.Local{})
			image := tc.image
			if image == "" {
				image = payloadRepository + digest
			}
			places, err := access.Places(image)
			var got []string
			for _, place := range places {
				got = append(got, strings.TrimSpace(strings.ReplaceAll(place.String(), `"`, "")+" "+place.Closed))
			}
			if err != nil {
				got = append(got, failureOf(t, err).Reason.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, reasons(access)); diff != "" {
				t.Errorf("%s: warnings (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func reasons(access *registry.Access) []string {
	var all []string
	for _, warning := range access.Warnings() {
		all = append(all, warning.Reason)
	}
	return all
}

// TestForbidden checks that missing permissions are reported and do not stop the run.
func TestForbidden(t *testing.T) {
	apply(t, state{auths: map[string]string{"quay.io": "user:secret"}})
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	access := registry.FromCluster(t.Context(), clientsOf(t, unprivileged), registry.Local{Transport: hosts{"quay.io": unauthorized}})
	want := []string{
		"MirrorsUnreadable", "MirrorsUnreadable", "MirrorsUnreadable", "RegistrySourcesUnreadable", "ProxyUnreadable", "TrustedBundleUnreadable",
		"PullSecretUnreadable",
	}
	if diff := cmp.Diff(want, reasons(access)); diff != "" {
		t.Errorf("warnings without permissions (-want, +got):\n%s", diff)
	}
	_, err := access.Try(t.Context(), payloadRepository+digest, head)
	failure := failureOf(t, err)
	if failure.Reason.String() != "RegistryUnauthorized" ||
		!strings.Contains(failure.Remediation, "Secret openshift-config/pull-secret cannot be read") {
		t.Errorf("anonymous access is rejected: %s %q, want a remedy that names the unreadable pull secret", failure.Reason, failure.Remediation)
	}
	_, err = access.Try(t.Context(), "unreachable.example.com/release"+digest, head)
	failure = failureOf(t, err)
	if failure.Reason.String() != "RegistryUnreachable" ||
		!strings.Contains(failure.Remediation, "the cluster's ImageDigestMirrorSets cannot be read") {
		t.Errorf("mirror sets that were not read may have an entry: %s %q, want a remedy that names them", failure.Reason, failure.Remediation)
	}
}

// TestMinimalRole checks that the documented permissions suffice.
func TestMinimalRole(t *testing.T) {
	apply(t, state{auths: map[string]string{"quay.io": "user:secret"}, trusted: map[string]string{}})
	const openshift = "config.openshift.io"
	puller := user.With(t, config, access.Needs{Required: []access.Request{
		{Verb: "list", Group: openshift, Resource: "imagedigestmirrorsets"},
		{Verb: "list", Group: openshift, Resource: "imagetagmirrorsets"},
		{Verb: "list", Group: "operator.openshift.io", Resource: "imagecontentsourcepolicies"},
		{Verb: "get", Group: openshift, Resource: "images"},
		{Verb: "get", Group: openshift, Resource: "proxies"},
		{Verb: "get", Resource: "configmaps"},
		{Verb: "get", Resource: "secrets"},
	}})
	from := registry.FromCluster(t.Context(), clientsOf(t, puller), registry.Local{})
	if warnings := from.Warnings(); len(warnings) > 0 {
		t.Errorf("with the documented permissions: %v", warnings)
	}
}

func TestWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		state  state
		want   string
		text   string
	}{
		"Pull secret": {
			reason: "a malformed pull secret", state: state{raw: "{"}, want: "PullSecretUnreadable",
			text: "Secret openshift-config/pull-secret are not valid JSON",
		},
		"Pull secret entry": {
			reason: "an entry that cannot be decoded is reported",
			state:  state{raw: `{"auths":{"quay.io":{"auth":"c2VjcmV0"}}}`}, want: "PullSecretUnreadable", text: `the entry "quay.io"`,
		},
		"No certificate": {
			reason: "a CA must be PEM", state: state{trusted: map[string]string{"registry.example.com..5000": "x"}},
			want: "AdditionalTrustedCAInvalid", text: `"registry.example.com..5000"`,
		},
		"Proxy's password": {
			reason: "the proxy's URL is not repeated",
			state:  state{proxy: configv1.ProxyStatus{HTTPSProxy: "http://user:password@proxy.example.com:3128"}},
		},
		"Nothing": {reason: "a valid configuration"},
		"Helpers not for all": {
			reason: "the pull secret cannot name credential helpers",
			state:  state{raw: `{"auths":{},"credsStore":"evil","credHelpers":{"quay.io":"evil"}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			access := registry.FromCluster(t.Context(), apply(t, tc.state), registry.Local{Transport: hosts{"quay.io": found}})
			var got string
			for _, warning := range access.Warnings() {
				got += warning.Reason
				if !strings.Contains(warning.Message, tc.text) || warning.Remediation == "" {
					t.Errorf("%s: %q, want one with %q and a remedy", tc.reason, warning.Message, tc.text)
				}
			}
			if got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
			visit, err := access.Try(t.Context(), payloadRepository+digest, head)
			if err != nil || visit.Credential != "no credential" {
				t.Errorf("%s: %q, %v", tc.reason, visit.Credential, err)
			}
		})
	}
}

func TestMissingAdditionalTrustedCA(t *testing.T) {
	c := apply(t, state{})
	image, err := c.OpenShift.ConfigV1().Images().Get(t.Context(), "cluster", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image.Spec.AdditionalTrustedCA.Name = "nowhere"
	if _, err := c.OpenShift.ConfigV1().Images().Update(t.Context(), image, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint([]string{"AdditionalTrustedCAMissing"})
	if got := fmt.Sprint(reasons(registry.FromCluster(t.Context(), c, registry.Local{}))); got != want {
		t.Errorf("warnings %s, want %s", got, want)
	}
}
