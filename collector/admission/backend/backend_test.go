package backend_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/openshift/update-preflight/collector/admission/backend"
)

func TestReferenceIn(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, url, want string
		port              int32
	}{
		"Short":    {reason: "the name within the cluster", url: "https://hook.ns.svc/validate", want: "ns/hook", port: 443},
		"Long":     {reason: "the full name", url: "https://hook.ns.svc.cluster.local.:8443/", want: "ns/hook", port: 8443},
		"Outside":  {reason: "a name of another domain", url: "https://hook.example.com/"},
		"Address":  {reason: "an address", url: "https://10.0.0.1/"},
		"Unparsed": {reason: "no URL", url: "https://%zz"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := backend.ReferenceIn(admissionregistrationv1.WebhookClientConfig{URL: &tc.url})
			if ok != (tc.want != "") || ok && (got.String() != tc.want || got.Port != tc.port) {
				t.Errorf("%s: %s port %d, %t; want %q port %d", tc.reason, got, got.Port, ok, tc.want, tc.port)
			}
		})
	}
}

// FuzzReferenceIn parses URLs, which users write.
func FuzzReferenceIn(f *testing.F) {
	f.Add("https://hook.ns.svc:8443/validate")
	f.Add("https://[::1]:99999/")
	f.Fuzz(func(t *testing.T, address string) {
		reference, ok := backend.ReferenceIn(admissionregistrationv1.WebhookClientConfig{URL: &address})
		if ok && (reference.Port < 0 || reference.String() == "") {
			t.Errorf("%q: %s port %d", address, reference, reference.Port)
		}
	})
}
