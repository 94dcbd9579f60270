package deadlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const webhookPort = 8443

// certificates is a certificate for a Service, and the bundle that verifies it.
type certificates struct {
	bundle  []byte
	serving tls.Certificate
}

// certify returns a self-signed certificate for a host, with this time of expiry.
func certify(t *testing.T, host string, expires time.Time) certificates {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-yearLater), NotAfter: expires, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return certificates{
		bundle:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		serving: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}
}

// serve serves a webhook that admits every request at the cluster IP of a Service, in place
// of its pods. Without a ready endpoint it closes the connection.
func serve(ctx context.Context, t *testing.T, address, namespace string, certificate tls.Certificate) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	webhook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ready(r.Context(), namespace) == 0 {
			panic(http.ErrAbortHandler)
		}
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	_ = webhook.Listener.Close()
	webhook.Listener, webhook.TLS = listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	webhook.Config.ErrorLog = log.New(io.Discard, "", 0) // rejected certificates are expected
	webhook.StartTLS()
	t.Cleanup(webhook.Close)
}

// ready counts the pods that run and are ready endpoints of the Service of a namespace: the controller of endpoints
// may notice the start or the end of a pod later than the controller of the pod.
func ready(ctx context.Context, namespace string) int {
	selector := labels.Set{discoveryv1.LabelServiceName: hookName}.String()
	found, err := server.Kubernetes.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0
	}
	pods, err := server.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	runs := map[types.UID]bool{}
	for _, pod := range pods.Items {
		runs[pod.UID] = pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
	}
	endpoints := map[types.UID]bool{}
	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			isReady := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			if isReady && endpoint.TargetRef != nil && runs[endpoint.TargetRef.UID] {
				endpoints[endpoint.TargetRef.UID] = true
			}
		}
	}
	return len(endpoints)
}

// assignAddresses assigns an address to each running pod, since kwok does not, until the test
// ends.
func assignAddresses(t *testing.T) {
	t.Helper()
	pods := server.Kubernetes.CoreV1().Pods(corev1.NamespaceAll)
	events, err := pods.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted && pod.Status.Phase == corev1.PodRunning &&
				pod.Status.PodIP == "" {
				patch := []byte(`{"status":{"podIP":"10.204.0.1","podIPs":[{"ip":"10.204.0.1"}]}}`)
				// A pod that was deleted meanwhile needs no address.
				_, _ = server.Kubernetes.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, "application/merge-patch+json", patch,
					metav1.PatchOptions{}, "status")
			}
		}
	}()
	t.Cleanup(func() {
		events.Stop()
		<-ended
	})
}
