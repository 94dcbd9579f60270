package examples_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/test/release"
)

// printed has every kind of rule that the SDK takes; the runner must take them
// too, and read them as they were meant.
func printed() []preflight.Check {
	run := func(context.Context, *preflight.T) error { return nil }
	return []preflight.Check{
		{Name: "Nodes", Run: run, Rules: []preflight.Rule{
			{APIGroups: []string{"", "config.openshift.io"}, Resources: []string{"nodes", "clusterversions/status"}, Verbs: []string{"get", "list", "watch"}},
		}},
		{Name: "Secrets", After: []string{"Nodes"}, Run: run, Rules: []preflight.Rule{
			{
				Namespace: "openshift-etcd", APIGroups: []string{""}, Resources: []string{"secrets", "pods/log"},
				ResourceNames: []string{"0x1f", "true", "~", "1e3", `system:"a"`, "é", `a\b`, "#x", "null"}, Verbs: []string{"get"},
			},
		}},
	}
}

func TestPrintedManifestIsAccepted(t *testing.T) {
	manifest, err := preflight.Manifest(preflight.ManifestOptions{
		Name: "etcd-preflight", Namespace: "openshift-etcd-operator", Image: "quay.io/openshift/origin-etcd:latest",
	}, printed()...)
	if err != nil {
		t.Fatal(err)
	}
	got := extracted(t, release.Component{
		Name: "etcd", Source: "quay.io/openshift/origin-etcd",
		Manifests: map[string]string{"0000_20_etcd-operator_10_preflight.yaml": string(manifest)},
	})
	if len(got.Problems) > 0 {
		t.Errorf("the reader of releases finds nothing wrong with it, got %v", got.Problems)
	}

	plan := launch.Build(launch.Run{ID: "7f3c2a91-52de-4b1c-8d70-1f2e3d4c5b6a", Image: got.Image, Digest: got.Digest}, got)
	if len(plan.Refused) > 0 || len(plan.Checks) != 1 || !plan.Checks[0].Framed {
		t.Fatalf("the Job runs and promises a result in the SDK's form, got %v, refused %v", plan.Checks, plan.Refused)
	}
	if len(plan.Supporting) != 5 {
		t.Errorf("the account, two roles and two bindings are needed, got %d of %d", len(plan.Supporting), len(got.Supporting))
	}
	restricted(t, plan.Checks[0].Job)

	rules := map[string][]rbacv1.PolicyRule{}
	for _, supporting := range got.Supporting {
		switch role := supporting.Object.(type) {
		case *rbacv1.ClusterRole:
			rules[role.Namespace] = role.Rules
		case *rbacv1.Role:
			rules[role.Namespace] = role.Rules
		}
	}
	if diff := cmp.Diff(declared(printed()), rules); diff != "" {
		t.Errorf("the roles are what was declared, every string of it (-want +got):\n%s", diff)
	}
}

// declared are the rules of the checks as RBAC, by namespace.
func declared(checks []preflight.Check) map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, check := range checks {
		for _, rule := range check.Rules {
			rules[rule.Namespace] = append(rules[rule.Namespace], rbacv1.PolicyRule{
				APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames, Verbs: rule.Verbs,
			})
		}
	}
	return rules
}

// restricted holds the Job to the pod security standard of that name.
func restricted(t *testing.T, job *batchv1.Job) {
	t.Helper()
	pod := job.Spec.Template.Spec
	container := pod.Containers[0].SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
		*container.AllowPrivilegeEscalation || !*container.ReadOnlyRootFilesystem || container.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the Job is not restricted: pod %v, container %v", pod.SecurityContext, container)
	}
}

// extracted is a release with that component, as the runner reads it from a
// registry.
func extracted(t *testing.T, component release.Component) *payload.Release {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	var err error
	if component.Image, err = release.BuildImage(t.Context(), host, "example", release.Image{}); err != nil {
		t.Fatal(err)
	}
	pullSpec, err := release.Push(t.Context(), host, release.Release{Version: "4.21.3", Components: []release.Component{component}})
	if err != nil {
		t.Fatal(err)
	}
	forced, err := signature.Force(pullSpec, errors.New("not signed: it is made for this test"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := payload.Extract(t.Context(), forced, payload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
