package hostedguard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/user"
)

// config is that of the API server of a management cluster.
var config *rest.Config

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { config = c.Config }, cluster.ControlPlaneOnly(),
		cluster.CRDs("../../../collector/hosted/testdata/hostedclusters.crd.yaml", "../../../collector/hosted/testdata/nodepools.crd.yaml"))
}

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

func client() dynamic.Interface { return dynamic.NewForConfigOrDie(config) }

func digest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func image(digit string) string { return "quay.io/release@" + digest(digit) }

func verdict(digit, decision string) guard.Verdict {
	return guard.Verdict{Digest: digest(digit), Decision: decision, ValidUntil: start.Add(time.Hour)}
}

// hostedCluster is one that runs 4.18.3 (a), was updated from 4.17.9 (9), and is offered 4.18.4 to
// 4.18.7 (4 to 7).
func hostedCluster(namespace, name string) *hypershift.HostedCluster {
	h := &hypershift.HostedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	h.Spec.Release.Image = image("a")
	h.Status.Version = &hypershift.VersionStatus{
		Desired: configv1.Release{Version: "4.18.3", Image: image("a")},
		History: []configv1.UpdateHistory{
			{State: configv1.CompletedUpdate, Version: "4.18.3", Image: image("a"), CompletionTime: new(metav1.NewTime(start))},
			{State: configv1.CompletedUpdate, Version: "4.17.9", Image: image("9"), CompletionTime: new(metav1.NewTime(start))},
		},
		AvailableUpdates: []configv1.Release{
			{Version: "4.18.4", Image: image("4")},
			{Version: "4.18.5", Image: image("5")},
			{Version: "4.18.6", Image: image("6")},
		},
		ConditionalUpdates: []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.18.7", Image: image("7")}}},
	}
	return h
}

// nodePool is a pool of the cluster clusters/one, of version 4.17.9.
func nodePool() *hypershift.NodePool {
	p := &hypershift.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: hypershift.GroupVersion().String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"},
	}
	p.Spec.ClusterName, p.Spec.Release.Image, p.Status.Version = "one", image("9"), "4.17.9"
	return p
}

// store replaces an object, while no policy is there to object.
func store(t *testing.T, resource string, object any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	content := &unstructured.Unstructured{}
	if err := content.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	namespaces := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: content.GetNamespace()}},
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	objects := client().Resource(hypershift.GroupVersion().WithResource(resource)).Namespace(content.GetNamespace())
	if err := objects.Delete(t.Context(), content.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	created, err := objects.Create(t.Context(), content.DeepCopy(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	content.SetResourceVersion(created.GetResourceVersion())
	if _, err := objects.UpdateStatus(t.Context(), content, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// response is what the API server responds to a request.
type response struct{ denied, warned string }

func (r response) objects() bool { return r.denied+r.warned != "" }

// warnings records the warnings of the policies.
type warnings struct {
	mutex sync.Mutex
	text  string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if strings.Contains(text, "the update preflight does not allow") {
		w.text += text
	}
}

// request sends a patch, which is not stored.
func request(ctx context.Context, t *testing.T, resource, object, patch string) response {
	t.Helper()
	received := &warnings{}
	warned := rest.CopyConfig(config)
	warned.WarningHandlerWithContext = received
	namespace, name, _ := strings.Cut(object, "/")
	_, err := dynamic.NewForConfigOrDie(warned).Resource(hypershift.GroupVersion().WithResource(resource)).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		return response{warned: received.text}
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		return response{denied: err.Error()}
	case ctx.Err() != nil:
		return response{}
	}
	t.Fatal(err)
	return response{}
}

func release(image string) string { return `{"spec":{"release":{"image":"` + image + `"}}}` }

// annotated is a patch of an annotation, to null where the value is empty.
func annotated(name, value, spec string) string {
	text, _ := json.Marshal(value)
	if value == "" {
		text = []byte("null")
	}
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}%s}`, name, text, spec)
}

// clusters are the hosted clusters with their verdicts, which are other ones for the same releases.
func clusters() []hostedguard.Cluster {
	return []hostedguard.Cluster{
		{
			Object:   hostedCluster("clusters", "one"),
			Verdicts: []guard.Verdict{verdict("4", "Ready"), verdict("5", "Blocked"), verdict("6", "Undecided")},
		},
		{Object: hostedCluster("others", "one"), Verdicts: []guard.Verdict{verdict("4", "Blocked"), verdict("5", "Ready")}},
	}
}

// apply applies the switch in a mode, and returns when the API server uses it. It is removed at
// the end of the test.
func apply(t *testing.T, mode guard.Mode) *hostedguard.Switch {
	t.Helper()
	for _, each := range clusters() {
		store(t, "hostedclusters", each.Object)
	}
	store(t, "nodepools", nodePool())
	made, err := hostedguard.New(client(), mode, at(start))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { uninstall(context.WithoutCancel(t.Context()), t) })
	if next, err := made.Apply(t.Context(), clusters()); err != nil || !next.Equal(start.Add(time.Hour)) {
		t.Fatalf("it is to be applied again at %s, %v", next, err)
	}
	await.Until(t, "the API server uses the policies", func(ctx context.Context) bool {
		cluster, pool := request(ctx, t, "hostedclusters", "clusters/one", release(image("5"))),
			request(ctx, t, "nodepools", "clusters/workers", release(image("5")))
		isReady := !request(ctx, t, "hostedclusters", "clusters/one", release(image("4"))).objects()
		return cluster.objects() && pool.objects() && isReady && (cluster.denied != "") == (mode == guard.Deny)
	})
	return made
}

// uninstall removes the policies, and returns when the API server uses none.
func uninstall(ctx context.Context, t *testing.T) []string {
	t.Helper()
	deleted, err := hostedguard.Uninstall(ctx, client())
	if err != nil {
		t.Error(err)
	}
	await.Until(t, "nothing is denied", func(ctx context.Context) bool { //nolint:contextcheck // also in a cleanup
		return !request(ctx, t, "hostedclusters", "clusters/one", release(image("5"))).objects() &&
			!request(ctx, t, "nodepools", "clusters/workers", release(image("5"))).objects()
	})
	var kinds []string
	for _, each := range deleted {
		kinds = append(kinds, each.Kind+" "+each.Name)
	}
	return kinds
}

// The command of a denial requests the verdict that it lacks, of the same hosted cluster and release.
func expectRequest(t *testing.T, message string) {
	t.Helper()
	_, rest, found := strings.Cut(message, "echo '")
	text, _, closed := strings.Cut(rest, "' | oc create -f -")
	if !found || !closed {
		t.Fatalf("no request in %q", message)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var requested v1alpha1.UpdatePreflight
	if err := decoder.Decode(&requested); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want := v1alpha1.UpdatePreflightSpec{
		HostedCluster: &v1alpha1.HostedCluster{Namespace: "clusters", Name: "one"},
		Target:        v1alpha1.Target{Image: image("5")},
	}
	if diff := cmp.Diff(want, requested.Spec); diff != "" || requested.GenerateName != "one-" || requested.Kind != "UpdatePreflight" {
		t.Errorf("requested (-want, +got):\n%s", diff)
	}
}

func TestAdmissionOfHostedClusters(t *testing.T) {
	type object = *hypershift.HostedCluster
	pending := func(digit string) func(object) { return func(h object) { h.Spec.Release.Image = image(digit) } }
	forced := func(h object) {
		h.Spec.Release.Image = image("5")
		h.Annotations = map[string]string{hypershift.AnnotationForce: image("5")}
	}
	rows := map[string]struct {
		reason string
		// before changes the stored object; its cluster is clusters/one unless another is named.
		before  func(object)
		cluster string
		patch   string
		// refused are parts of the message; none where the request is allowed.
		refused []string
	}{
		"Ready":      {reason: "the verdict is Ready", patch: release(image("4"))},
		"ReadyOther": {reason: "a mirror has the same digest", patch: release("mirror.example.com:5000/ocp@" + digest("4"))},
		"Blocked": {reason: "the verdict is Blocked", patch: release(image("5")), refused: []string{
			"HostedCluster clusters/one to " + image("5") + ": its verdict is Blocked.",
			"Read the findings: oc preflight run --hosted-cluster clusters/one --to 4.18.5.",
			"annotation hypershift.openshift.io/force-upgrade-to", "The present release is always allowed: " + image("a"),
		}},
		"Undecided": {reason: "Undecided is not Ready", patch: release(image("6")), refused: []string{"its verdict is Undecided"}},
		"Missing": {
			reason: "without a verdict nothing is Ready", patch: release(image("7")),
			refused: []string{"its verdict is missing", "--to 4.18.7."},
		},
		"Unlisted": {
			reason: "an image names a release that is not offered", patch: release(image("8")),
			refused: []string{"its verdict is missing", "--to-image " + image("8")},
		},
		"Tag": {
			reason: "a tag may be another image later", patch: release("quay.io/release:4.18.4"),
			refused: []string{"the image has no digest", "--to-image quay.io/release:4.18.4"},
		},
		"TwoDigests": {
			reason: "a pull spec with two digests names none", patch: release(image("4") + "@" + digest("5")),
			refused: []string{"the image has no digest"},
		},
		"OtherCluster": {
			reason: "verdicts are per hosted cluster", cluster: "others/one", patch: release(image("4")),
			refused: []string{"HostedCluster others/one", "its verdict is Blocked"},
		},
		"OtherReady": {reason: "verdicts are per hosted cluster", cluster: "others/one", patch: release(image("5"))},
		"UnknownCluster": {
			reason: "a hosted cluster that was never judged has no verdict", cluster: "clusters/new", patch: release(image("4")),
			refused: []string{"its verdict is missing"},
		},
		"Back": {
			reason: "HyperShift reconciles nothing until a refused request is taken back", before: pending("5"),
			patch: release(image("a")),
		},
		"BackByMirror": {
			reason: "the digest is that of the present release", before: pending("5"),
			patch: release("mirror.example.com/ocp@" + digest("a")),
		},
		"BackByTag": {
			reason: "a tag need not be the present release; the message has its image", before: pending("5"),
			patch: release("quay.io/release:4.18.3"), refused: []string{"no digest", "always allowed: " + image("a")},
		},
		"Unchanged": {
			reason: "another field changes while a request is pending", before: pending("5"),
			patch: `{"spec":{"channel":"stable-4.18"}}`,
		},
		"Labels": {
			reason: "metadata changes while a request is pending", before: pending("5"),
			patch: `{"metadata":{"labels":{"a":"b"},"annotations":{"other":"x"}}}`,
		},
		"Forced": {
			reason: "the annotation forces HyperShift",
			patch:  annotated(hypershift.AnnotationForce, image("5"), `,"spec":{"release":{"image":"`+image("5")+`"}}`),
		},
		"ForcedLater": {
			reason: "the annotation forces a pending request", before: pending("5"),
			patch: annotated(hypershift.AnnotationForce, image("5"), ""),
		},
		"ForcedTag": {
			reason: "HyperShift compares the text",
			patch:  annotated(hypershift.AnnotationForce, "quay.io/release:x", `,"spec":{"release":{"image":"quay.io/release:x"}}`),
		},
		"ForceOfAnother": {reason: "the annotation names another release", patch: annotated(hypershift.AnnotationForce, image("6"),
			`,"spec":{"release":{"image":"`+image("5")+`"}}`), refused: []string{"its verdict is Blocked"}},
		"ForcePrepared": {reason: "the annotation selects nothing", patch: annotated(hypershift.AnnotationForce, image("5"), "")},
		"ForceTakenBack": {
			reason: "the same release is requested without force", before: forced,
			patch: annotated(hypershift.AnnotationForce, "", ""), refused: []string{"its verdict is Blocked"},
		},
		"ForceCompleted": {
			reason: "a stale annotation is removed", patch: annotated(hypershift.AnnotationForce, "", ""),
			before: func(h object) { h.Annotations = map[string]string{hypershift.AnnotationForce: image("a")} },
		},
		"StaleForceRemoved": {
			reason: "the annotation of another release keeps HyperShift from the pending request",
			patch:  annotated(hypershift.AnnotationForce, "", ""),
			before: func(h object) {
				h.Spec.Release.Image = image("5")
				h.Annotations = map[string]string{hypershift.AnnotationForce: image("6")}
			},
		},
		"Unvalidated": {
			reason: "a pending request would not be validated any more", before: pending("5"),
			patch: annotated(hypershift.AnnotationUnvalidated, "true", ""), refused: []string{"its verdict is Blocked"},
		},
		"UnvalidatedReady": {
			reason: "the pending release is Ready", before: pending("4"),
			patch: annotated(hypershift.AnnotationUnvalidated, "true", ""),
		},
		"UnvalidatedPresent": {reason: "no update is pending", patch: annotated(hypershift.AnnotationUnvalidated, "true", "")},
		"ValidatedAgain": {
			reason: "HyperShift validates again", patch: annotated(hypershift.AnnotationUnvalidated, "", ""),
			before: func(h object) {
				h.Spec.Release.Image = image("5")
				h.Annotations = map[string]string{hypershift.AnnotationUnvalidated: "true"}
			},
		},
		"Override": {
			reason: "the release of the control plane alone is an update, too",
			patch:  `{"spec":{"controlPlaneRelease":{"image":"` + image("5") + `"}}}`, refused: []string{"its verdict is Blocked"},
		},
		"OverrideReady": {reason: "its verdict is Ready", patch: `{"spec":{"controlPlaneRelease":{"image":"` + image("4") + `"}}}`},
		"OverrideRemoved": {
			reason: "then the other release is that of the control plane",
			before: func(h object) { pending("5")(h); h.Spec.ControlPlaneRelease = &hypershift.Release{Image: image("a")} },
			patch:  `{"spec":{"controlPlaneRelease":null}}`, refused: []string{"its verdict is Blocked"},
		},
		"OverrideStays": {
			reason: "what was selected before is not judged again",
			before: func(h object) { h.Spec.ControlPlaneRelease = &hypershift.Release{Image: image("5")} }, patch: release(image("4")),
		},
		"NotInstalled": {
			reason: "a cluster without a version is not updated", before: func(h object) { h.Status.Version = nil },
			patch: release(image("5")),
		},
		"NoImage": {
			reason: "what runs is unknown, so nothing is known to be the present release",
			before: func(h object) { h.Status.Version.Desired.Image = "" }, patch: release(image("9")), refused: []string{"its verdict is missing"},
		},
	}
	for _, mode := range []guard.Mode{guard.Warn, guard.Deny} {
		t.Run(string(mode), func(t *testing.T) {
			apply(t, mode)
			for name, tc := range rows {
				t.Run(name, func(t *testing.T) {
					if tc.cluster == "" {
						tc.cluster = "clusters/one"
					}
					namespace, called, _ := strings.Cut(tc.cluster, "/")
					stored := hostedCluster(namespace, called)
					if tc.before != nil {
						tc.before(stored)
					}
					store(t, "hostedclusters", stored)
					got := request(t.Context(), t, "hostedclusters", tc.cluster, tc.patch)
					expect(t, mode, tc.reason, got, tc.refused)
					if name == "Blocked" {
						expectRequest(t, got.denied+got.warned)
					}
				})
			}
		})
	}
}

func expect(t *testing.T, mode guard.Mode, reason string, got response, refused []string) {
	t.Helper()
	text := got.denied + got.warned
	if got.objects() != (len(refused) > 0) || (got.denied != "") != (len(refused) > 0 && mode == guard.Deny) {
		t.Errorf("%s: denied %q, warned %q", reason, got.denied, got.warned)
	}
	for _, part := range refused {
		if !strings.Contains(text, part) {
			t.Errorf("%s: want %q in %q", reason, part, text)
		}
	}
}

func TestAdmissionOfNodePools(t *testing.T) {
	apply(t, guard.Deny)
	for name, tc := range map[string]struct {
		reason  string
		before  func(*hypershift.NodePool)
		patch   string
		refused []string
	}{
		"ControlPlane": {reason: "the nodes follow the control plane", patch: release(image("a"))},
		"Ready":        {reason: "the verdict of its cluster is Ready", patch: release(image("4"))},
		"Blocked": {reason: "the verdict of its cluster is Blocked", patch: release(image("5")), refused: []string{
			"NodePool clusters/workers to " + image("5") + ": its verdict is Blocked",
			"oc preflight run --hosted-cluster clusters/one --nodepool workers --to-image " + image("5"),
		}},
		"Missing": {reason: "there is no verdict", patch: release(image("7")), refused: []string{"its verdict is missing"}},
		"Tag": {
			reason: "a tag may be another image later", patch: release("quay.io/release:4.18.3"),
			refused: []string{"the image has no digest"},
		},
		"Back": {
			reason: "the pool has this release", before: func(p *hypershift.NodePool) { p.Spec.Release.Image = image("5") },
			patch: release(image("9")),
		},
		"NotItsOwn": {
			reason: "another pool has had this release, and the control plane",
			before: func(p *hypershift.NodePool) { p.Status.Version = "4.17.1" }, patch: release(image("7")),
			refused: []string{"its verdict is missing"},
		},
		"New": {
			reason: "a pool without a version is not updated", before: func(p *hypershift.NodePool) { p.Status.Version = "" },
			patch: release(image("5")),
		},
		"Replicas": {
			reason: "another field changes", before: func(p *hypershift.NodePool) { p.Spec.Release.Image = image("5") },
			patch: `{"spec":{"replicas":3}}`,
		},
		"Forced": {
			reason: "the annotation names the image",
			patch:  annotated(hypershift.AnnotationForce, image("5"), `,"spec":{"release":{"image":"`+image("5")+`"}}`),
		},
		"NoSuch": {
			reason: "a pool of a cluster that is not known has no verdict",
			before: func(p *hypershift.NodePool) { p.Spec.ClusterName = "two" }, patch: release(image("a")),
			refused: []string{"--hosted-cluster clusters/two"},
		},
		"OfNoCluster": {
			reason: "a pool without a cluster has no verdict", before: func(p *hypershift.NodePool) { p.Spec.ClusterName = "" },
			patch: release(image("4")), refused: []string{"its verdict is missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := nodePool()
			if tc.before != nil {
				tc.before(pool)
			}
			store(t, "nodepools", pool)
			got := request(t.Context(), t, "nodepools", "clusters/workers", tc.patch)
			expect(t, guard.Deny, tc.reason, got, tc.refused)
			if name == "Blocked" {
				expectRequest(t, got.denied)
			}
		})
	}
}

// HyperShift writes the status, which the policies do not match.
func TestStatus(t *testing.T) {
	apply(t, guard.Deny)
	objects := client().Resource(hypershift.GroupVersion().WithResource("hostedclusters")).Namespace("clusters")
	patch := `{"status":{"version":{"desired":{"image":"` + image("5") + `","version":"4.18.5"}}}}`
	if _, err := objects.Patch(t.Context(), "one", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Error(err)
	}
}

// A verdict that has expired is left out when it is applied again, at the time that Apply returns.
func TestExpiry(t *testing.T) {
	apply(t, guard.Deny)
	later, err := hostedguard.New(client(), guard.Deny, at(start.Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	if next, err := later.Apply(t.Context(), clusters()); err != nil || !next.IsZero() {
		t.Fatalf("all verdicts have expired: next %s, %v", next, err)
	}
	await.Until(t, "the release is denied", func(ctx context.Context) bool {
		return request(ctx, t, "hostedclusters", "clusters/one", release(image("4"))).denied != ""
	})
	if got := request(t.Context(), t, "nodepools", "clusters/workers", release(image("a"))); got.objects() {
		t.Errorf("a pool cannot follow its control plane: %+v", got)
	}
}

// A switch that is off removes the policies, those that deny first, and may do so again.
func TestRemoval(t *testing.T) {
	made := apply(t, guard.Deny)
	if on, err := hostedguard.Active(t.Context(), client()); err != nil || len(on) != 1 || on[0].Mode != guard.Deny {
		t.Errorf("the switch is on, and shown as %+v, %v", on, err)
	}
	want := []string{
		"ValidatingAdmissionPolicyBinding update-preflight-nodepools", "ValidatingAdmissionPolicyBinding update-preflight-hostedclusters",
		"ValidatingAdmissionPolicy update-preflight-nodepools", "ValidatingAdmissionPolicy update-preflight-hostedclusters",
	}
	if diff := cmp.Diff(want, uninstall(t.Context(), t)); diff != "" {
		t.Errorf("deleted (-want, +got):\n%s", diff)
	}
	apply(t, guard.Deny)
	off, err := hostedguard.New(client(), "", at(start))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := off.Apply(t.Context(), clusters()); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := made.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if on, err := hostedguard.Active(t.Context(), client()); err != nil || len(on) > 0 {
		t.Errorf("the switch is off, and shown as %+v, %v", on, err)
	}
}

// The same verdicts change nothing, and the most that the policies can have fit into them.
func TestMost(t *testing.T) {
	made := apply(t, guard.Deny)
	most := []hostedguard.Cluster{}
	for i := range hostedguard.MaxClusters {
		object := hostedCluster(strings.Repeat("n", 60)+fmt.Sprint(100+i), strings.Repeat("c", 250)+fmt.Sprint(100+i))
		object.Status.Version.History = nil
		each := hostedguard.Cluster{Object: object}
		for j := range guard.MaxVerdicts / hostedguard.MaxClusters {
			unique := fmt.Sprintf("%064x", i*1000+j)
			each.Verdicts = append(each.Verdicts, guard.Verdict{Digest: "sha256:" + unique, Decision: "Undecided", ValidUntil: start.Add(time.Hour)})
			object.Status.Version.History = append(object.Status.Version.History, configv1.UpdateHistory{
				State: configv1.CompletedUpdate, Version: "4.18.4-" + strings.Repeat("x", 25), Image: "quay.io/release@sha256:" + unique,
			})
		}
		most = append(most, each)
	}
	most[0] = clusters()[0]
	if _, err := made.Apply(t.Context(), most); err != nil {
		t.Fatal(err)
	}
	before := policies(t)
	if _, err := made.Apply(t.Context(), most); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, policies(t)); diff != "" {
		t.Errorf("the same verdicts changed the policies (-first, +second):\n%s", diff)
	}
	await.Until(t, "another cluster's verdict is used", func(ctx context.Context) bool {
		return request(ctx, t, "hostedclusters", "others/one", release(image("5"))).denied != ""
	})
	if got := request(t.Context(), t, "hostedclusters", "clusters/one", release(image("4"))); got.objects() {
		t.Errorf("the release is Ready: %+v", got)
	}
	if got := request(t.Context(), t, "nodepools", "clusters/workers", release(image("5"))); !strings.Contains(got.denied, "Blocked") {
		t.Errorf("the release is Blocked: %+v", got)
	}
}

// policies are the generations of the policies: their status is the API server's.
func policies(t *testing.T) []int64 {
	t.Helper()
	var generations []int64
	for _, name := range hostedguard.Names() {
		found, err := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), name,
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		generations = append(generations, found.Generation)
	}
	return generations
}

func TestInvalid(t *testing.T) {
	if _, err := hostedguard.New(client(), "Audit", at(start)); err == nil || !strings.Contains(err.Error(), `"Audit"`) {
		t.Errorf("the mode is not rejected by name: %v", err)
	}
	made, err := hostedguard.New(client(), guard.Deny, at(start))
	if err != nil {
		t.Fatal(err)
	}
	one := clusters()[0]
	for name, tc := range map[string]struct {
		clusters []hostedguard.Cluster
		want     string
	}{
		"Digest":   {[]hostedguard.Cluster{{Object: one.Object, Verdicts: []guard.Verdict{{Digest: "sha256:x"}}}}, "HostedCluster clusters/one"},
		"Clusters": {slices.Repeat([]hostedguard.Cluster{one}, hostedguard.MaxClusters+1), "101 hosted clusters"},
		"Verdicts": {slices.Repeat([]hostedguard.Cluster{{Object: one.Object, Verdicts: many(guard.MaxVerdicts)}}, 2), "more than the 500"},
	} {
		if _, err := made.Apply(t.Context(), tc.clusters); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: want %q, got %v", name, tc.want, err)
		}
	}
}

func many(count int) []guard.Verdict {
	var all []guard.Verdict
	for i := range count {
		all = append(all, guard.Verdict{Digest: fmt.Sprintf("sha256:%064x", i)})
	}
	return all
}

// The declared permissions are sufficient, and each of them is needed.
func TestNeeds(t *testing.T) {
	switched := func(mode guard.Mode) func(dynamic.Interface) error {
		return func(permitted dynamic.Interface) error {
			made, err := hostedguard.New(permitted, mode, at(start))
			if err == nil {
				_, err = made.Apply(t.Context(), clusters())
			}
			return err
		}
	}
	for name, tc := range map[string]struct {
		needs     access.Needs
		operation func(dynamic.Interface) error
	}{
		"On":  {hostedguard.Needs(guard.Deny), switched(guard.Deny)},
		"Off": {hostedguard.Needs(""), switched("")},
		"Active": {access.Needs{Required: hostedguard.ReadNeeds().Optional}, func(permitted dynamic.Interface) error {
			_, err := hostedguard.Active(t.Context(), permitted)
			return err
		}},
		"Uninstall": {hostedguard.UninstallNeeds(), func(permitted dynamic.Interface) error {
			_, err := hostedguard.Uninstall(t.Context(), permitted)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func() {
				uninstall(t.Context(), t)
				if name != "On" {
					if err := switched(guard.Warn)(client()); err != nil {
						t.Fatal(err)
					}
				}
			}
			prepare()
			if err := tc.operation(dynamic.NewForConfigOrDie(user.With(t, config, tc.needs))); err != nil {
				t.Errorf("the permissions are not sufficient: %v", err)
			}
			for i, without := range tc.needs.Required {
				prepare()
				rest := access.Needs{Required: slices.Delete(slices.Clone(tc.needs.Required), i, i+1)}
				if err := tc.operation(dynamic.NewForConfigOrDie(user.With(t, config, rest))); err == nil ||
					!strings.Contains(strings.ToLower(err.Error()), "forbidden") {
					t.Errorf("without %s: want a Forbidden error, got %v", access.Describe(without), err)
				}
			}
			uninstall(t.Context(), t)
		})
	}
}
