// Command preflight answers for the machine-config operator: does any node of
// this cluster depend on an Ignition 2 config, which the target does not take?
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name:        "IgnitionVersion",
		Description: "No machine config is of Ignition 2.",
		URL:         "https://coreos.github.io/ignition/migrating-configs/",
		Timeout:     2 * time.Minute,
		Run:         ignitionVersion,
	})
}
