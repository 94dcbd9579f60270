package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/test/cluster"
)

const unique = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: uniques.test%[1]d.example.com},
 spec: {group: test%[1]d.example.com, scope: Cluster, names: {plural: uniques, kind: Unique},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}
`

// TestStartsAreEqual has a start with manifests that no start has had, which saves what the API
// server creates, and the next one with the same manifests, which uses it.
func TestStartsAreEqual(t *testing.T) {
	file := filepath.Join(t.TempDir(), "unique.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, unique, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	saved := func() []string {
		t.Helper()
		files, err := filepath.Glob("../../bin/bootstrap-*.json")
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	before := saved()
	first := objectsOf(t, start(t, cluster.ControlPlaneOnly(), cluster.CRDs(file)))
	added := slices.DeleteFunc(saved(), func(path string) bool { return slices.Contains(before, path) })
	t.Cleanup(func() {
		for _, path := range added {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	})
	if len(added) == 0 {
		t.Error("the start with new manifests has saved nothing")
	}
	second := objectsOf(t, start(t, cluster.ControlPlaneOnly(), cluster.CRDs(file)))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the objects after the first start and after the next one (-first +next):\n%s", diff)
	}
}

// objectsOf are the objects that an API server creates at its start, with the definitions of resources.
func objectsOf(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	definitions, err := clientset.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	crds, err := definitions.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds.Items {
		all = append(all, fmt.Sprintf("CustomResourceDefinition %s %+v", crd.Name, crd.Status.AcceptedNames))
	}
	roles, err := clients(t, c).RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		all = append(all, fmt.Sprintf("ClusterRole %s %+v", role.Name, role.Rules))
	}
	bindings, err := clients(t, c).RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range bindings.Items {
		all = append(all, fmt.Sprintf("ClusterRoleBinding %s %+v %+v", binding.Name, binding.RoleRef, binding.Subjects))
	}
	return all
}
