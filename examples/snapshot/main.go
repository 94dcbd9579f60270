// Command preflight reports for the operator of the CSI snapshot controller whether
// objects or clients use a version of its resources that the target drops.
package main

import (
	"os"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	resources := []string{"volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"}
	var definitions []string
	for _, resource := range resources {
		definitions = append(definitions, resource+".snapshot.storage.k8s.io")
	}
	preflight.Main(preflight.Check{
		Name:        "ResourceVersions",
		Description: "No object is stored or written in a version that the target drops.",
		Timeout:     time.Minute,
		Rules: []preflight.Rule{
			{
				APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: definitions,
				Verbs: []string{"get"},
			},
			{APIGroups: []string{"snapshot.storage.k8s.io"}, Resources: resources, Verbs: []string{"list"}},
		},
		Run: directory(os.Getenv("TARGET_CRDS")).versionsInUse,
	})
}
