package serving_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/serving"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/cluster"
)

// local and server are the API server that the tests share.
var (
	local  *cluster.Cluster
	server checktest.Server
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local, server = c, checktest.Connect(c.Config) }, cluster.ControlPlaneOnly())
}

// run runs a check of the present state, at a time.
func run(t *testing.T, tested check.Check, now time.Time) []finding.Finding {
	t.Helper()
	return checktest.RunAt(t, tested, server.Snapshot(t), check.Subject{Update: checktest.Update(t, "4.18.3", "4.18.4"), Now: now})
}

func expect(t *testing.T, reason string, findings []finding.Finding, want map[string]checktest.Result, message string) {
	t.Helper()
	if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
		t.Errorf("%s: -want +got:\n%s\n%+v", reason, diff, findings)
	}
	if !strings.Contains(checktest.Messages(findings), message) {
		t.Errorf("%s: %q, want %q in it", reason, checktest.Messages(findings), message)
	}
}

var asExpected = checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}

// The API server itself finds that the server of an API is missing.
func TestAPIServices(t *testing.T) {
	services := dynamic.NewForConfigOrDie(local.Config).Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1",
		Resource: "apiservices",
	})
	for name, tc := range map[string]struct {
		reason, namespace, message string
		want                       map[string]checktest.Result
	}{
		"Missing": {
			reason: "an adapter for metrics was uninstalled", namespace: "custom-metrics", message: "Available=False (ServiceNotFound)",
			want: map[string]checktest.Result{"APIService-v1beta1.custom.metrics.k8s.io": {
				Outcome: preflight.Warn,
				Reason:  "APIServiceUnavailable",
			}},
		},
		"OfTheRelease": {
			reason: "the ClusterOperator reports it", namespace: "openshift-apiserver",
			want: map[string]checktest.Result{"APIServices": asExpected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.custom.metrics.k8s.io"},
				"spec": map[string]any{
					"group": "custom.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
					"insecureSkipTLSVerify": true,
					"service":               map[string]any{"namespace": tc.namespace, "name": "adapter", "port": int64(443)},
				},
			}})
			await.Until(t, "the API server reports the APIService", func(ctx context.Context) bool {
				found, err := services.Get(ctx, "v1beta1.custom.metrics.k8s.io", metav1.GetOptions{})
				return err == nil && found.Object["status"] != nil
			})
			expect(t, tc.reason, run(t, serving.APIServices(), time.Now()), tc.want, tc.message)
		})
	}
}

// The API server refuses new objects in a namespace that is being deleted.
func TestNamespaces(t *testing.T) {
	const cause = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: " +
		"custom.metrics.k8s.io/v1beta1: stale GroupVersion discovery"
	for name, tc := range map[string]struct {
		reason      string
		namespace   string
		annotations map[string]string
		after       time.Duration
		want        map[string]checktest.Result
		message     string
	}{
		"OfTheRelease": {
			reason: "CVO cannot create objects in it", namespace: "openshift-widgets",
			annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"},
			message:     "NamespaceDeletionDiscoveryFailure: " + cause,
			want: map[string]checktest.Result{"NamespaceTerminating-openshift-widgets": {
				Outcome: preflight.Fail,
				Reason:  "NamespaceTerminating",
			}},
		},
		"Other": {
			reason: "the deletion does not end", namespace: "stuck", after: 3 * time.Minute, message: "NamespaceDeletionDiscoveryFailure: " + cause,
			want: map[string]checktest.Result{"NamespaceTerminating-stuck": {Outcome: preflight.Warn, Reason: "NamespaceTerminating"}},
		},
		"JustDeleted": {reason: "a deletion takes a moment", namespace: "leaving", want: map[string]checktest.Result{"Namespaces": asExpected}},
	} {
		t.Run(name, func(t *testing.T) {
			terminate(t, metav1.ObjectMeta{Name: tc.namespace, Annotations: tc.annotations}, cause)
			expect(t, tc.reason, run(t, serving.Namespaces(), time.Now().Add(tc.after)), tc.want, tc.message)
		})
	}
}

// terminate deletes a namespace, whose deletion does not end before the test.
func terminate(t *testing.T, meta metav1.ObjectMeta, cause string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(local.Config).CoreV1()
	name := meta.Name
	meta.Finalizers = []string{"example.com/keep"}
	namespace := &corev1.Namespace{ObjectMeta: meta}
	created, err := client.Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	created.Status.Phase = corev1.NamespaceTerminating
	created.Status.Conditions = []corev1.NamespaceCondition{{
		Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Reason: "DiscoveryFailed", Message: cause,
	}}
	created.ResourceVersion = ""
	if _, err := client.Namespaces().UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = client.ConfigMaps(name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "because it is being terminated") {
		t.Errorf("a new object in namespace %s: %v, want a refusal", name, err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := client.Namespaces().Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		if left, err := client.Namespaces().Get(ctx, name, metav1.GetOptions{}); err == nil {
			left.Spec.Finalizers = nil
			if _, err := client.Namespaces().Finalize(ctx, left, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
}

// Reads of objects that cannot be converted fail.
func TestConversions(t *testing.T) {
	server.Define(t, filepath.Join("testdata", "widgets.crd.yaml"))
	broken := map[string]checktest.Result{"Conversion-widgets.example.com": {Outcome: preflight.Warn, Reason: "ConversionUnavailable"}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "widget-system", Name: "conversion"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "widgets"}, Ports: []corev1.ServicePort{{Port: 443}}},
	}
	endpoint := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "widget-system", Name: "conversion-0",
			Labels: map[string]string{discoveryv1.LabelServiceName: "conversion"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(443))}},
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		want    map[string]checktest.Result
		message string
	}{
		"NoService": {
			reason: "the operator was uninstalled, and left its definition", want: broken,
			message: "its Service widget-system/conversion does not exist",
		},
		"NoEndpoint": {reason: "no pod of the webhook is ready", objects: []runtime.Object{service}, want: broken, message: "no ready endpoint"},
		"Serving": {
			reason: "the webhook has an endpoint", objects: []runtime.Object{service, endpoint},
			want: map[string]checktest.Result{"Conversions": asExpected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			expect(t, tc.reason, run(t, serving.Conversions(), time.Now()), tc.want, tc.message)
		})
	}

	widgets := func(version string) dynamic.ResourceInterface {
		return dynamic.NewForConfigOrDie(local.Config).Resource(schema.GroupVersionResource{
			Group: "example.com", Version: version,
			Resource: "widgets",
		}).Namespace("default")
	}
	stored := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "one"},
	}}
	if _, err := widgets("v1").Create(t.Context(), stored, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := widgets("v2").List(t.Context(), metav1.ListOptions{}); err == nil ||
		!strings.Contains(err.Error(), "conversion webhook for example.com/v1, Kind=Widget failed") {
		t.Errorf("a read in another version than the stored one: %v, want the failure that the finding foretells", err)
	}
}

// A missing permission of a check that warns at most does not block.
func TestUnprivileged(t *testing.T) {
	for reason, tested := range map[string]check.Check{
		"APIServices":               serving.APIServices(),
		"CustomResourceDefinitions": serving.Conversions(),
	} {
		findings := checktest.RunAt(t, tested, server.Unprivileged().Snapshot(t),
			check.Subject{Update: checktest.Update(t, "4.18.3", "4.18.4"), Now: time.Now()})
		expect(t, reason, findings, map[string]checktest.Result{tested.Name: {Outcome: preflight.Warn, Reason: "Unread"}},
			"could not list the "+reason)
	}
}
