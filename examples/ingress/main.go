// Command preflight answers for the ingress operator: would the OpenSSL in the
// target's router reject a certificate that the present router serves?
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	const url = "https://docs.okd.io/latest/security/certificate_types_descriptions/ingress-certificates.html"
	preflight.Main(
		preflight.Check{
			Name:        "DefaultCertificate",
			Description: "The target's OpenSSL takes the default certificate of every ingress controller.",
			URL:         url, Timeout: time.Minute, Run: strength,
		},
		preflight.Check{
			Name:        "DefaultCertificateExpiry",
			Description: "The default certificate of every ingress controller is valid for another month.",
			URL:         url, Timeout: time.Minute, Run: expiry,
		},
	)
}
