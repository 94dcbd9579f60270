// Command preflight answers for the storage operator: is any storage provided
// by a volume plugin that the target does not have, with nothing in its place?
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name:        "VolumePlugins",
		Description: "The target can mount every volume: it has the driver, or the CSI driver that takes over.",
		Timeout:     time.Minute, Run: volumePlugins,
	})
}
