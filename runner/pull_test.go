package runner_test

import (
	"context"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/test/release"
)

// deleteAfter fails the test for the error of a creation, and removes the object after it.
func deleteAfter(t *testing.T, err error, remove func(context.Context) error) {
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

// mirror configures mirrors for a source that is never contacted.
func (w world) mirror(t *testing.T, source string, mirrors ...configv1.ImageMirror) {
	t.Helper()
	sets := w.cluster.OpenShift.ConfigV1().ImageDigestMirrorSets()
	_, err := sets.Create(t.Context(), &configv1.ImageDigestMirrorSet{
		ObjectMeta: metav1.ObjectMeta{Name: "mirrors"},
		Spec: configv1.ImageDigestMirrorSetSpec{
			ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: source, Mirrors: mirrors, MirrorSourcePolicy: configv1.NeverContactSource}},
		},
	}, metav1.CreateOptions{})
	deleteAfter(t, err, func(ctx context.Context) error { return sets.Delete(ctx, "mirrors", metav1.DeleteOptions{}) })
}

const disconnected = "quay.example.com/openshift/release"

func TestReleaseComesFromTheMirror(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.mirror(t, disconnected, configv1.ImageMirror(w.registry+"/empty/release"), configv1.ImageMirror(w.registry+"/openshift/release"))
	_, digest, _ := strings.Cut(w.pullSpec, "@")
	w.target = runner.Target{Image: disconnected + "@" + digest}
	decided := w.run(t)
	if decided.Verdict.Decision != verdict.Ready || decided.Target.Image != w.target.Image {
		t.Errorf("decision %s for %s, want Ready, and the requested pull spec: %+v", decided.Verdict.Decision, decided.Target.Image,
			decided.Findings)
	}
}

func TestReleaseIsOnNoMirror(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.mirror(t, disconnected, configv1.ImageMirror(w.registry+"/empty/release"), "127.0.0.1:1")
	_, digest, _ := strings.Cut(w.pullSpec, "@")
	w.target = runner.Target{Image: disconnected + "@" + digest}
	_, err := runner.Run(t.Context(), w.cluster, w.target, w.options)
	if err == nil {
		t.Fatal("a release that no mirror has was read")
	}
	for _, want := range []string{
		`mirror "` + w.registry + `/empty/release": 404 Not Found`, `mirror "127.0.0.1:1": `,
		`source "` + disconnected + `": never contacted by policy`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}

func TestReleaseIsReadOnce(t *testing.T) {
	w := newWorld(t, map[string]string{})
	directory, err := cache.Open(t.TempDir(), cache.DefaultLimit)
	if err != nil {
		t.Fatal(err)
	}
	w.options.Access.Cache = directory
	w.options.Selection.Images, w.options.Judgement.Accept = image.Off, append(w.options.Judgement.Accept, accepting(image.Name)...)
	w.run(t)
	w.mirror(t, w.registry, "127.0.0.1:1") // no registry has it any longer
	if decided := w.run(t); decided.Verdict.Decision != verdict.Ready {
		t.Errorf("decision %s, want Ready from the cache", decided.Verdict.Decision)
	}
	w.options.Access.Cache = nil
	if _, err := runner.Run(t.Context(), w.cluster, w.target, w.options); err == nil {
		t.Error("the release was read without a cache")
	}
}

// annotated makes the target a release whose check has the annotation.
func (w *world) annotated(t *testing.T, annotation string) {
	t.Helper()
	manifest := strings.Replace(checkManifest, "  annotations:\n", "  annotations:\n    "+annotation+"\n", 1)
	pullSpec, err := release.Push(t.Context(), w.registry, release.Release{Version: next, Components: []release.Component{{
		Name: "etcd", Image: w.registry + "/openshift/etcd" + "@sha256:" + strings.Repeat("e", 64), Source: "quay.io/openshift/etcd",
		Manifests: map[string]string{"0000_50_etcd_11_quorum.yaml": manifest},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w.pullSpec = pullSpec
	w.target = runner.Target{Image: pullSpec}
	w.signAs(t, "quay.io/openshift-release-dev/ocp-release:"+next)
}

// TestManifestsAreFiltered filters for a cluster with one feature gate and one
// capability, whose cluster-version operator has another profile.
func TestManifestsAreFiltered(t *testing.T) {
	w := newWorld(t, map[string]string{})
	gates := w.cluster.OpenShift.ConfigV1().FeatureGates()
	gate, err := gates.Create(t.Context(), &configv1.FeatureGate{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}, metav1.CreateOptions{})
	deleteAfter(t, err, func(ctx context.Context) error { return gates.Delete(ctx, "cluster", metav1.DeleteOptions{}) })
	gate.Status.FeatureGates = []configv1.FeatureGateDetails{
		{Version: "4.17.9", Enabled: []configv1.FeatureGateAttributes{{Name: "Past"}}},
		{Version: current, Enabled: []configv1.FeatureGateAttributes{{Name: "Present"}}},
	}
	if _, err := gates.UpdateStatus(t.Context(), gate, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.status(t, func(status *configv1.ClusterVersionStatus) {
		status.Capabilities.KnownCapabilities = []configv1.ClusterVersionCapability{"Console", "Storage"}
		status.Capabilities.EnabledCapabilities = []configv1.ClusterVersionCapability{"Console"}
	})
	w.startOperator(t, corev1.EnvVar{Name: "CLUSTER_PROFILE", Value: "single-node-developer"},
		corev1.EnvVar{Name: "EXCLUDE_MANIFESTS", Value: "small"})
	for name, tc := range map[string]struct {
		reason     string
		annotation string
		want       string
		outcome    preflight.Outcome
	}{
		"Gate": {reason: "the gate is enabled", annotation: `release.openshift.io/feature-gate: Present`},
		"Past gate": {
			reason: "the gate was enabled in another version", annotation: `release.openshift.io/feature-gate: Past`,
			want: "FeatureGateDisabled", outcome: preflight.Skipped,
		},
		"Set":        {reason: "the set is the default one", annotation: `release.openshift.io/feature-set: Default`},
		"Capability": {reason: "the capability is enabled", annotation: `capability.openshift.io/name: Console`},
		"Other capability": {
			reason: "the capability is disabled", annotation: `capability.openshift.io/name: Storage`,
			want: "CapabilityDisabled", outcome: preflight.Skipped,
		},
		"Profile": {
			reason:     "the profile is that of the operator",
			annotation: `include.release.openshift.io/single-node-developer: "true"`, want: "AppliedByClusterVersionOperator",
			outcome: preflight.Warn,
		},
		"Other profile": {
			reason:     "the operator has another profile",
			annotation: `include.release.openshift.io/self-managed-high-availability: "true"`, want: "OtherClusterProfile",
			outcome: preflight.Skipped,
		},
		"Excluded": {
			reason: "the operator excludes the manifest", annotation: `exclude.release.openshift.io/small: "true"`,
			want: "Excluded", outcome: preflight.Skipped,
		},
		"Unreadable": {
			reason: "the value is not a list of versions", annotation: `release.openshift.io/major-version: "4"`,
			want: "MajorVersionFilter", outcome: preflight.Skipped,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.annotated(t, tc.annotation)
			listing, err := runner.Checks(t.Context(), w.cluster, w.target, w.options)
			if err != nil {
				t.Fatal(err)
			}
			var got finding.Finding
			for _, f := range listing.Findings {
				if strings.HasPrefix(f.Name, "Payload.") {
					got = f
				}
			}
			if got.Reason != tc.want || got.Outcome != tc.outcome {
				t.Errorf("%s: %s %s (%s), want %s %s", tc.reason, got.Outcome, got.Reason, got.Message, tc.outcome, tc.want)
			}
			if kept := tc.want == "" || tc.outcome == preflight.Warn; (len(listing.Checks) == 1) != kept {
				t.Errorf("%s: %d checks are left", tc.reason, len(listing.Checks))
			}
			if undecided := tc.outcome == preflight.Unknown; (listing.Verdict.Decision == verdict.Undecided) != undecided {
				t.Errorf("%s: decision %s", tc.reason, listing.Verdict.Decision)
			}
		})
	}
}

// startOperator creates the Deployment of a cluster-version operator with that
// environment, without replicas.
func (w world) startOperator(t *testing.T, environment ...corev1.EnvVar) {
	t.Helper()
	deployments := w.cluster.Kubernetes.AppsV1().Deployments("openshift-cluster-version")
	labels := map[string]string{"k8s-app": "cluster-version-operator"}
	_, err := deployments.Create(t.Context(),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "cluster-version-operator"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "cluster-version-operator", Image: "quay.io/openshift/cvo:latest", Env: environment,
			}}}},
		}}, metav1.CreateOptions{})
	deleteAfter(t, err, func(ctx context.Context) error {
		return deployments.Delete(ctx, "cluster-version-operator", metav1.DeleteOptions{})
	})
}

// TestArchitectureOfTheControlPlane checks a release for two architectures.
func TestArchitectureOfTheControlPlane(t *testing.T) {
	w := newWorld(t, map[string]string{})
	pullSpec, err := release.Push(t.Context(), w.registry, release.Release{
		Version: next, Architectures: []string{"amd64", "arm64"},
		Components: []release.Component{{Name: "cli", Image: w.pullSpec}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pullSpec, w.target = pullSpec, runner.Target{Image: pullSpec}
	w.signAs(t, "quay.io/openshift-release-dev/ocp-release:"+next)
	nodes := w.cluster.Kubernetes.CoreV1().Nodes()
	_, err = nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   "master",
		Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""},
	}}, metav1.CreateOptions{})
	deleteAfter(t, err, func(ctx context.Context) error { return nodes.Delete(ctx, "master", metav1.DeleteOptions{}) })
	for architecture, want := range map[string]string{"s390x": "ArchitectureMissing", "arm64": "Read"} {
		patch := []byte(`{"status":{"nodeInfo":{"architecture":"` + architecture + `"}}}`)
		if _, err := nodes.Patch(t.Context(), "master", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
		if f := find(t, w.run(t), "ReleasePayload"); f.Reason != want {
			t.Errorf("a control plane of %s: %s (%s), want %s", architecture, f.Reason, f.Message, want)
		}
	}
}
