package hub_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/runner/fleet/hub"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

const (
	to     = "4.19.12"
	image  = "quay.io/openshift-release-dev/ocp-release@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	fleets = "fleets" // the namespace of the Placement
)

// config is that of the API server of a hub.
var config *rest.Config

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { config = c.Config }, testcluster.ControlPlaneOnly(), testcluster.CRDs(definitions()...))
}

// definitions are the CustomResourceDefinitions of a hub: those of the module of OCM, and the reduced
// one of views.
func definitions() []string {
	//nolint:noctx // before the tests
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	if err != nil {
		panic(err)
	}
	files := []string{"testdata/managedclusterviews.crd.yaml"}
	for _, pattern := range []string{
		"cluster/v1/*managedclusters", "cluster/v1beta1/*placements", "cluster/v1beta1/*placementdecisions",
		"work/v1/*_manifestworks", "work/v1alpha1/*manifestworkreplicasets",
	} {
		found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), pattern+".crd.yaml"))
		if err != nil {
			panic(err)
		}
		files = append(files, found...)
	}
	return files
}

// world is a hub without clusters.
type world struct {
	t   testing.TB
	hub *cluster.Cluster
	now time.Time
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	reached, err := cluster.Connect(config, "test")
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{t: tb, hub: reached, now: time.Now().UTC().Truncate(time.Second)}
	w.namespace(fleets)
	w.apply("work.open-cluster-management.io/v1alpha1", "manifestworkreplicasets", &unstructured.Unstructured{Object: map[string]any{
		"kind": "ManifestWorkReplicaSet", "metadata": map[string]any{
			"namespace": fleets, "name": "target",
			"labels": map[string]any{hub.Label: ""},
		},
		"spec": map[string]any{"manifestWorkTemplate": map[string]any{}, "placementRefs": []any{map[string]any{"name": "all"}}},
	}})
	w.apply("cluster.open-cluster-management.io/v1beta1", "placements", &unstructured.Unstructured{Object: map[string]any{
		"kind": "Placement", "metadata": map[string]any{"namespace": fleets, "name": "all"}, "spec": map[string]any{},
	}})
	return w
}

func (w *world) namespace(name string) {
	w.t.Helper()
	_, err := w.hub.Kubernetes.CoreV1().Namespaces().Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
}

// apply creates an object, and writes its status if it has one.
func (w *world) apply(version, resource string, object *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	object.SetAPIVersion(version)
	parsed, err := schema.ParseGroupVersion(version)
	if err != nil {
		w.t.Fatal(err)
	}
	client := w.hub.Dynamic.Resource(parsed.WithResource(resource)).Namespace(object.GetNamespace())
	created, err := client.Create(w.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(w.t.Context()), object.GetName(), metav1.DeleteOptions{}); err != nil {
			w.t.Error(err)
		}
	})
	if status, found := object.Object["status"]; found {
		created.Object["status"] = status
		if created, err = client.UpdateStatus(w.t.Context(), created, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	return created
}

func raw(tb testing.TB, typed any) map[string]any {
	tb.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		tb.Fatal(err)
	}
	return object
}

func condition(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: "Stated", Message: "the message of " + kind, ObservedGeneration: generation,
		LastTransitionTime: metav1.Now(),
	}
}

// agent is a stand-in for the work agent of OCM, which writes the feedback of an object by the rules
// of a ManifestWork: the first result of a JSON path, if it is a string, an integer or a boolean. A
// path that has no result has no value; any other fails the feedback.
func agent(tb testing.TB, object *v1alpha1.UpdatePreflight) []workv1.FeedbackValue {
	tb.Helper()
	content := raw(tb, object)
	var values []workv1.FeedbackValue
	for _, rule := range hub.Feedback() {
		path := jsonpath.New(rule.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + rule.Path + "}"); err != nil {
			tb.Fatal(err)
		}
		results, err := path.FindResults(content)
		if err != nil {
			tb.Fatalf("%s: %v", rule.Path, err)
		}
		if len(results) == 0 || len(results[0]) == 0 {
			continue
		}
		text, ok := reflect.TypeAssert[string](results[0][0])
		if !ok {
			tb.Fatalf("%s is no string", rule.Path)
		}
		values = append(values, workv1.FeedbackValue{Name: rule.Name, Value: workv1.FieldValue{Type: workv1.String, String: &text}})
	}
	return values
}

// key is a key of a cluster for tests.
type key struct {
	signer signature.Signer
	public []byte
}

func newKey(tb testing.TB) key {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := signature.LoadECDSASigner(private, crypto.SHA256)
	if err != nil {
		tb.Fatal(err)
	}
	return key{signer, public}
}

// signed is a verdict on the update of a cluster that ended so long ago.
func (k key) signed(tb testing.TB, id, version string, decision verdict.Decision, ended time.Time) string {
	tb.Helper()
	return k.sign(tb, verdictOn(id, version, decision, ended))
}

// narrowed is a signed Ready of a request that left something out.
func (k key) narrowed(tb testing.TB, id, version string, ended time.Time, left ...string) string {
	tb.Helper()
	decided := verdictOn(id, version, verdict.Ready, ended)
	decided.Verdict.Narrowed = left
	return k.sign(tb, decided)
}

func verdictOn(id, version string, decision verdict.Decision, ended time.Time) report.Report {
	decided := report.Report{
		Run:     report.Run{ID: "01234567-89ab-4cde-8f01-23456789abcd", CompletionTime: ended.Format(time.RFC3339), Phase: report.PhaseComplete},
		Cluster: report.Cluster{ID: id, Version: "4.19.3"}, Target: report.Target{Version: version, Image: image, Verified: true},
		Verdict: verdict.Verdict{
			Decision: decision, Blocking: []string{}, Undecided: []string{},
			ValidUntil: ended.Add(24 * time.Hour).Format(time.RFC3339),
		},
	}
	if decision == verdict.Blocked {
		decided.Verdict.Blocking = []string{"Drain"}
	}
	return decided
}

func (k key) sign(tb testing.TB, decided report.Report) string {
	tb.Helper()
	stated, err := attestation.Of(decided)
	if err != nil {
		tb.Fatal(err)
	}
	envelope, err := attestation.Sign(stated, k.signer)
	if err != nil {
		tb.Fatal(err)
	}
	return string(envelope)
}

func idOf(number int) string { return fmt.Sprintf("00000000-0000-4000-a000-%012d", number) }
