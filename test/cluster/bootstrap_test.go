package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
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
	first := start(t, cluster.ControlPlaneOnly(), cluster.CRDs(file))
	if first.Saved == "" {
		t.Fatal("the start with new manifests has saved nothing")
	}
	t.Cleanup(func() {
		if err := os.Remove(first.Saved); err != nil {
			t.Error(err)
		}
	})
	created := objectsOf(t, first)
	second := start(t, cluster.ControlPlaneOnly(), cluster.CRDs(file))
	if second.Saved != "" {
		t.Error("the next start with the same manifests has not begun with what the first one has saved")
	}
	if diff := cmp.Diff(created, objectsOf(t, second)); diff != "" {
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
