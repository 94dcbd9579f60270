// Command preflight answers for the configuration operator: may nodes pull the target's images?
package main

import (
	"os"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name: "ImageSources", Timeout: time.Minute, Run: component{image: os.Getenv("COMPONENT_IMAGE")}.pullable,
		Description: "Neither registrySources nor mirrors keep nodes from pulling the target's images.",
	})
}
