package bundle

import (
	"bytes"
	"strings"
)

const (
	repositoryURL = "https://github.com/openshift/update-preflight"
	documentation = repositoryURL + "/blob/main/manifests/OPERATORHUB.md"

	summary = "Checks each offered or selected update of the cluster before it starts, and reports whether it is safe and what must be fixed."

	// example is an UpdatePreflight that is complete for any cluster.
	example = `[{"apiVersion":"preflight.openshift.io/v1alpha1","kind":"UpdatePreflight","metadata":{"name":"latest"},"spec":{"target":{"latest":true}}}]`

	uninstallMessage = "The objects of the switches, the CustomResourceDefinition and the records remain. Delete them as described in " +
		documentation

	description = `Before an OpenShift cluster updates, one question is answered: **is it safe to go to that release, and if not, what
exactly must be done?**

The controller verifies the signature of each offered or selected release, runs the checks that the release ships as
read-only Jobs, evaluates gates, risks and the health of the cluster, and combines them into one verdict: Ready, Blocked
or Undecided. After the update it reports whether the update was good.

### What it does not do

- It starts no update, and never writes ClusterVersion.
- It blocks nothing unless a switch is on: all are off after the installation. The environment variables of the
  Subscription turn them on, for example ` + "`PREFLIGHT_CONTROLLER_SIGNAL=admission=Warn`" + `.
- It runs in the namespace openshift-update-preflight only.

### What stays after its removal

The objects of the switches, the CustomResourceDefinition, the records of the runs and their key stay: a ClusterOperator
with Upgradeable=False, or an admission policy, would still block updates. Delete the Subscription and the
ClusterServiceVersion first, then run ` + "`oc delete --ignore-not-found -f manifests/uninstall.yaml`" + `, as the
[documentation](` + documentation + `) describes.
`
)

// texts are the fields of the specification that do not depend on the manifests.
func texts() map[string]any {
	return map[string]any{
		"displayName": "OpenShift Update Preflight", "description": description, "maturity": "alpha",
		"keywords":    []string{"update", "upgrade", "preflight", "cluster version", "release", "health"},
		"provider":    map[string]any{"name": "OpenShift", "url": repositoryURL},
		"maintainers": []any{map[string]any{"name": "OpenShift update preflight", "email": "openshift-update-preflight@redhat.com"}},
		"links": []any{
			map[string]any{"name": "Documentation", "url": documentation},
			map[string]any{"name": "Source", "url": repositoryURL},
		},
	}
}

// lines is a text whose lines end as on Linux, whatever git made of them.
func lines(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// repository is a pull spec without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		image = image[:colon]
	}
	return image
}
