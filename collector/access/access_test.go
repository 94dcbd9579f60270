package access_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/test/faults"
)

func TestDescribe(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		request access.Request
		want    string
	}{
		"Core": {
			reason: "a request of the core group in all namespaces", request: access.Request{Verb: "list", Resource: "pods"},
			want: "list pods",
		},
		"Everything": {
			reason: "a request for everything", request: access.Request{Verb: "*", Group: "*", Version: "*", Resource: "*"},
			want: "do everything",
		},
		"One": {
			reason:  "a request with all fields",
			request: access.Request{Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "here", Name: "this"},
			want:    "get deployments/scale.apps this in namespace here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := access.Describe(tc.request); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	pods, nodes := access.Request{Resource: "pods", Namespace: "here"}, access.Request{Resource: "nodes"}
	for name, tc := range map[string]struct {
		reason   string
		requests []access.Request
		most     int
		want     string
	}{
		"None": {reason: "no requests", most: 1},
		"Verbs": {
			reason: "the verbs of a resource are together", requests: access.Verbs(pods, "watch", "get", "watch"), most: 1,
			want: "get, watch pods in namespace here",
		},
		"All": {
			reason: "the order is fixed", requests: slices.Concat(access.Verbs(pods, "get"), access.Verbs(nodes, "delete")), most: 2,
			want: "delete nodes; get pods in namespace here",
		},
		"More": {
			reason: "the others are counted", requests: slices.Concat(access.Verbs(pods, "get"), access.Verbs(nodes, "delete")), most: 1,
			want: "delete nodes; and 1 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := access.Summarize(tc.requests, tc.most); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// some are needs of every kind.
func some() access.Needs {
	wide := access.Needs{Required: access.Verbs(access.Request{Resource: "configmaps"}, "list", "watch")}
	return wide.And(access.Needs{
		Required: []access.Request{
			{Verb: "get", Resource: "pods", Subresource: "log"},
			{Verb: "list", Resource: "pods"},
			{Verb: "watch", Resource: "pods"},
			{Verb: "list", Resource: "configmaps", Namespace: "here"},               // included by the request in all namespaces
			{Verb: "get", Resource: "configmaps", Namespace: "here", Name: "one"},   // included by the request without a name
			{Verb: "get", Resource: "configmaps", Namespace: "there", Name: "one"},  // included by no other
			{Verb: "get", Resource: "configmaps", Namespace: "here"},                // included by no other
			{Verb: "get", Resource: "configmaps", Namespace: "there", Name: "more"}, // included by no other
		},
		Optional: []access.Request{{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}},
		Given: []access.Given{
			{Rule: rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
			{Rule: rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
			{Namespace: "only-given", Rule: rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		},
	})
}

func TestRolesHaveEachNeedOnce(t *testing.T) {
	want := strings.TrimLeft(`
ClusterRole /name
- apiGroups: [""]
  resources: [configmaps, pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
- nonResourceURLs: [/metrics]
  verbs: [get]
Role here/name
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
Role only-given/name
- apiGroups: ['*']
  resources: [pods]
  verbs: [get]
Role there/name
- apiGroups: [""]
  resourceNames: [more]
  resources: [configmaps]
  verbs: [get]
- apiGroups: [""]
  resourceNames: [one]
  resources: [configmaps]
  verbs: [get]
`, "\n")
	var got strings.Builder
	for _, object := range some().Roles("name", nil) {
		got.WriteString(describe(t, object))
	}
	var wanted, made any
	if err := yaml.Unmarshal([]byte(asOne(want)), &wanted); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(asOne(got.String())), &made); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, made); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// asOne makes one document of lists with headings.
func asOne(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Role ") || strings.HasPrefix(line, "ClusterRole ") {
			line = strings.TrimSpace(line) + ":\n"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

func describe(t *testing.T, object runtime.Object) string {
	t.Helper()
	var meta metav1.ObjectMeta
	var rules []rbacv1.PolicyRule
	switch object := object.(type) {
	case *rbacv1.ClusterRole:
		meta, rules = object.ObjectMeta, object.Rules
	case *rbacv1.Role:
		meta, rules = object.ObjectMeta, object.Rules
	default:
		t.Fatalf("unexpected %T", object)
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + meta.Namespace + "/" + meta.Name + "\n" + string(text)
}

func TestEveryRoleIsBound(t *testing.T) {
	subjects := []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "admins"}}
	var kinds []string
	for _, object := range some().Roles("name", subjects) {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		kinds = append(kinds, kind)
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			if binding.RoleRef.Kind != "ClusterRole" || binding.RoleRef.Name != "name" || len(binding.Subjects) != 1 {
				t.Errorf("%+v", binding)
			}
		case *rbacv1.RoleBinding:
			if binding.RoleRef.Kind != "Role" || binding.RoleRef.Name != "name" || len(binding.Subjects) != 1 || binding.Namespace == "" {
				t.Errorf("%+v", binding)
			}
		}
	}
	want := "ClusterRole ClusterRoleBinding Role RoleBinding Role RoleBinding Role RoleBinding"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCheckReportsAllMissingPermissions(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	client := kubernetes.NewForConfigOrDie(unprivileged)
	err := some().Check(t.Context(), client.AuthorizationV1())
	const want = "the user lacks 8 permissions that a preflight requires: list configmaps; watch configmaps; list pods; watch pods; " +
		"get pods/log; and 3 more"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	all := []string{
		"list configmaps", "watch configmaps", "list pods", "watch pods", "get pods/log",
		"get configmaps in namespace here", "get configmaps more in namespace there", "get configmaps one in namespace there",
	}
	if missing, ok := errors.AsType[*access.MissingError](err); !ok || !slices.Equal(missing.Missing, all) {
		t.Errorf("%+v, want %q", missing, all)
	}
	if err := (access.Needs{Optional: some().Optional}).Check(t.Context(), client.AuthorizationV1()); err != nil {
		t.Errorf("an optional permission is required: %v", err)
	}
	if err := some().Check(t.Context(), kubernetes.NewForConfigOrDie(config).AuthorizationV1()); err != nil {
		t.Errorf("an administrator lacks a permission: %v", err)
	}
}

func TestUnreachableServerIsAnotherError(t *testing.T) {
	unreachable := rest.CopyConfig(config)
	unreachable.Host = "https://127.0.0.1:1"
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // shorter than the timeout of the reviews
	defer cancel()
	err := some().Check(ctx, kubernetes.NewForConfigOrDie(unreachable).AuthorizationV1())
	if err == nil || !strings.Contains(err.Error(), "could not review the user's permissions") {
		t.Errorf("%v, want that the review failed", err)
	}
}

func TestReviewsOnAnOverloadedServerAreRetried(t *testing.T) {
	busy, err := faults.Start(config, faults.Unavailable(2))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	client := kubernetes.NewForConfigOrDie(busy.Config())
	if err := some().Check(t.Context(), client.AuthorizationV1()); err != nil {
		t.Errorf("every second review failed, and was not retried: %v", err)
	}
}
