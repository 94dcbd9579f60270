// Command preflight answers for the CSI snapshot controller's operator: does
// anybody depend on a version of its resources that the target drops?
package main

import (
	"os"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(preflight.Check{
		Name: "ResourceVersions", Timeout: time.Minute, Run: directory(os.Getenv("TARGET_CRDS")).judge,
		Description: "No object is stored or written in a version that the target drops.",
	})
}
