package running

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/launch/place"
)

// createsSecrets is the consequence of the optional permission to create the key of records.
const createsSecrets = "A user who may create Secrets in the namespace openshift-cluster-version, and get the one with the key of the records, can get a token of any of its ServiceAccounts. After the first run, the role needs no permission to create Secrets." //nolint:gosec // no credentials

// runRole is what "run" needs; "attach" needs the same.
func runRole() role.Role {
	return role.Role{
		Flags: []string{"to", "to-image", "to-latest", "images", "checks", "hosted-cluster"},
		Needs: func(r role.Request) access.Needs {
			if r.Release != nil {
				return *r.Release
			}
			return runner.RunNeeds(r.Images)
		},
		Remarks: func(r role.Request) []string {
			if r.Release != nil {
				return []string{fmt.Sprintf("For runs of one release, with --images=%s.", r.Images), role.CopiesGrant, role.JobsRunAs, createsSecrets}
			}
			return []string{
				fmt.Sprintf("For runs with --images=%s.", r.Images),
				fmt.Sprintf(role.Given, "the release") + " With --to, --to-latest or --to-image they are, and creation is allowed in the namespaces of the release only.",
				role.CopiesGrant, role.JobsRunAs, createsSecrets,
			}
		},
		Management: inManagement,
	}
}

// inManagement has what only some releases need as optional: without it, their checks are inconclusive.
func inManagement(of types.NamespacedName) role.Part {
	needs := estate.ManagementNeeds()
	inControlPlane := place.ControlPlaneNeeds(hypershift.ControlPlaneNamespace(of.Namespace, of.Name))
	needs = needs.And(access.Needs{Optional: append(inControlPlane.Required, inControlPlane.Optional...), Given: inControlPlane.Given})
	needs.Optional = append(needs.Optional, check.Get("", "secrets", of.Namespace, of.Name+"-pull-secret"))
	return role.Part{Needs: needs, Remarks: []string{"The other one is that of spec.pullSecret, by default NAME-pull-secret."}}
}
