package zoo

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// Left returns the remaining objects of runs as resource/namespace/name. The label
// selector selects runs; if it is empty, Left returns the objects of all runs.
func (z *Zoo) Left(tb testing.TB, selector string) []string {
	tb.Helper()
	if selector == "" {
		selector = "preflight.openshift.io/run"
	}
	client, err := metadata.NewForConfig(z.cluster.Config)
	if err != nil {
		tb.Fatal(err)
	}
	var left []string
	for _, resource := range []schema.GroupVersionResource{
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "configmaps"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	} {
		found, err := client.Resource(resource).List(tb.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			tb.Fatal(err)
		}
		for _, object := range found.Items {
			left = append(left, resource.Resource+"/"+object.Namespace+"/"+object.Name)
		}
	}
	return left
}
