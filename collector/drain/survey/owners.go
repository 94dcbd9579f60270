package survey

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/drain/owner"
)

// Resources of operators that move their pods.
func machines() resource {
	return of(schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}, "virtualmachineinstances", "VirtualMachineInstances")
}

func virts() resource {
	return of(schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}, "kubevirts", "KubeVirts")
}

func postgres() resource {
	return of(schema.GroupVersion{Group: "postgresql.cnpg.io", Version: "v1"}, "clusters", "Clusters of CloudNativePG")
}

// object is an object of an operator, with the parts that package owner reads.
type object struct {
	Metadata map[string]any `json:"metadata"`
	Spec     map[string]any `json:"spec,omitempty"`
	Status   map[string]any `json:"status,omitempty"`
}

func (o object) of(version schema.GroupVersion, kind string) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version.String(), "kind": kind, "metadata": o.Metadata, "spec": o.Spec, "status": o.Status,
	}}
}

// owners are the operators that move their pods, by their objects, and the names of webhooks that
// receive evictions.
func (r *reader) owners(ctx context.Context, webhooks []string) *owner.Owners {
	var objects []unstructured.Unstructured
	for _, each := range list[object](ctx, r, machines()) {
		objects = append(objects, each.of(machines().GroupVersion(), "VirtualMachineInstance"))
	}
	for _, each := range list[object](ctx, r, virts()) {
		objects = append(objects, each.of(virts().GroupVersion(), "KubeVirt"))
	}
	for _, each := range list[object](ctx, r, postgres()) {
		objects = append(objects, each.of(postgres().GroupVersion(), "Cluster"))
	}
	return owner.New(objects, webhooks)
}
