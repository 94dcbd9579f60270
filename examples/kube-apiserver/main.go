// Command preflight answers for the Kubernetes API server's operator: does a
// certificate end before the update does?
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name: "ServingCertificates", Timeout: time.Minute, Run: serving,
		Description: "The administrator's certificates of the API server are valid for another month.",
	}, preflight.Check{
		Name: "SignerCertificates", Timeout: time.Minute, Run: signers,
		Description: "The operator has renewed its signing certificates in time.",
	})
}
