// Command preflight reports for the ingress operator whether the OpenSSL of the target's
// router would reject a certificate that the current router serves.
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	const url = "https://docs.okd.io/latest/security/certificate_types_descriptions/ingress-certificates.html"
	rules := []preflight.Rule{
		{
			Namespace: controllerNamespace, APIGroups: []string{"operator.openshift.io"}, Resources: []string{"ingresscontrollers"},
			Verbs: []string{"list"},
		},
		// The administrator chooses the names of the Secrets.
		{Namespace: secretNamespace, APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	}
	preflight.Main(
		preflight.Check{
			Name:        "DefaultCertificate",
			Description: "The target's OpenSSL accepts the default certificate of every ingress controller.",
			URL:         url, Timeout: time.Minute, Rules: rules, Run: strength,
		},
		preflight.Check{
			Name:        "DefaultCertificateExpiry",
			Description: "The default certificate of every ingress controller is valid for another month.",
			URL:         url, Timeout: time.Minute, Rules: rules, Run: expiry,
		},
	)
}
