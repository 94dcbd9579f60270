package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
)

// served is a discovery of these resources by group and version, with a group that the
// API server could not list.
type served map[string][]string

const unserved = "broken.example.com"

func (s served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	var lists []*metav1.APIResourceList
	for version, resources := range s {
		list := &metav1.APIResourceList{GroupVersion: version}
		for _, resource := range resources {
			verbs := metav1.Verbs{"create", "get", "list"}
			if strings.HasSuffix(resource, "reviews") {
				verbs = metav1.Verbs{"create"}
			}
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Verbs: verbs})
		}
		lists = append(lists, list)
	}
	return nil, lists, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: unserved, Version: "v1"}: discovery.StaleGroupVersionError{}}}
}

func (served) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, nil
}

func (served) ServerPreferredResources() ([]*metav1.APIResourceList, error) { return nil, nil }

func (served) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return nil, nil
}

func policyRule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}

const (
	lacksSecrets     = "Secrets of any name"
	lacksConnections = "connections to pods, nodes and services"
	lacksPaths       = "paths with a wildcard"
	lacksUnserved    = "resources of " + unserved + "/v1, which the API server does not serve now"
)

func TestReads(t *testing.T) {
	api, err := rights.Discover(t.Context(), served{
		"v1":                         {"pods", "pods/exec", "pods/log", "pods/status", "secrets", "nodes", "nodes/proxy", "services/proxy", "serviceaccounts/token"},
		"apps/v1":                    {"deployments", "deployments/status"},
		"apps/v2":                    {"deployments"},
		"authorization.k8s.io/v1":    {"subjectaccessreviews"},
		"image.openshift.io/v1":      {"imagestreams", "imagestreams/secrets"},
		"subresources.kubevirt.io/1": {"virtualmachineinstances/vnc", "virtualmachineinstances/usbredir"},
	})
	if err != nil {
		t.Fatal(err)
	}
	read := []string{"get", "list", "watch"}
	core := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods", "pods/log", "pods/status"}, Verbs: read}
	apps := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/status"}, Verbs: read}
	for name, tc := range map[string]struct {
		reason  string
		rules   []rbacv1.PolicyRule
		want    []rbacv1.PolicyRule
		omitted []string
	}{
		"Read":     {reason: "rules that read are kept", rules: []rbacv1.PolicyRule{policyRule("", "pods", "list", "get")}, want: []rbacv1.PolicyRule{policyRule("", "pods", "get", "list")}},
		"Write":    {reason: "write verbs are dropped", rules: []rbacv1.PolicyRule{policyRule("", "pods", "delete", "get"), policyRule("", "nodes", "patch")}, want: []rbacv1.PolicyRule{policyRule("", "pods", "get")}},
		"AllVerbs": {reason: "all verbs include reading", rules: []rbacv1.PolicyRule{policyRule("", "pods", "*")}, want: []rbacv1.PolicyRule{policyRule("", "pods", read...)}},
		"Grants":   {reason: "verbs that grant are dropped", rules: []rbacv1.PolicyRule{policyRule("", "users", "impersonate"), policyRule("rbac.authorization.k8s.io", "clusterroles", "bind", "escalate", "use")}},
		"Twice":    {reason: "equal rules are one", rules: []rbacv1.PolicyRule{policyRule("", "pods", "get"), policyRule("", "pods", "get", "create")}, want: []rbacv1.PolicyRule{policyRule("", "pods", "get")}},
		"ClusterAdmin": {
			reason: "everything becomes the resources that can be read", rules: []rbacv1.PolicyRule{policyRule("*", "*", "*"), {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}},
			want:    []rbacv1.PolicyRule{core, apps, policyRule("image.openshift.io", "imagestreams", read...)},
			omitted: []string{lacksSecrets, lacksConnections, lacksPaths, lacksUnserved},
		},
		"AllOfGroup": {reason: "a wildcard in one group", rules: []rbacv1.PolicyRule{policyRule("apps", "*", read...)}, want: []rbacv1.PolicyRule{apps}},
		"AllGroups":  {reason: "one resource of all groups", rules: []rbacv1.PolicyRule{policyRule("*", "deployments", "get")}, want: []rbacv1.PolicyRule{policyRule("apps", "deployments", "get")}, omitted: []string{lacksUnserved}},
		"AllOfUnserved": {
			reason: "the resources of a group without discovery are unknown", rules: []rbacv1.PolicyRule{policyRule(unserved, "*", "get")}, omitted: []string{lacksUnserved},
		},
		"Unserved":       {reason: "a resource that is named needs no discovery", rules: []rbacv1.PolicyRule{policyRule(unserved, "things", "get")}, want: []rbacv1.PolicyRule{policyRule(unserved, "things", "get")}},
		"Subresource":    {reason: "a subresource of all resources", rules: []rbacv1.PolicyRule{policyRule("apps", "*/status", "get")}, want: []rbacv1.PolicyRule{policyRule("apps", "deployments/status", "get")}},
		"Secrets":        {reason: "a Secret may have the token of another account", rules: []rbacv1.PolicyRule{policyRule("", "secrets", read...)}, omitted: []string{lacksSecrets}},
		"NamedSecret":    {reason: "a Secret may be named", rules: []rbacv1.PolicyRule{named(policyRule("", "secrets", "get"), "cloud")}, want: []rbacv1.PolicyRule{named(policyRule("", "secrets", "get"), "cloud")}},
		"NamelessSecret": {reason: "an empty name is that of a list of all", rules: []rbacv1.PolicyRule{named(policyRule("", "secrets", "list"), "cloud", "")}, omitted: []string{lacksSecrets}},
		"NamedStream":    {reason: "a stream has all Secrets of its namespace", rules: []rbacv1.PolicyRule{named(policyRule("image.openshift.io", "imagestreams/secrets", "get"), "cli")}, omitted: []string{lacksSecrets}},
		"ImageSecrets":   {reason: "a subresource has Secrets", rules: []rbacv1.PolicyRule{policyRule("image.openshift.io", "imagestreams/secrets", "get")}, omitted: []string{lacksSecrets}},
		"Exec":           {reason: "a connection may execute commands", rules: []rbacv1.PolicyRule{policyRule("", "pods/exec", "get")}, omitted: []string{lacksConnections}},
		"NodeLog":        {reason: "the kubelet authorizes by the subresources of nodes", rules: []rbacv1.PolicyRule{policyRule("", "nodes/log", "get")}, omitted: []string{lacksConnections}},
		"Token":          {reason: "a token is an identity", rules: []rbacv1.PolicyRule{policyRule("", "serviceaccounts/token", "*")}},
		"VirtualMachine": {reason: "a console of a virtual machine", rules: []rbacv1.PolicyRule{policyRule("subresources.kubevirt.io", "*", "get")}, omitted: []string{lacksConnections}},
		"Paths": {
			reason: "paths are read exactly", rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/healthz", "/metrics/*"}, Verbs: []string{"get", "post"}}},
			want: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/healthz"}, Verbs: []string{"get"}}}, omitted: []string{lacksPaths},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := api.Reads(tc.rules)
			if diff := cmp.Diff(rights.Reading{Rules: tc.want, Omitted: tc.omitted}, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if writes := rights.Writing(got.Rules); len(writes) > 0 {
				t.Errorf("%s: the copied rules allow to %s", tc.reason, access.Summarize(writes, 5))
			}
		})
	}
}

func FuzzReads(f *testing.F) {
	f.Add("", "pods", "get")
	f.Add("*", "*", "*")
	f.Add("", "*/exec", "impersonate")
	f.Add("apps", "deployments/*", "watch")
	api, err := rights.Discover(f.Context(), served{"v1": {"pods", "pods/exec", "secrets", "nodes/proxy"}, "apps/v1": {"deployments"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, group, resource, verb string) {
		for _, rule := range api.Reads([]rbacv1.PolicyRule{policyRule(group, resource, verb)}).Rules {
			if len(rights.Writing([]rbacv1.PolicyRule{rule})) > 0 || slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "*") {
				t.Errorf("%q %q %q allows %+v", verb, group, resource, rule)
			}
		}
	})
}

func TestConnects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, group, resource string
		want                    bool
	}{
		"Pods":        {reason: "an object", resource: "pods"},
		"Log":         {reason: "a log is read", resource: "pods/log"},
		"NodeStatus":  {reason: "part of an object", resource: "nodes/status"},
		"OtherGroup":  {reason: "a wildcard of a group without connections", group: "apps", resource: "*"},
		"Exec":        {reason: "executes commands", resource: "pods/exec", want: true},
		"AllExec":     {reason: "of all resources", group: "*", resource: "*/exec", want: true},
		"USB":         {reason: "a device of a virtual machine", group: "subresources.kubevirt.io", resource: "virtualmachineinstances/usbredir", want: true},
		"Vsock":       {reason: "a socket of a virtual machine", group: "subresources.kubevirt.io", resource: "virtualmachineinstances/vsock", want: true},
		"Core":        {reason: "a wildcard includes connections", resource: "*", want: true},
		"NodeProxy":   {reason: "the kubelet executes commands", resource: "nodes/proxy", want: true},
		"NodeFiner":   {reason: "a finer form of nodes/proxy", resource: "nodes/checkpoint", want: true},
		"Subresource": {reason: "a pattern of subresources", resource: "pods/*", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rights.Connects(tc.group, tc.resource); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
