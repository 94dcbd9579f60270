// Command preflight reports for the machine-config operator whether nodes depend on an
// Ignition 2 config, which the target does not support.
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name:        "IgnitionVersion",
		Description: "No machine config uses Ignition 2.",
		URL:         "https://coreos.github.io/ignition/migrating-configs/",
		Timeout:     2 * time.Minute,
		Rules: []preflight.Rule{
			{
				APIGroups: []string{"machineconfiguration.openshift.io"}, Resources: []string{"machineconfigs", "machineconfigpools"},
				Verbs: []string{"list"},
			},
		},
		Run: ignitionVersion,
	})
}
