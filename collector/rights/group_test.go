package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
)

// describeAll are requests in words.
func describeAll(requests []access.Request) []string {
	var texts []string
	for _, request := range requests {
		texts = append(texts, access.Describe(request))
	}
	return texts
}

func TestAttacksByGroups(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	for name, tc := range map[string]struct {
		reason                     string
		rules                      []rbacv1.PolicyRule
		writes, unguarded, secrets []string // NS stands for the namespace
	}{
		"Nothing": {reason: "a role that reads", rules: rule("", "pods", "get", "list")},
		"Write": {
			reason: "the guard denies it", rules: rule("", "configmaps", "create"),
			writes: []string{"create configmaps in namespace NS"},
		},
		"Secrets": {reason: "a Secret may have a token", rules: rule("", "secrets", "get"), secrets: []string{"get secrets in namespace NS"}},
		"Impersonate": {
			reason: "the guard receives the impersonated user", rules: rule("", "serviceaccounts", "impersonate"),
			writes: []string{"impersonate serviceaccounts in namespace NS"}, unguarded: []string{"impersonate serviceaccounts in namespace NS"},
		},
		"Escalate": {
			reason: "the permission to grant permissions", rules: rule("rbac.authorization.k8s.io", "roles", "escalate"),
			writes:    []string{"escalate roles.rbac.authorization.k8s.io in namespace NS"},
			unguarded: []string{"escalate roles.rbac.authorization.k8s.io in namespace NS"},
		},
		"ImpersonateOne": {
			reason: "a rule for one object allows no request for all", rules: forObjects(rule("", "serviceaccounts", "impersonate"), "admin"),
			writes:    []string{"impersonate serviceaccounts admin in namespace NS"},
			unguarded: []string{"impersonate serviceaccounts admin in namespace NS"},
		},
		"WriteOne": {
			reason: "the guard denies it", rules: forObjects(rule("", "configmaps", "update", "get"), "one", "two"),
			writes: []string{"update configmaps one in namespace NS", "update configmaps two in namespace NS"},
		},
		"Constrained": {
			reason:    "constrained impersonation has verbs of its own",
			rules:     rule("authentication.k8s.io", "serviceaccounts", "impersonate:serviceaccount"),
			writes:    []string{"impersonate:serviceaccount serviceaccounts.authentication.k8s.io in namespace NS"},
			unguarded: []string{"impersonate:serviceaccount serviceaccounts.authentication.k8s.io in namespace NS"},
		},
		"ConstrainedOne": {
			reason: "also for one object", rules: forObjects(rule("", "pods", "impersonate-on:serviceaccount:create"), "x"),
			writes:    []string{"impersonate-on:serviceaccount:create pods x in namespace NS"},
			unguarded: []string{"impersonate-on:serviceaccount:create pods x in namespace NS"},
		},
		"OtherVerb": {
			reason: "what is not known to read may write", rules: rule("example.com", "things", "launch"),
			writes: []string{"launch things.example.com in namespace NS"}, unguarded: []string{"launch things.example.com in namespace NS"},
		},
		"Exec": {
			reason: "the guard denies connections", rules: forObjects(rule("", "pods/exec", "create"), "one"),
			writes: []string{"create pods/exec one in namespace NS"},
		},
		"Use": {
			reason: "every user of OpenShift may use an SCC",
			rules:  forObjects(rule("security.openshift.io", "securitycontextconstraints", "use"), "restricted-v2"),
		},
		"Scopes": {
			reason: "every user of OpenShift may restrict its own requests",
			rules:  rule("authentication.k8s.io", "userextras/scopes.authorization.openshift.io", "impersonate"),
		},
		"ReadOne": {reason: "a role that reads one object", rules: forObjects(rule("", "configmaps", "get"), "one")},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t, api)
			all := []string{newNamespace(t, api), namespace, newNamespace(t, api)}
			grant{namespace: namespace, rules: tc.rules, subject: rbacv1.Subject{
				Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + namespace,
			}}.make(t, api)
			in := func(texts []string) []string { return replaceAll(texts, "NS", namespace) }
			want := [][]string{in(tc.writes), in(tc.unguarded), in(tc.secrets)}
			// The authorizer observes the roles after a delay.
			var got [][]string
			for tries := 0; tries == 0 || tries < 20 && cmp.Diff(want, got) != ""; tries++ {
				rights, err := rights.Groups(t.Context(), api, all, nil)
				if err != nil || len(rights) != len(all) {
					t.Fatalf("rights %+v, error %v", rights, err)
				}
				for _, of := range rights {
					switch {
					case of.Roles == 0:
						t.Errorf("namespace %s: no roles, want those of every authenticated user", of.Namespace)
					case of.Namespace == namespace:
						got = [][]string{describeAll(of.Writes), describeAll(of.Unguarded), describeAll(of.Secrets)}
					case len(of.Writes)+len(of.Unguarded)+len(of.Secrets) > 0:
						t.Errorf("%s: the accounts of another namespace have it too: %+v", tc.reason, of)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: writes, unguarded, secrets (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// forObjects returns the rules for objects with these names.
func forObjects(rules []rbacv1.PolicyRule, names ...string) []rbacv1.PolicyRule {
	for i := range rules {
		rules[i].ResourceNames = names
	}
	return rules
}

// A check may leave out its token, and with it the read-only guard, which knows a check by
// it.
func TestAttacksWithoutToken(t *testing.T) {
	for name, subject := range map[string]rbacv1.Subject{
		"Group": {Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:unauthenticated"},
		"User":  {Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "system:anonymous"},
	} {
		t.Run(name, func(t *testing.T) {
			api := kubernetes.NewForConfigOrDie(config)
			namespace := newNamespace(t, api)
			grant{namespace: namespace, rules: rule("", "configmaps", "create"), subject: subject}.make(t, api)
			want := []string{"create configmaps in namespace " + namespace}
			var got []string
			for tries := 0; tries == 0 || tries < 20 && cmp.Diff(want, got) != ""; tries++ { // until the authorizer has the role
				rights, err := rights.Groups(t.Context(), api, []string{namespace}, nil)
				if err != nil {
					t.Fatal(err)
				}
				got = slices.DeleteFunc(describeAll(rights[0].Unguarded), func(text string) bool { return !strings.HasSuffix(text, namespace) })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// A RoleBinding in any namespace may be for all accounts of the cluster.
func TestGroupsOfAllAccounts(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	bound, first, second := newNamespace(t, api), newNamespace(t, api), newNamespace(t, api)
	grant{namespace: bound, rules: rule("", "serviceaccounts", "impersonate"), subject: rbacv1.Subject{
		Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts",
	}}.make(t, api)
	impersonate := []string{"impersonate serviceaccounts in namespace " + bound}
	want := map[string][]string{bound: impersonate, first: impersonate, second: impersonate}
	got := map[string][]string{}
	for tries := 0; tries == 0 || tries < 20 && cmp.Diff(want, got) != ""; tries++ { // until the authorizer has the role
		rights, err := rights.Groups(t.Context(), api, []string{bound, first, second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, of := range rights {
			got[of.Namespace] = describeAll(of.Unguarded)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// A cluster with many tenants may have a RoleBinding for all users in each namespace.
func TestGroupsWithManyBindings(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	namespace := newNamespace(t, api)
	readers := grant{
		namespace: namespace, role: "view",
		subject: rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:authenticated"},
	}
	const many = 201 // more than one account may have
	for range many {
		readers.make(t, api)
	}
	rights, err := rights.Groups(t.Context(), api, []string{namespace}, nil)
	if err != nil || len(rights) != 1 || len(rights[0].Writes) > 0 {
		t.Errorf("rights %+v, error %v; want no writes", rights, err)
	}
}

func TestUnguarded(t *testing.T) {
	everything := access.Request{Verb: "*", Group: "*", Version: "*", Resource: "*"}
	for name, tc := range map[string]struct {
		reason  string
		request access.Request
		want    bool
	}{
		"Write": {reason: "the guard denies it", request: access.Request{Verb: "create", Resource: "pods"}},
		"Exec": {
			reason:  "the guard denies connections of the API server",
			request: access.Request{Verb: "get", Resource: "pods", Subresource: "exec"},
		},
		"Token": {
			reason:  "the guard denies requests for tokens",
			request: access.Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
		},
		"NodeStatus": {reason: "an object of the API server", request: access.Request{Verb: "patch", Resource: "nodes", Subresource: "status"}},
		"Everything": {reason: "an administrator", request: everything, want: true},
		"Impersonate": {
			reason: "the guard receives the impersonated user", request: access.Request{Verb: "impersonate", Resource: "users"},
			want: true,
		},
		"Bind": {
			reason:  "the permission to grant permissions",
			request: access.Request{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, want: true,
		},
		"Policy": {
			reason:  "policies are exempt from policies",
			request: access.Request{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}, want: true,
		},
		"Binding": {reason: "and so are their bindings", request: access.Request{
			Verb: "delete", Group: "admissionregistration.k8s.io",
			Resource: "validatingadmissionpolicybindings",
		}, want: true},
		"Kubelet": {
			reason: "the kubelet has no admission", request: access.Request{Verb: "create", Resource: "nodes", Subresource: "proxy"},
			want: true,
		},
		"Checkpoint": {
			reason:  "a finer form of nodes/proxy",
			request: access.Request{Verb: "create", Resource: "nodes", Subresource: "checkpoint"}, want: true,
		},
		"Aggregated": {
			reason:  "another server has its own admission",
			request: access.Request{Verb: "delete", Group: "metrics.example.com", Resource: "things"}, want: true,
		},
		"AllGroups": {
			reason: "a wildcard includes policies", request: access.Request{Verb: "delete", Group: "*", Resource: "things"},
			want: true,
		},
		"AllVerbs": {reason: "all verbs include impersonation", request: access.Request{Verb: "*", Resource: "users"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rights.Unguarded([]access.Request{tc.request}, []string{"metrics.example.com"}); len(got) > 0 != tc.want {
				t.Errorf("%s: %v, want it to be unguarded: %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWriting(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rules  []rbacv1.PolicyRule
		want   []string
	}{
		"Reads": {reason: "reading is no write", rules: rule("", "pods", "get", "list", "watch")},
		"Writes": {
			reason: "the rule names it", rules: rule("apps", "deployments/scale", "get", "patch"),
			want: []string{"patch deployments/scale.apps"},
		},
		"Wildcard":   {reason: "a wildcard is kept", rules: rule("apps", "*", "*"), want: []string{"* *.apps"}},
		"Connection": {reason: "a connection executes commands", rules: rule("", "pods/exec", "get"), want: []string{"get pods/exec"}},
		"Metrics":    {reason: "the kubelet's metrics are read", rules: rule("", "nodes/metrics", "get")},
		"Statistics": {reason: "cluster-reader of OpenShift has it", rules: rule("", "nodes/stats", "create", "get")},
		"Reviews":    {reason: "reviews store nothing", rules: rule("authorization.openshift.io", "localresourceaccessreviews", "create")},
		"KubeVirt":   {reason: "view has it where KubeVirt is installed", rules: rule("subresources.kubevirt.io", "expand-vm-spec", "update")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, describeAll(rights.Writing(tc.rules))); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The local API server serves all groups but its CustomResourceDefinitions itself.
func TestAggregatedGroups(t *testing.T) {
	got, err := rights.AggregatedGroups(t.Context(), kubernetes.NewForConfigOrDie(config).Discovery().RESTClient())
	if err != nil || len(got) > 0 {
		t.Errorf("groups %q, error %v; want none", got, err)
	}
	offerUnserved(t)
	got, err = rights.AggregatedGroups(t.Context(), kubernetes.NewForConfigOrDie(config).Discovery().RESTClient())
	if diff := cmp.Diff([]string{unserved}, got); diff != "" || err != nil {
		t.Errorf("error %v; groups of another server (-want, +got):\n%s", err, diff)
	}
}
