// Command preflight reports for the cloud credential operator whether the cloud
// credentials that the administrator provides (manual mode) are sufficient for the
// components of the target.
package main

import (
	"os"
	"slices"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	const url = "https://docs.okd.io/latest/updating/preparing_for_updates/preparing-manual-creds-update.html"
	c := credentials{directory: os.Getenv("CREDENTIALS_REQUESTS")}
	configuration := []preflight.Rule{
		{
			APIGroups: []string{"operator.openshift.io"}, Resources: []string{"cloudcredentials"}, ResourceNames: []string{"cluster"},
			Verbs: []string{"get"},
		},
		{
			APIGroups: []string{"config.openshift.io"}, Resources: []string{"infrastructures"}, ResourceNames: []string{"cluster"},
			Verbs: []string{"get"},
		},
	}
	preflight.Main(
		preflight.Check{
			Name:        "CloudPermissions",
			Description: "The administrator granted all cloud permissions that the target requests.",
			URL:         url, Timeout: time.Minute, Run: c.permissions,
			Rules: append(slices.Clone(configuration), preflight.Rule{
				Namespace: "openshift-cloud-credential-operator", APIGroups: []string{"cloudcredential.openshift.io"},
				Resources: []string{"credentialsrequests"}, Verbs: []string{"get"},
			}),
		},
		preflight.Check{
			Name:        "CloudSecrets",
			Description: "The administrator provided the Secret of every CredentialsRequest of the target.",
			URL:         url, Timeout: time.Minute, Run: c.secrets,
			Rules: append(slices.Clone(configuration),
				secret("openshift-image-registry", "installer-cloud-credentials"),
				secret("openshift-ingress-operator", "cloud-credentials")),
		},
	)
}

// secret returns the rule for the Secret of one CredentialsRequest of this release.
func secret(namespace, name string) preflight.Rule {
	return preflight.Rule{
		Namespace: namespace, APIGroups: []string{""}, Resources: []string{"secrets"},
		ResourceNames: []string{name}, Verbs: []string{"get"},
	}
}
