// Command preflight reports for the storage operator whether any volume uses a volume
// plugin that the target does not have.
package main

import (
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name:        "VolumePlugins",
		Description: "The target can mount every volume: it has the driver or the CSI driver that replaces it.",
		Timeout:     time.Minute,
		Rules: []preflight.Rule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"list"}},
			{
				APIGroups: []string{"storage.k8s.io"}, Resources: []string{"csidrivers", "storageclasses", "volumeattachments"},
				Verbs: []string{"list"},
			},
		},
		Run: volumePlugins,
	})
}
