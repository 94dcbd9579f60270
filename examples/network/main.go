// Command preflight reports for the network operator whether the target has the network
// plugin of the cluster, and whether a migration is in progress.
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name:        "NetworkType",
		Description: "The target has the network plugin of the cluster, and no migration is in progress.",
		URL:         "https://docs.okd.io/4.16/networking/ovn_kubernetes_network_provider/migrate-from-openshift-sdn.html",
		Timeout:     time.Minute,
		Rules: []preflight.Rule{
			{
				APIGroups: []string{"config.openshift.io"}, Resources: []string{"networks"}, ResourceNames: []string{"cluster"},
				Verbs: []string{"get"},
			},
		},
		Run: networkType,
	})
}
