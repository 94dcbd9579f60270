// Command preflight answers for the cloud credential operator: where the
// administrator provides the cloud credentials (manual mode), will they do for
// the components of the target?
package main

import (
	"os"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	const url = "https://docs.okd.io/latest/updating/preparing_for_updates/preparing-manual-creds-update.html"
	c := credentials{directory: os.Getenv("CREDENTIALS_REQUESTS")}
	preflight.Main(
		preflight.Check{
			Name:        "CloudPermissions",
			Description: "The administrator granted all permissions that the target asks the cloud for.",
			URL:         url, Timeout: time.Minute, Run: c.permissions,
		},
		preflight.Check{
			Name:        "CloudSecrets",
			Description: "The administrator provided the Secret of every CredentialsRequest of the target.",
			URL:         url, Timeout: time.Minute, Run: c.secrets,
		},
	)
}
