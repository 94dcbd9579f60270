// Command preflight answers for the network operator: does the target still
// have the network plugin that this cluster runs, and is none being exchanged?
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name:        "NetworkType",
		Description: "The target has the cluster's network plugin, and no migration is under way.",
		URL:         "https://docs.okd.io/4.16/networking/ovn_kubernetes_network_provider/migrate-from-openshift-sdn.html",
		Timeout:     time.Minute,
		Run:         networkType,
	})
}
