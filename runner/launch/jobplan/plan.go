package jobplan

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/payload"
)

// Plan is the objects that one run creates.
type Plan struct {
	Run Run
	// Checks are in the order of the draft.
	Checks []Check
	// Supporting are the temporary copies that the checks need, bindings last.
	Supporting []payload.Object

	// Copies are the copies of the cluster's ServiceAccounts, by the copy.
	Copies map[inventory.Reference]Copy
	// ClusterRoles are the rules of the cluster's roles that the release binds, by name;
	// UnreadRoles is the error of reading them.
	ClusterRoles map[string][]rbacv1.PolicyRule
	UnreadRoles  error
	// Secrets is what the user may know of the Secrets and ConfigMaps that the checks read, when they were validated.
	Secrets map[inventory.Reference]credential.Review
}

// Copy is a temporary copy of a ServiceAccount that is not of the release.
type Copy struct {
	Original inventory.Reference
	Objects  []payload.Object
	// Omitted describes read access of the original that the copy lacks.
	Omitted []string
	// Unread is the error for which the copy has no permissions: those of the original may not be read.
	Unread error
	Failed error
}

// Without returns the plan without checks of these names, and what only they need.
func (p Plan) Without(names []string) Plan {
	p.Checks = slices.DeleteFunc(slices.Clone(p.Checks), func(check Check) bool { return slices.Contains(names, check.Name) })
	p.prune()
	return p
}

// prune removes the supporting objects that no check needs.
func (p *Plan) prune() {
	needed := map[inventory.Reference]bool{}
	for _, check := range p.Checks {
		for _, ref := range check.Needs {
			needed[ref] = true
		}
	}
	var kept []payload.Object
	for _, object := range p.Supporting {
		if object != nil && needed[inventory.ReferenceTo(object)] {
			kept = append(kept, object)
		}
	}
	p.Supporting = kept
}
