package jobplan

import (
	"slices"
	"strings"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/check"
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

// Check is one Job of a release that conforms to the policy.
type Check struct {
	// Name is "<Component>.<JobName>" in CamelCase, unique in its release. The names
	// of the Job's findings start with the part before the dot.
	Name string
	// Component is the name in the release, File that of the manifest.
	Component, File string
	// Framed is true when the author promised a result in the SDK's format:
	// annotation preflight.openshift.io/result: framed of the Job.
	Framed bool
	// Serial is true when the check must not run concurrently with other serial
	// checks of its component: annotation preflight.openshift.io/serial: "true" of the Job.
	Serial bool
	// Job is the author's in a Draft, and the one to create in a Plan.
	Job *batchv1.Job

	// Needs are the supporting objects that must exist first.
	Needs []inventory.Reference
	// Exceeded describes the quotas that had too little left for the pod when the check
	// was validated; empty for none.
	Exceeded string
	// Site is true for a check of the site instead of the release.
	Site bool
	// Side is the cluster of a hosted cluster in which the Job runs.
	Side check.Side
}

// Prefix is the part of the check's name before the dot, with which the names of its findings start.
func (c Check) Prefix() string {
	prefix, _, _ := strings.Cut(c.Name, ".")
	return prefix
}

// Account is the ServiceAccount that the check runs as.
func (c Check) Account() inventory.Reference {
	return inventory.Refer("ServiceAccount", c.Job.Namespace, AccountOf(c.Job.Spec.Template.Spec))
}

// checkName is "<Component>.<JobName>", a valid name for the acceptRisks of ClusterVersion: ^[A-Z][A-Za-z0-9.-]*$.
func checkName(component, job string) string {
	prefix := camelCase(component)
	switch {
	case prefix == "":
		prefix = "Release"
	case prefix[0] < 'A' || prefix[0] > 'Z':
		prefix = "C" + prefix
	}
	if name := camelCase(job); name != "" {
		return prefix + "." + name
	}
	return prefix
}

// camelCase joins the words of text, each with a capital first letter.
func camelCase(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !isWord(r) })
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

func isWord(r rune) bool {
	return r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// head is the first n bytes of text.
func head(text string, n int) string {
	return text[:min(n, len(text))]
}
