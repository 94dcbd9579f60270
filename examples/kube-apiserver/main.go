// Command preflight reports for the operator of the Kubernetes API server whether a
// certificate expires before the update completes.
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(
		preflight.Check{
			Name:        "ServingCertificates",
			Description: "The administrator's certificates of the API server are valid for another month.",
			Timeout:     time.Minute,
			Rules: []preflight.Rule{
				{
					APIGroups: []string{"config.openshift.io"}, Resources: []string{"apiservers"}, ResourceNames: []string{"cluster"},
					Verbs: []string{"get"},
				},
				// The administrator chooses the names of the Secrets.
				{Namespace: "openshift-config", APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
			},
			Run: serving,
		},
		preflight.Check{
			Name:        "SignerCertificates",
			Description: "The operator renewed its signing certificates in time.",
			Timeout:     time.Minute,
			// The check reads only metadata.
			Rules: []preflight.Rule{
				{Namespace: "openshift-kube-apiserver-operator", APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
			},
			Run: signers,
		},
	)
}
