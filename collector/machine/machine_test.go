package machine_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/machine"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
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

// expected is what a check reports of the present state, at a time after it.
type expected struct {
	reason string
	to     string
	after  time.Duration
	want   checktest.Result
	text   string
}

func (e expected) of(t *testing.T, tested check.Check) {
	t.Helper()
	subject := check.Subject{Update: checktest.Update(t, "4.18.3", e.to), Now: time.Now().Add(e.after)}
	findings := checktest.RunAt(t, tested, server.Snapshot(t), subject)
	if diff := cmp.Diff(map[string]checktest.Result{tested.Name: e.want}, checktest.Results(findings)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", e.reason, diff)
	}
	if in := checktest.Messages(findings) + checktest.Remedies(findings); !strings.Contains(in, e.text) {
		t.Errorf("%s: %q, want %q in it", e.reason, in, e.text)
	}
}

// request is a new CertificateSigningRequest, as a kubelet makes it.
func request(t *testing.T, name, signer string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:worker-0", Organization: []string{"system:nodes"}}}
	made, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: made}),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}

func TestCertificateRequests(t *testing.T) {
	// Kubernetes itself approves requests of clients by an administrator, such as this test.
	const serving = certificatesv1.KubeletServingSignerName
	pending, none := checktest.Result{Outcome: preflight.Warn, Reason: "RequestsPending"},
		checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}
	var many []runtime.Object
	for i := range 101 {
		many = append(many, request(t, fmt.Sprintf("csr-%03d", i), serving))
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		approve string
		after   time.Duration
		want    checktest.Result
		text    string
	}{
		"Pending": {
			reason: "two kubelets wait for hours", objects: []runtime.Object{request(t, "csr-a", serving), request(t, "csr-b", serving)},
			after: 3 * time.Hour,
			want:  pending, text: "oc adm certificate approve csr-a csr-b",
		},
		"Age": {
			reason: "the oldest counts", objects: []runtime.Object{request(t, "csr-a", serving)}, after: 3 * time.Hour, want: pending,
			text: "1 certificate request of kubelets not approved, the oldest for 3h0m0s: csr-a",
		},
		"Many": {
			reason: "the approver ignores all of them", objects: many, after: 10 * time.Minute, want: pending,
			text: "101 are from the last hour",
		},
		"New": {
			reason: "the approver needs a moment", objects: []runtime.Object{request(t, "csr-a", serving)}, after: time.Minute,
			want: none, text: "no kubelet waits",
		},
		"Approved": {
			reason: "a kubelet has its certificate", objects: []runtime.Object{request(t, "csr-a", serving)}, approve: "csr-a",
			after: time.Hour, want: none, text: "no kubelet waits",
		},
		"Other": {
			reason: "it is of another client", objects: []runtime.Object{request(t, "csr-a", "example.com/signer")}, after: time.Hour,
			want: none, text: "no kubelet waits",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			if tc.approve != "" {
				approve(t, tc.approve)
			}
			expected{tc.reason, "4.18.4", tc.after, tc.want, tc.text}.of(t, machine.CertificateRequests())
		})
	}
}

func approve(t *testing.T, name string) {
	t.Helper()
	requests := kubernetes.NewForConfigOrDie(local.Config).CertificatesV1().CertificateSigningRequests()
	found, err := requests.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Status.Conditions = append(found.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Approved",
	})
	if _, err := requests.UpdateApproval(t.Context(), name, found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestHealthChecks(t *testing.T) {
	healthCheck := func(name string, kind corev1.NodeConditionType, annotations map[string]string) *machinev1beta1.MachineHealthCheck {
		return &machinev1beta1.MachineHealthCheck{
			TypeMeta:   metav1.TypeMeta{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineHealthCheck"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name, Annotations: annotations},
			Spec: machinev1beta1.MachineHealthCheckSpec{
				UnhealthyConditions: []machinev1beta1.UnhealthyCondition{{
					Type: kind, Status: corev1.ConditionFalse,
					Timeout: metav1.Duration{Duration: 5 * time.Minute},
				}},
			},
		}
	}
	paused := map[string]string{"cluster.x-k8s.io/paused": ""}
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		want    checktest.Result
		text    string
	}{
		"None": {reason: "nothing replaces machines", want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}},
		"Paused": {
			reason: "the annotation counts without a value", objects: []runtime.Object{healthCheck("workers", corev1.NodeReady, paused)},
			want: checktest.Result{Outcome: preflight.Pass, Reason: "Paused"},
		},
		"Running": {
			reason: "a rebooting node is not Ready", objects: []runtime.Object{healthCheck("workers", corev1.NodeReady, nil)},
			want: checktest.Result{Outcome: preflight.Warn, Reason: "NotPaused"},
			text: `oc -n openshift-machine-api annotate mhc workers cluster.x-k8s.io/paused=`,
		},
		"Spot": {reason: "it acts on the end of spot instances only", objects: []runtime.Object{healthCheck("machine-api-termination-handler",
			"Terminating", nil)}, want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			expected{tc.reason, "4.18.4", 0, tc.want, tc.text}.of(t, machine.HealthChecks())
		})
	}
}

// The API that this module has no longer accepts v1, so the definition is that of 4.18.
func TestCgroupMode(t *testing.T) {
	definitions := clientset.NewForConfigOrDie(local.Config).ApiextensionsV1().CustomResourceDefinitions()
	patch := []byte(
		`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/cgroupMode/enum/-","value":"v1"}]`)
	if _, err := definitions.Patch(t.Context(), "nodes.config.openshift.io", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	config := func(mode configv1.CgroupMode) *configv1.Node {
		return &configv1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: configv1.NodeSpec{CgroupMode: mode},
		}
	}
	reporting := &configv1.ClusterOperator{
		TypeMeta:   metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "ClusterOperator"},
		ObjectMeta: metav1.ObjectMeta{Name: "machine-config"},
		Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{{
			Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "ClusterOnCgroupV1", LastTransitionTime: metav1.Now(),
		}}},
	}
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		to      string
		want    checktest.Result
		text    string
	}{
		"V1": {
			reason: "4.19 does not support it", objects: []runtime.Object{config("v1")}, to: "4.19.0-rc.1",
			want: checktest.Result{Outcome: preflight.Fail, Reason: "CgroupV1"}, text: `"cgroupMode":"v2"`,
		},
		"Reported": {
			reason: "one cause is one finding", objects: []runtime.Object{config("v1"), reporting}, to: "4.19.1",
			want: checktest.Result{Outcome: preflight.Skipped, Reason: "CgroupV1"}, text: "machine-config",
		},
		"V2": {
			reason: "it is supported", objects: []runtime.Object{config("v2")}, to: "4.19.1",
			want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"},
		},
		"Unset": {
			reason: "the default is v2 since 4.14", objects: []runtime.Object{config("")}, to: "4.19.1",
			want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"},
		},
		"NoConfig": {
			reason: "a cluster without configuration has the default", to: "4.19.1",
			want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"},
		},
		"PatchUpdate": {
			reason: "4.18 supports it", objects: []runtime.Object{config("v1")}, to: "4.18.9",
			want: checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			expected{tc.reason, tc.to, 0, tc.want, tc.text}.of(t, machine.CgroupMode())
		})
	}
}

func infrastructure(platform configv1.PlatformType, topology configv1.TopologyMode) *configv1.Infrastructure {
	return &configv1.Infrastructure{
		TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "Infrastructure"}, ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology: topology, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			CPUPartitioning: configv1.CPUPartitioningNone,
			PlatformStatus:  &configv1.PlatformStatus{Type: platform},
		},
	}
}

// installed is a cluster of 4.21 that was installed as an earlier release, after an installation
// that did not complete.
func installed(first string) *configv1.ClusterVersion {
	entry := func(version string, state configv1.UpdateState) configv1.UpdateHistory {
		return configv1.UpdateHistory{Version: version, State: state, StartedTime: metav1.Now(), Image: "quay.io/x@sha256:1"}
	}
	return &configv1.ClusterVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion"}, ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec: configv1.ClusterVersionSpec{ClusterID: "4f2a1c9e-7a1b-4c58-9d1e-5f1f3f0f1a2b"},
		Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: "4.21.3", Image: "quay.io/x@sha256:1"}, VersionHash: "x",
			History: []configv1.UpdateHistory{
				entry("4.21.3", configv1.CompletedUpdate), entry(first, configv1.CompletedUpdate), entry("4.1.0", configv1.PartialUpdate),
			},
		},
	}
}

// managing is a MachineConfiguration with these machine managers.
func managing(managers ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{
			"managementState":   "Managed",
			"managedBootImages": map[string]any{"machineManagers": append([]any{}, managers...)},
		},
	}}
}

// machineSets is the manager of the MachineSets of the Machine API.
func machineSets(mode string) any {
	return map[string]any{"resource": "machinesets", "apiGroup": "machine.openshift.io", "selection": map[string]any{"mode": mode}}
}

func TestBootImages(t *testing.T) {
	const several = configv1.HighlyAvailableTopologyMode
	warned := checktest.Result{Outcome: preflight.Warn, Reason: "BootImageSkew"}
	passed := checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}
	for name, tc := range map[string]struct {
		reason   string
		objects  []runtime.Object
		from, to string
		want     checktest.Result
		text     string
	}{
		"Old": {
			reason: "nothing updates the boot images of 4.12 on this platform", want: warned, text: "the cluster was installed as 4.12.9",
			objects: []runtime.Object{infrastructure(configv1.OpenStackPlatformType, several), installed("4.12.9")},
		},
		"Prerelease": {
			reason: "the feature is that of the minor version", to: "4.22.0-rc.1", want: warned, text: "ClusterBootImageSkewError",
			objects: []runtime.Object{infrastructure(configv1.NonePlatformType, several), installed("4.12.9")},
		},
		"New": {
			reason: "4.13 is the oldest that is accepted", want: passed,
			objects: []runtime.Object{infrastructure(configv1.OpenStackPlatformType, several), installed("4.13.0-rc.4")},
		},
		"Managed": {
			reason: "the operator updates them, by default", want: passed, text: "updates the boot images",
			objects: []runtime.Object{infrastructure(configv1.AWSPlatformType, several), installed("4.9.0")},
		},
		"OptedOut": {
			reason: "an administrator has excluded them", want: warned, text: "spec.managedBootImages",
			objects: []runtime.Object{infrastructure(configv1.AWSPlatformType, several), installed("4.9.0"), managing(machineSets("None"))},
		},
		"OptedOutOfAll": {
			reason: "an empty list excludes all", want: warned, text: "spec.managedBootImages",
			objects: []runtime.Object{infrastructure(configv1.GCPPlatformType, several), installed("4.9.0"), managing()},
		},
		"OptedIn": {
			reason: "an administrator has included them", want: passed,
			objects: []runtime.Object{infrastructure(configv1.VSpherePlatformType, several), installed("4.9.0"), managing(machineSets("All"))},
		},
		"SingleNode": {
			reason: "it is not scaled", want: passed,
			objects: []runtime.Object{infrastructure(configv1.NonePlatformType, configv1.SingleReplicaTopologyMode), installed("4.9.0")},
		},
		"BareMetal": {
			reason: "another object decides", want: checktest.Result{Outcome: preflight.Skipped, Reason: "BootImagesUnknown"},
			objects: []runtime.Object{infrastructure(configv1.BareMetalPlatformType, several), installed("4.9.0")},
		},
		"Hosted": {
			reason: "it has no machine-config-operator", want: checktest.Result{Outcome: preflight.Skipped, Reason: "HyperShift"},
			objects: []runtime.Object{infrastructure(configv1.AWSPlatformType, configv1.ExternalTopologyMode), installed("4.9.0")},
		},
		"NotYet": {
			reason: "4.21 does not compare them", from: "4.20.1", to: "4.21.1",
			want: checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"},
		},
		"Reported": {
			reason: "from 4.22 on the ClusterOperator reports it", from: "4.22.1", to: "4.23.1",
			want: checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.from == "" {
				tc.from = "4.21.3"
			}
			if tc.to == "" {
				tc.to = "4.22.1"
			}
			server.Create(t, tc.objects...)
			subject := check.Subject{Update: checktest.Update(t, tc.from, tc.to)}
			findings := checktest.RunAt(t, machine.BootImages(), server.Snapshot(t), subject)
			if diff := cmp.Diff(map[string]checktest.Result{"BootImages": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if in := checktest.Messages(findings); !strings.Contains(in, tc.text) {
				t.Errorf("%s: %q, want %q in it", tc.reason, in, tc.text)
			}
		})
	}
}
