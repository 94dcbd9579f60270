package cleanup

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// ListNeeds are the permissions to list the objects of runs in the cluster, as [Runs] and the end of each run do.
func ListNeeds() access.Needs { return everyKind("list") }

// Needs are the permissions to clean up any run.
func Needs() access.Needs { return everyKind("list", "watch", "delete") }

// everyKind are these verbs on all kinds; those of the guard are optional.
func everyKind(verbs ...string) access.Needs {
	var needs access.Needs
	for _, k := range inventory.Kinds() {
		requests := access.Verbs(k.Request(), verbs...)
		if k.Guard {
			needs.Optional = append(needs.Optional, requests...)
			continue
		}
		needs.Required = append(needs.Required, requests...)
	}
	return needs
}
