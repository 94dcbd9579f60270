package monitoring_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/test/prometheus"
)

const (
	token = "sha256~secret"
	// host is one that the certificate of the front is for.
	host = "example.com"
)

// user is how somebody reaches the cluster: with a token or without, and to the
// ingress of the cluster by way of the front.
func user(t *testing.T, credentials string, front *prometheus.Front) monitoring.Cluster {
	t.Helper()
	reached := rest.CopyConfig(config)
	reached.BearerToken = credentials
	if front != nil {
		target, err := url.Parse(front.URL)
		if err != nil {
			t.Fatal(err)
		}
		reached.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, target.Host)
		}
	}
	client, err := dynamic.NewForConfig(config) // the API server is not behind the front
	if err != nil {
		t.Fatal(err)
	}
	return monitoring.Cluster{Config: reached, Dynamic: client}
}

func route(name, host string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "route.openshift.io/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": "openshift-monitoring", "name": name},
		"spec":     map[string]any{"host": host, "path": "/api", "to": map[string]any{"kind": "Service", "name": name, "weight": int64(100)}},
	}}
}

func configMap(namespace, name, key string, value []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name},
		"data": map[string]any{key: string(value)},
	}}
}

func TestThanosQuerierOfTheCluster(t *testing.T) {
	server := checktest.Connect(config)
	front := prometheus.Run(t).Guarded(t, token)
	server.Create(t, route("thanos-querier", host), configMap("openshift-config-managed", "default-ingress-cert", "ca-bundle.crt", front.CA))
	for name, tc := range map[string]struct {
		reason, credentials, want, remedy string
	}{
		"Token":   {reason: "the user's own token opens it", credentials: token},
		"Other":   {reason: "a token without the role does not", credentials: "other", want: "Forbidden", remedy: "cluster-monitoring-view"},
		"NoToken": {reason: "and a certificate is for the API server alone", want: "NoToken", remedy: "oc login"},
	} {
		t.Run(name, func(t *testing.T) {
			client := monitoring.New(user(t, tc.credentials, front).Find, monitoring.DefaultTimeout)
			_, err := client.Alerts(t.Context())
			if got := reasonOf(err); got != tc.want {
				t.Fatalf("%s: got %q (%v), want %q", tc.reason, got, err, tc.want)
			}
			if err != nil && (strings.Contains(err.Error(), token) || !strings.Contains(remedyOf(err), tc.remedy)) {
				t.Errorf("%s: %v: %s", tc.reason, err, remedyOf(err))
			}
		})
	}
}

func remedyOf(err error) string {
	known, ok := errors.AsType[*monitoring.Error](err)
	if !ok {
		return ""
	}
	return known.Remediation
}

func TestCertificateOfTheIngressIsChecked(t *testing.T) {
	front := prometheus.Run(t).Guarded(t, token)
	checktest.Connect(config).Create(t, route("thanos-querier", host)) // and no ConfigMap with its CA
	client := monitoring.New(user(t, token, front).Find, monitoring.DefaultTimeout)
	_, err := client.Alerts(t.Context())
	if got := reasonOf(err); got != "Unreachable" || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("want Unreachable for its certificate, got %q (%v)", got, err)
	}
	if got := len(front.Requests()); got != 0 {
		t.Errorf("the token was sent to whom nobody knows: %d requests", got)
	}
}

func TestClusterWithoutMonitoring(t *testing.T) {
	client := monitoring.New(user(t, token, nil).Find, monitoring.DefaultTimeout)
	_, err := client.Query(t.Context(), "up")
	if got := reasonOf(err); got != "NoMonitoring" || !strings.Contains(remedyOf(err), "--prometheus") {
		t.Errorf("want NoMonitoring, got %q (%v)", got, err)
	}
}

func TestRouteThatMayNotBeRead(t *testing.T) {
	nobody := rest.CopyConfig(config)
	nobody.Impersonate.UserName = "nobody"
	client, err := dynamic.NewForConfig(nobody)
	if err != nil {
		t.Fatal(err)
	}
	_, err = monitoring.New(monitoring.Cluster{Config: nobody, Dynamic: client}.Find, monitoring.DefaultTimeout).Alerts(t.Context())
	if got := reasonOf(err); got != "Forbidden" {
		t.Errorf("want Forbidden, got %q (%v)", got, err)
	}
}

// Within the cluster it is the Service, with the CA of Services.
func TestFromWithinTheCluster(t *testing.T) {
	checktest.Connect(config).Create(t, configMap("openshift-monitoring", "openshift-service-ca.crt", "service-ca.crt", []byte("the CA")))
	pod := user(t, token, nil)
	pod.Config.BearerTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	found, err := pod.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found.Host != "https://thanos-querier.openshift-monitoring.svc:9091" || string(found.CAData) != "the CA" || found.BearerToken != token {
		t.Errorf("found %q with CA %q", found.Host, found.CAData)
	}
}

// Whoever names another Prometheus does not give the token away.
func TestNamedPrometheusGetsNoToken(t *testing.T) {
	front := prometheus.Run(t).Open(t)
	find, err := user(t, token, nil).At(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := monitoring.New(find, monitoring.DefaultTimeout).Alerts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, request := range front.Requests() {
		if request.Authorization != "" {
			t.Errorf("%s was sent %q", request.Path, request.Authorization)
		}
	}
}

func TestNamedPrometheusOfTheClusterItself(t *testing.T) {
	server := checktest.Connect(config)
	front := prometheus.Run(t).Guarded(t, token)
	server.Create(t, route("prometheus-k8s", host), configMap("openshift-config-managed", "default-ingress-cert", "ca-bundle.crt", front.CA))
	find, err := user(t, token, front).At("https://" + host)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := monitoring.New(find, monitoring.DefaultTimeout).Alerts(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestURLThatIsNone(t *testing.T) {
	for reason, address := range map[string]string{
		"a host needs a scheme":           "prometheus.example.com",
		"a path is none":                  "/tmp/prometheus",
		"nor is another scheme":           "ftp://prometheus.example.com",
		"what cannot be parsed":           "http://user:secret@prometheus.example.com:port",
		"nothing":                         "",
		"a scheme alone":                  "https://",
		"a password is not repeated here": "ftp://user:secret@example.com",
	} {
		if _, err := user(t, "", nil).At(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: At(%q) says %v", reason, address, err)
		}
	}
}
