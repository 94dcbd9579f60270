package preflight

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rule is one thing that a check reads from the API server. --print-manifest
// and [Manifest] make the roles of the Job's service account out of the rules
// of all checks. Nothing is granted without a rule. Questions to the API server
// that every account may ask, as by a SelfSubjectAccessReview, need none.
type Rule struct {
	// Namespace is where the resources are; empty for the whole cluster, and
	// for resources that have no namespace.
	Namespace string `json:"namespace,omitempty"`
	// APIGroups are as in a Role: "" is the core group. At least one, no "*".
	APIGroups []string `json:"apiGroups"`
	// Resources are as in a Role: plural and in lower case, "pods/log" for a
	// subresource. At least one, no "*", and none that is a connection:
	// exec, attach, portforward and proxy.
	Resources []string `json:"resources"`
	// ResourceNames leave only the objects of these names; none means all.
	ResourceNames []string `json:"resourceNames,omitempty"`
	// Verbs are some of get, list and watch: a check changes nothing.
	Verbs []string `json:"verbs"`
}

// faults says what is wrong with the rule, in the order of its fields. What
// the runner would refuse in a release is refused before it gets there.
func (r Rule) faults() []string {
	var faults []string
	if r.Namespace != "" && !dnsLabel(r.Namespace) {
		faults = append(faults, fmt.Sprintf("namespace %q: want the name of one, or none", r.Namespace))
	}
	for _, list := range []struct {
		what, want string
		values     []string
		good       func(string) bool
		optional   bool
	}{
		{"API group", `a group without a version, "" for the core group`, r.APIGroups, apiGroup, false},
		{"resource", "a plural in lower case, and none of exec, attach, portforward and proxy", r.Resources, resource, false},
		{"resource name", "the name of an object", r.ResourceNames, resourceName, true},
		{"verb", "get, list or watch", r.Verbs, reading, false},
	} {
		if !list.optional && len(list.values) == 0 {
			faults = append(faults, "it has no "+list.what)
		}
		for _, value := range list.values {
			if !list.good(value) {
				faults = append(faults, fmt.Sprintf("%s %q: want %s", list.what, value, list.want))
			}
		}
	}
	return faults
}

func apiGroup(text string) bool {
	return regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`).MatchString(text)
}

// resource does not take connections into running pods and nodes, which can do
// anything, whatever the verb.
func resource(text string) bool {
	_, subresource, _ := strings.Cut(text, "/")
	return regexp.MustCompile(`^[a-z0-9.-]+(/[a-z0-9]+)?$`).MatchString(text) &&
		!slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, subresource)
}

// resourceName takes whatever can be a part of the path of a request.
func resourceName(text string) bool {
	return regexp.MustCompile(`^[^/%*\s\pC]{1,253}$`).MatchString(text)
}

func reading(verb string) bool {
	return verb == "get" || verb == "list" || verb == "watch"
}

func dnsLabel(text string) bool {
	return len(text) <= maxWord && regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`).MatchString(text)
}
