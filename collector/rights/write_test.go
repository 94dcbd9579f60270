package rights_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
)

// grant is a role with its binding, in a namespace or for the whole cluster.
type grant struct {
	namespace string
	role      string // an existing ClusterRole; empty for a new one with these rules
	rules     []rbacv1.PolicyRule
	subject   rbacv1.Subject
}

func (g grant) make(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	name := g.role
	if name == "" {
		role, err := api.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"}, Rules: g.rules,
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		name = role.Name
		t.Cleanup(func() { _ = api.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	meta := metav1.ObjectMeta{GenerateName: "granted-", Namespace: g.namespace}
	refer := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	if g.namespace != "" {
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: refer, Subjects: []rbacv1.Subject{g.subject}}
		if _, err := api.RbacV1().RoleBindings(g.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	made, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: refer, Subjects: []rbacv1.Subject{g.subject},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.RbacV1().ClusterRoleBindings().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	})
}

func rule(group, resource string, verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}
}

func TestWritesOfAnAccount(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	for name, tc := range map[string]struct {
		reason string
		grants func(home, away string, checker rbacv1.Subject) []grant
		want   func(home, away string) []string
	}{
		"Nothing": {
			reason: "an account without permissions",
			grants: func(string, string, rbacv1.Subject) []grant { return nil },
			want:   func(string, string) []string { return nil },
		},
		"Reads": {
			reason: "reading and reviews are no writes",
			grants: func(_, _ string, checker rbacv1.Subject) []grant {
				return []grant{
					{rules: rule("*", "pods", "get", "list", "watch"), subject: checker},
					{rules: rule("authorization.k8s.io", "*", "create"), subject: checker},
				}
			},
			want: func(string, string) []string { return nil },
		},
		"ReadsEverything": {
			reason: "reading everything includes connections",
			grants: func(_, away string, checker rbacv1.Subject) []grant {
				return []grant{{rules: rule("*", "*", "get", "list", "watch"), subject: checker, namespace: away}}
			},
			want: func(_, away string) []string {
				var all []string
				for _, resource := range []string{"pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"} {
					all = append(all, "get "+resource+" in namespace "+away)
				}
				return all
			},
		},
		"AtHome": {
			reason: "a write in the account's own namespace",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{{namespace: home, rules: rule("", "configmaps", "get", "create", "delete"), subject: checker}}
			},
			want: func(home, _ string) []string {
				return []string{"create configmaps in namespace " + home, "delete configmaps in namespace " + home}
			},
		},
		"Away": {
			reason: "a write in another namespace, where a binding names the account",
			grants: func(_, away string, checker rbacv1.Subject) []grant {
				return []grant{{namespace: away, rules: rule("apps", "deployments/scale", "patch"), subject: checker}}
			},
			want: func(_, away string) []string { return []string{"patch deployments/scale.apps in namespace " + away} },
		},
		"ByItsUserName": {
			reason: "a binding may name the account as a user",
			grants: func(_, away string, checker rbacv1.Subject) []grant {
				user := rbacv1.Subject{
					Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName,
					Name: "system:serviceaccount:" + checker.Namespace + ":" + checker.Name,
				}
				return []grant{{namespace: away, rules: rule("", "configmaps", "create"), subject: user}}
			},
			want: func(_, away string) []string { return []string{"create configmaps in namespace " + away} },
		},
		"ByItsGroup": {
			reason: "a binding may name all accounts of a namespace",
			grants: func(home, away string, _ rbacv1.Subject) []grant {
				return []grant{{namespace: away, rules: rule("", "configmaps", "create"), subject: group("system:serviceaccounts:" + home)}}
			},
			want: func(_, away string) []string { return []string{"create configmaps in namespace " + away} },
		},
		"Everywhere": {
			reason: "a write in all namespaces is reported once, and one without a namespace",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{
					{rules: append(rule("", "configmaps", "create"), rule("", "nodes", "delete")...), subject: checker},
					{namespace: home, rules: rule("", "configmaps", "create"), subject: checker},
				}
			},
			want: func(string, string) []string { return []string{"create configmaps", "delete nodes"} },
		},
		"Everything": {
			reason: "one request describes an administrator",
			grants: func(_, _ string, checker rbacv1.Subject) []grant {
				return []grant{{role: "cluster-admin", subject: checker}}
			},
			want: func(string, string) []string { return []string{"do everything"} },
		},
		"Connects": {
			reason: "a node's proxy can run commands in its pods",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{
					{rules: rule("", "nodes/proxy", "get"), subject: checker},
					{namespace: home, rules: rule("", "pods/exec", "get"), subject: checker},
				}
			},
			want: func(home, _ string) []string {
				return []string{"get nodes/proxy", "get pods/exec in namespace " + home}
			},
		},
		"Impersonates": {
			reason: "an account that impersonates has the permissions of others",
			grants: func(home, _ string, checker rbacv1.Subject) []grant {
				return []grant{
					{rules: rule("", "users", "impersonate"), subject: checker},
					{namespace: home, rules: rule("", "serviceaccounts", "impersonate"), subject: checker},
				}
			},
			want: func(home, _ string) []string {
				return []string{"impersonate users", "impersonate serviceaccounts in namespace " + home}
			},
		},
		"Default": {
			reason: "a permission of every user is not the account's",
			grants: func(string, string, rbacv1.Subject) []grant {
				return []grant{{rules: rule("apps", "controllerrevisions", "create"), subject: group("system:authenticated")}}
			},
			want: func(string, string) []string { return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			home, away := newNamespace(t, api), newNamespace(t, api)
			account := types.NamespacedName{Namespace: home, Name: "checker"}
			for _, each := range tc.grants(home, away, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: "checker"}) {
				each.make(t, api)
			}
			want := tc.want(home, away)
			slices.Sort(want)
			if diff := cmp.Diff(want, writes(t, api, account)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// writes are the write requests that an account may make.
func writes(t *testing.T, api kubernetes.Interface, account types.NamespacedName) []string {
	t.Helper()
	rights, err := rights.Writes(t.Context(), api, []types.NamespacedName{account})
	if err != nil || len(rights) != 1 || rights[0].Account != account || len(rights[0].Unserved) > 0 {
		t.Fatalf("rights %+v, error %v", rights, err)
	}
	var texts []string
	for _, request := range rights[0].Writes {
		texts = append(texts, access.Describe(request))
	}
	slices.Sort(texts)
	return texts
}

func newNamespace(t *testing.T, api kubernetes.Interface) string {
	t.Helper()
	made, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "access-"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// The API server's authorizer decides the same, also about wildcards and names.
func TestWritesAgreeWithAccessReviews(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(config)
	home, away := newNamespace(t, api), newNamespace(t, api)
	account := types.NamespacedName{Namespace: home, Name: "checker"}
	named := rule("", "configmaps", "update")
	named[0].ResourceNames = []string{"one"}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	grant{
		namespace: home, subject: subject,
		rules: slices.Concat(rule("apps", "*/scale", "patch"), rule("batch", "*", "delete"), named),
	}.make(t, api)
	grant{namespace: away, subject: subject, rules: slices.Concat(rule("*", "deployments", "create"), rule("", "pods/exec", "*"))}.make(t, api)
	grant{subject: subject, rules: rule("", "persistentvolumes", "*")}.make(t, api)
	rights, err := rights.Writes(t.Context(), api, []types.NamespacedName{account})
	if err != nil {
		t.Fatal(err)
	}
	verbs := []string{"create", "update", "patch", "delete"}
	requests := slices.Concat(
		access.Verbs(access.Request{Group: "apps", Resource: "deployments"}, verbs...),
		access.Verbs(access.Request{Group: "batch", Resource: "jobs"}, verbs...),
		access.Verbs(access.Request{Resource: "configmaps"}, verbs...),
		access.Verbs(access.Request{Resource: "persistentvolumes"}, verbs...),
		access.Verbs(access.Request{Group: "apps", Resource: "deployments", Subresource: "scale"}, "update", "patch"),
		access.Verbs(access.Request{Group: "batch", Resource: "jobs", Subresource: "status"}, "update", "patch"),
		access.Verbs(access.Request{Resource: "pods", Subresource: "exec"}, "create", "get"),
	)
	for _, request := range requests {
		for _, request.Namespace = range []string{home, away, ""} {
			got := slices.ContainsFunc(rights[0].Writes, func(wider access.Request) bool { return access.Includes(wider, request) })
			if want := reviewed(t, api, account, request, got); want != got {
				t.Errorf("%s: allowed %t, by the API server %t", access.Describe(request), got, want)
			}
		}
	}
}

// reviewed is whether the API server allows a request. The authorizer observes roles
// after a delay, so there are several reviews until it agrees with want.
func reviewed(t *testing.T, api kubernetes.Interface, account types.NamespacedName, request access.Request, want bool) bool {
	t.Helper()
	allowed := !want
	for tries := 0; tries < 20 && allowed != want; tries++ {
		review, err := api.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: rights.User(account), ResourceAttributes: &request},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		allowed = review.Status.Allowed
	}
	return allowed
}

func TestNoAccountsNeedNoRequests(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	rights, err := rights.Writes(t.Context(), kubernetes.NewForConfigOrDie(unprivileged), nil)
	if err != nil || len(rights) > 0 {
		t.Errorf("rights %v, error %v", rights, err)
	}
}

func TestWritesWithoutPermission(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	_, err := rights.Writes(t.Context(), kubernetes.NewForConfigOrDie(unprivileged),
		[]types.NamespacedName{{Namespace: "default", Name: "default"}})
	if !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want Forbidden", err)
	}
}

// An API that is registered and does not respond may have any resource.
func TestUnservedAPIIsReported(t *testing.T) {
	offerUnserved(t)
	api := kubernetes.NewForConfigOrDie(config)
	var versions []string
	for tries := 0; tries < 100 && len(versions) == 0; tries++ { // until the API server has tried it
		rights, err := rights.Writes(t.Context(), api, []types.NamespacedName{{Namespace: "default", Name: "default"}})
		if err != nil {
			t.Fatal(err)
		}
		versions = rights[0].Unserved
	}
	if diff := cmp.Diff([]string{unserved + "/v1"}, versions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// offerUnserved registers the group unserved of a server that does not exist.
func offerUnserved(t *testing.T) {
	t.Helper()
	services := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1",
		Resource: "apiservices",
	})
	broken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + unserved},
		"spec": map[string]any{
			"group": unserved, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "absent"},
		},
	}}
	if _, err := services.Create(t.Context(), broken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := services.Delete(context.Background(), "v1."+unserved, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

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
	return nil, lists, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{
		Group:   unserved,
		Version: "v1",
	}: discovery.StaleGroupVersionError{}}}
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
		"v1": {
			"pods", "pods/exec", "pods/log", "pods/status", "secrets", "nodes", "nodes/proxy", "services/proxy",
			"serviceaccounts/token",
		},
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
		"Read": {
			reason: "rules that read are kept", rules: []rbacv1.PolicyRule{policyRule("", "pods", "list", "get")},
			want: []rbacv1.PolicyRule{policyRule("", "pods", "get", "list")},
		},
		"Write": {reason: "write verbs are dropped", rules: []rbacv1.PolicyRule{
			policyRule("", "pods", "delete", "get"),
			policyRule("", "nodes", "patch"),
		}, want: []rbacv1.PolicyRule{policyRule("", "pods", "get")}},
		"AllVerbs": {
			reason: "all verbs include reading", rules: []rbacv1.PolicyRule{policyRule("", "pods", "*")},
			want: []rbacv1.PolicyRule{policyRule("", "pods", read...)},
		},
		"Grants": {reason: "verbs that grant are dropped", rules: []rbacv1.PolicyRule{
			policyRule("", "users", "impersonate"),
			policyRule("rbac.authorization.k8s.io", "clusterroles", "bind", "escalate", "use"),
		}},
		"Twice": {reason: "equal rules are one", rules: []rbacv1.PolicyRule{
			policyRule("", "pods", "get"),
			policyRule("", "pods", "get", "create"),
		}, want: []rbacv1.PolicyRule{policyRule("", "pods", "get")}},
		"ClusterAdmin": {
			reason:  "everything becomes the resources that can be read",
			rules:   []rbacv1.PolicyRule{policyRule("*", "*", "*"), {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}},
			want:    []rbacv1.PolicyRule{core, apps, policyRule("image.openshift.io", "imagestreams", read...)},
			omitted: []string{lacksSecrets, lacksConnections, lacksPaths, lacksUnserved},
		},
		"AllOfGroup": {
			reason: "a wildcard in one group", rules: []rbacv1.PolicyRule{policyRule("apps", "*", read...)},
			want: []rbacv1.PolicyRule{apps},
		},
		"AllGroups": {
			reason: "one resource of all groups", rules: []rbacv1.PolicyRule{policyRule("*", "deployments", "get")},
			want: []rbacv1.PolicyRule{policyRule("apps", "deployments", "get")}, omitted: []string{lacksUnserved},
		},
		"AllOfUnserved": {
			reason: "the resources of a group without discovery are unknown", rules: []rbacv1.PolicyRule{policyRule(unserved, "*", "get")},
			omitted: []string{lacksUnserved},
		},
		"Unserved": {
			reason: "a resource that is named needs no discovery",
			rules:  []rbacv1.PolicyRule{policyRule(unserved, "things", "get")}, want: []rbacv1.PolicyRule{policyRule(unserved, "things", "get")},
		},
		"Subresource": {
			reason: "a subresource of all resources", rules: []rbacv1.PolicyRule{policyRule("apps", "*/status", "get")},
			want: []rbacv1.PolicyRule{policyRule("apps", "deployments/status", "get")},
		},
		"Secrets": {
			reason: "a Secret may have the token of another account",
			rules:  []rbacv1.PolicyRule{policyRule("", "secrets", read...)}, omitted: []string{lacksSecrets},
		},
		"NamedSecret": {
			reason: "a Secret may be named", rules: []rbacv1.PolicyRule{named(policyRule("", "secrets", "get"), "cloud")},
			want: []rbacv1.PolicyRule{named(policyRule("", "secrets", "get"), "cloud")},
		},
		"NamelessSecret": {
			reason: "an empty name is that of a list of all",
			rules:  []rbacv1.PolicyRule{named(policyRule("", "secrets", "list"), "cloud", "")}, omitted: []string{lacksSecrets},
		},
		"NamedStream": {reason: "a stream has all Secrets of its namespace", rules: []rbacv1.PolicyRule{named(policyRule("image.openshift.io",
			"imagestreams/secrets", "get"), "cli")}, omitted: []string{lacksSecrets}},
		"ImageSecrets": {
			reason: "a subresource has Secrets",
			rules:  []rbacv1.PolicyRule{policyRule("image.openshift.io", "imagestreams/secrets", "get")}, omitted: []string{lacksSecrets},
		},
		"Exec": {
			reason: "a connection may execute commands", rules: []rbacv1.PolicyRule{policyRule("", "pods/exec", "get")},
			omitted: []string{lacksConnections},
		},
		"NodeLog": {
			reason: "the kubelet authorizes by the subresources of nodes",
			rules:  []rbacv1.PolicyRule{policyRule("", "nodes/log", "get")}, omitted: []string{lacksConnections},
		},
		"Token": {reason: "a token is an identity", rules: []rbacv1.PolicyRule{policyRule("", "serviceaccounts/token", "*")}},
		"VirtualMachine": {
			reason: "a console of a virtual machine",
			rules:  []rbacv1.PolicyRule{policyRule("subresources.kubevirt.io", "*", "get")}, omitted: []string{lacksConnections},
		},
		"Paths": {
			reason: "paths are read exactly", rules: []rbacv1.PolicyRule{{
				NonResourceURLs: []string{"/healthz", "/metrics/*"},
				Verbs:           []string{"get", "post"},
			}},
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
			if len(rights.Writing([]rbacv1.PolicyRule{rule})) > 0 || slices.Contains(rule.Resources, "secrets") ||
				slices.Contains(rule.Resources, "*") {
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
		"Pods":       {reason: "an object", resource: "pods"},
		"Log":        {reason: "a log is read", resource: "pods/log"},
		"NodeStatus": {reason: "part of an object", resource: "nodes/status"},
		"OtherGroup": {reason: "a wildcard of a group without connections", group: "apps", resource: "*"},
		"Exec":       {reason: "executes commands", resource: "pods/exec", want: true},
		"AllExec":    {reason: "of all resources", group: "*", resource: "*/exec", want: true},
		"USB": {
			reason: "a device of a virtual machine", group: "subresources.kubevirt.io", resource: "virtualmachineinstances/usbredir",
			want: true,
		},
		"Vsock": {
			reason: "a socket of a virtual machine", group: "subresources.kubevirt.io", resource: "virtualmachineinstances/vsock",
			want: true,
		},
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
