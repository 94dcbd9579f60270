// Command preflight reports for the configuration operator whether nodes can pull the
// images of the target.
package main

import (
	"os"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name:        "ImageSources",
		Description: "Neither registrySources nor mirrors prevent nodes from pulling the images of the target.",
		Timeout:     time.Minute,
		Rules: []preflight.Rule{
			{APIGroups: []string{"config.openshift.io"}, Resources: []string{"images"}, ResourceNames: []string{"cluster"}, Verbs: []string{"get"}},
			{APIGroups: []string{"config.openshift.io"}, Resources: []string{"imagedigestmirrorsets"}, Verbs: []string{"list"}},
		},
		Run: component{image: os.Getenv("COMPONENT_IMAGE")}.pullable,
	})
}
