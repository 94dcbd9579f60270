package preflight

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Check is one question about the cluster that is answered before an update.
// Declare it as a struct literal and pass it to [Main].
type Check struct {
	// Name identifies the check. Administrators type it to accept the finding,
	// so it must not change after a release. CamelCase, at most 63 characters:
	// ^[A-Z][A-Za-z0-9]*$. Required.
	Name string
	// Description is one sentence that states what is true when the check
	// passes. It is shown by --list and is the message of a pass.
	Description string
	// URL is the documentation of the check for administrators.
	URL string
	// Timeout limits the duration of Run; 0 means until the deadline of the run.
	Timeout time.Duration
	// Advisory turns a Fail of this check into a Warn, so that it never blocks.
	Advisory bool
	// After names the prerequisites of this check, which must be declared before
	// it. If a prerequisite ends as Fail or Unknown, this check is not run and is
	// Unknown with the reason PrerequisiteFailed. A prerequisite that ends as
	// Warn or Skipped, or fails but is advisory, does not prevent the run.
	After []string
	// Rules are the permissions that the check needs to read from the API
	// server. The service account of the Job has no others: see [Manifest].
	Rules []Rule
	// Run inspects the cluster and reports through t. Returning nil without
	// reporting anything is a pass. An error means that the check was
	// inconclusive; it is reported as Unknown with the text of the error. Run is
	// called once. It must return soon after ctx is done, otherwise it is
	// abandoned. Required.
	Run func(ctx context.Context, t *T) error
}

// validate returns an error that lists every violation in the declarations, on
// one line.
func validate(checks []Check) error {
	if len(checks) == 0 {
		return errors.New("no checks: call preflight.Main with at least one")
	}

	var violations []string
	seen := map[string]bool{}
	for i, c := range checks {
		switch {
		case c.Name == "":
			violations = append(violations, fmt.Sprintf("check %d has no name", i+1))
		case seen[c.Name]:
			violations = append(violations, fmt.Sprintf("duplicate check name %q", c.Name))
		}
		seen[c.Name] = true
		violations = append(violations, c.violations()...)
	}
	violations = append(violations, orderViolations(checks)...)
	if len(violations) > 0 {
		return errors.New(strings.Join(violations, "; "))
	}
	return nil
}

// violations lists what is invalid in this declaration, regardless of the other
// checks.
func (c Check) violations() []string {
	var violations []string
	if c.Name != "" && !isCamelCase(c.Name) {
		violations = append(violations, fmt.Sprintf("check name %q is not CamelCase of at most %d letters and digits", c.Name, maxWord))
	}
	if c.Run == nil {
		violations = append(violations, fmt.Sprintf("check %q has no Run function", c.Name))
	}
	if c.Timeout < 0 {
		violations = append(violations, fmt.Sprintf("check %q has a negative timeout: %s", c.Name, c.Timeout))
	}
	for i, rule := range c.Rules {
		for _, violation := range rule.violations() {
			violations = append(violations, fmt.Sprintf("rule %d of check %q: %s", i+1, c.Name, violation))
		}
	}
	return violations
}

// orderViolations lists the names in After that are not declared earlier.
func orderViolations(checks []Check) []string {
	var violations []string
	earlier := map[string]bool{}
	for _, c := range checks {
		for _, name := range c.After {
			if !earlier[name] {
				violations = append(violations, fmt.Sprintf("check %q has the prerequisite %q, which is not declared before it", c.Name, name))
			}
		}
		earlier[c.Name] = true
	}
	return violations
}

// maxWord is the maximum length of the name of a check and of a reason, in bytes.
const maxWord = 63

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// isCamelCase reports whether word is valid as the name of a check or as a reason.
func isCamelCase(word string) bool {
	return len(word) <= maxWord && camelCase.MatchString(word)
}

var dnsLabelPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func isDNSLabel(text string) bool {
	return len(text) <= maxWord && dnsLabelPattern.MatchString(text)
}

// Rule is a permission that a check needs to read from the API server.
// --print-manifest and [Manifest] combine the rules of all checks into the roles
// of the Job's service account, which has no other permissions. Requests that
// every account may make, such as a SelfSubjectAccessReview, need no rule.
type Rule struct {
	// Namespace is the namespace of the resources. It is empty for the whole
	// cluster and for cluster-scoped resources.
	Namespace string `json:"namespace,omitempty"`
	// APIGroups are as in a Role: "" is the core group. At least one; "*" is
	// invalid.
	APIGroups []string `json:"apiGroups"`
	// Resources are as in a Role: plural and lower case, "pods/log" for a
	// subresource. At least one; "*" is invalid, and so are the subresources that
	// open a connection: exec, attach, portforward and proxy.
	Resources []string `json:"resources"`
	// ResourceNames restrict the rule to the objects with these names; empty
	// means all objects.
	ResourceNames []string `json:"resourceNames,omitempty"`
	// Verbs are one or more of get, list and watch: a check is read-only.
	Verbs []string `json:"verbs"`
}

var (
	apiGroupPattern     = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)
	resourcePattern     = regexp.MustCompile(`^[a-z0-9.-]+(/[a-z0-9]+)?$`)
	resourceNamePattern = regexp.MustCompile(`^[^/%*\s\pC]+$`) // a repetition of this class would take 10 MB
)

// violations lists what is invalid in the rule, in the order of its fields. It
// covers everything that the runner rejects in a release.
func (r Rule) violations() []string {
	var violations []string
	if r.Namespace != "" && !isDNSLabel(r.Namespace) {
		violations = append(violations, fmt.Sprintf("namespace %q: want the name of a namespace or an empty string", r.Namespace))
	}
	for _, list := range []struct {
		what, want string
		values     []string
		valid      func(string) bool
		optional   bool
	}{
		{"API group", `a group without a version, "" for the core group`, r.APIGroups, apiGroupPattern.MatchString, false},
		{"resource", "a plural in lower case, without exec, attach, portforward and proxy", r.Resources, isResource, false},
		{"resource name", "the name of an object", r.ResourceNames, isResourceName, true},
		{"verb", "get, list or watch", r.Verbs, isReadVerb, false},
	} {
		if !list.optional && len(list.values) == 0 {
			violations = append(violations, "no "+list.what)
		}
		for _, value := range list.values {
			if !list.valid(value) {
				violations = append(violations, fmt.Sprintf("%s %q: want %s", list.what, value, list.want))
			}
		}
	}
	return violations
}

// isResourceName reports whether an object can have that name, of at most 253 characters.
func isResourceName(name string) bool {
	return utf8.RuneCountInString(name) <= 253 && resourceNamePattern.MatchString(name)
}

// isResource rejects connections into pods and nodes, which allow any change
// regardless of the verb.
func isResource(text string) bool {
	_, subresource, _ := strings.Cut(text, "/")
	return resourcePattern.MatchString(text) &&
		!slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, subresource)
}

func isReadVerb(verb string) bool {
	return verb == "get" || verb == "list" || verb == "watch"
}
