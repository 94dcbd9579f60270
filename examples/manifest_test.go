package examples_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/release"
)

// checks declares every kind of rule that the SDK accepts.
func checks() []preflight.Check {
	run := func(context.Context, *preflight.T) error { return nil }
	return []preflight.Check{
		{Name: "Nodes", Run: run, Rules: []preflight.Rule{
			{
				APIGroups: []string{"", "config.openshift.io"}, Resources: []string{"nodes", "clusterversions/status"},
				Verbs: []string{"get", "list", "watch"},
			},
		}},
		{Name: "Secrets", After: []string{"Nodes"}, Run: run, Rules: []preflight.Rule{
			{
				Namespace: "openshift-etcd", APIGroups: []string{""}, Resources: []string{"secrets", "pods/log"},
				ResourceNames: []string{"0x1f", "true", "~", "1e3", `system:"a"`, "é", `a\b`, "#x", "null"}, Verbs: []string{"get"},
			},
		}},
	}
}

// TestPrintedManifestIsAccepted tests that the runner accepts a manifest of the SDK and
// reads the rules as they are declared.
func TestPrintedManifestIsAccepted(t *testing.T) {
	manifest, err := preflight.Manifest(preflight.ManifestOptions{
		Name: "etcd-preflight", Namespace: "openshift-etcd-operator", Image: "quay.io/openshift/origin-etcd:latest",
	}, checks()...)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := extract(t, release.Component{
		Name: "etcd", Source: "quay.io/openshift/origin-etcd",
		Manifests: map[string]string{"0000_20_etcd-operator_10_preflight.yaml": string(manifest)},
	})
	plan := plan(got)
	if len(plan.Refused) > 0 || len(plan.Checks) != 1 || !plan.Checks[0].Framed {
		t.Fatalf("want one check that promises a framed result, got %v, refused %v", plan.Checks, plan.Refused)
	}
	if len(plan.Supporting) != 5 {
		t.Errorf("the plan uses %d of %d supporting objects, want the ServiceAccount, two roles and two bindings", len(plan.Supporting),
			len(got.Supporting))
	}
	expectRestricted(t, plan.Checks[0].Job)

	rules := map[string][]rbacv1.PolicyRule{}
	for _, supporting := range got.Supporting {
		switch role := supporting.Object.(type) {
		case *rbacv1.ClusterRole:
			rules[role.Namespace] = role.Rules
		case *rbacv1.Role:
			rules[role.Namespace] = role.Rules
		}
	}
	if diff := cmp.Diff(declaredRules(checks()), rules); diff != "" {
		t.Errorf("rules by namespace (-declared +got):\n%s", diff)
	}
}

// declaredRules returns the rules of the checks as RBAC rules, by namespace.
func declaredRules(checks []preflight.Check) map[string][]rbacv1.PolicyRule {
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

// expectRestricted fails the test unless the Job complies with the restricted pod
// security standard, and its program cannot write to the file system of its image.
func expectRestricted(t *testing.T, job *batchv1.Job) {
	t.Helper()
	pod := job.Spec.Template.Spec
	container := pod.Containers[0].SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
		*container.AllowPrivilegeEscalation || !*container.ReadOnlyRootFilesystem || container.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the Job %s is not restricted: pod %v, container %v", job.Name, pod.SecurityContext, container)
	}
}
