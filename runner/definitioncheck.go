package runner

import (
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/runner/definition"
)

// definitionChecks is the check of the release's CustomResourceDefinitions; none for a
// release without any.
func (r released) definitionChecks(client dynamic.Interface) []check.Check {
	if len(r.payload.Definitions) == 0 {
		return nil
	}
	return []check.Check{definition.Check(client, r.payload.Definitions)}
}
