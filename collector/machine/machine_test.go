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
	pending, none := checktest.Result{Outcome: preflight.Warn, Reason: "RequestsPending"}, checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}
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
			reason: "two kubelets wait for hours", objects: []runtime.Object{request(t, "csr-a", serving), request(t, "csr-b", serving)}, after: 3 * time.Hour,
			want: pending, text: "oc adm certificate approve csr-a csr-b",
		},
		"Age":      {reason: "the oldest counts", objects: []runtime.Object{request(t, "csr-a", serving)}, after: 3 * time.Hour, want: pending, text: "1 certificate request of kubelets not approved, the oldest for 3h0m0s: csr-a"},
		"Many":     {reason: "the approver ignores all of them", objects: many, after: 10 * time.Minute, want: pending, text: "101 are of the last hour"},
		"New":      {reason: "the approver needs a moment", objects: []runtime.Object{request(t, "csr-a", serving)}, after: time.Minute, want: none, text: "no kubelet waits"},
		"Approved": {reason: "a kubelet has its certificate", objects: []runtime.Object{request(t, "csr-a", serving)}, approve: "csr-a", after: time.Hour, want: none, text: "no kubelet waits"},
		"Other":    {reason: "it is of another client", objects: []runtime.Object{request(t, "csr-a", "example.com/signer")}, after: time.Hour, want: none, text: "no kubelet waits"},
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
				UnhealthyConditions: []machinev1beta1.UnhealthyCondition{{Type: kind, Status: corev1.ConditionFalse, Timeout: metav1.Duration{Duration: 5 * time.Minute}}},
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
		"None":    {reason: "nothing replaces machines", want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}},
		"Paused":  {reason: "the annotation counts without a value", objects: []runtime.Object{healthCheck("workers", corev1.NodeReady, paused)}, want: checktest.Result{Outcome: preflight.Pass, Reason: "Paused"}},
		"Running": {reason: "a rebooting node is not Ready", objects: []runtime.Object{healthCheck("workers", corev1.NodeReady, nil)}, want: checktest.Result{Outcome: preflight.Warn, Reason: "NotPaused"}, text: `oc -n openshift-machine-api annotate mhc workers cluster.x-k8s.io/paused=""`},
		"Spot":    {reason: "it acts on the end of spot instances only", objects: []runtime.Object{healthCheck("machine-api-termination-handler", "Terminating", nil)}, want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}},
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
	patch := []byte(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/cgroupMode/enum/-","value":"v1"}]`)
	if _, err := definitions.Patch(t.Context(), "nodes.config.openshift.io", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	config := func(mode configv1.CgroupMode) *configv1.Node {
		return &configv1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: configv1.NodeSpec{CgroupMode: mode}}
	}
	reporting := &configv1.ClusterOperator{
		TypeMeta: metav1.TypeMeta{APIVersion: "config.openshift.io/v1", Kind: "ClusterOperator"}, ObjectMeta: metav1.ObjectMeta{Name: "machine-config"},
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
		"V1":          {reason: "4.19 does not support it", objects: []runtime.Object{config("v1")}, to: "4.19.0-rc.1", want: checktest.Result{Outcome: preflight.Fail, Reason: "CgroupV1"}, text: `"cgroupMode":"v2"`},
		"Reported":    {reason: "one cause is one finding", objects: []runtime.Object{config("v1"), reporting}, to: "4.19.1", want: checktest.Result{Outcome: preflight.Skipped, Reason: "CgroupV1"}, text: "machine-config"},
		"V2":          {reason: "it is supported", objects: []runtime.Object{config("v2")}, to: "4.19.1", want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}},
		"Unset":       {reason: "the default is v2 since 4.14", objects: []runtime.Object{config("")}, to: "4.19.1", want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}},
		"NoConfig":    {reason: "a cluster without configuration has the default", to: "4.19.1", want: checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}},
		"PatchUpdate": {reason: "4.18 supports it", objects: []runtime.Object{config("v1")}, to: "4.18.9", want: checktest.Result{Outcome: preflight.Skipped, Reason: "NotConcerned"}},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			expected{tc.reason, tc.to, 0, tc.want, tc.text}.of(t, machine.CgroupMode())
		})
	}
}
