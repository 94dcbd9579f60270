package preflight

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

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
