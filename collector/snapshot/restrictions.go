package snapshot

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/words"
)

// Restriction is a NetworkPolicy, a ResourceQuota or a LimitRange.
type Restriction struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Hard corev1.ResourceList `json:"hard"`
		Used corev1.ResourceList `json:"used"`
	} `json:"status"`
}

// Restrictions are the objects of such a resource in the namespaces of the cluster itself, sorted by namespace and name.
func (c *Cluster) Restrictions(ctx context.Context, resource schema.GroupVersionResource) ([]Restriction, error) {
	return once(ctx, c, "restrictions by "+resource.String(), func(ctx context.Context) ([]Restriction, error) {
		return listPages(ctx, c.api.Dynamic, resource, 0, func(object *Restriction) bool { return OfCluster(object.Namespace) })
	})
}

// HandMade is the client of a person, or the tool that applies what a person wrote, if nothing else wrote the object, by
// its managed fields. It is empty for the object of another program, and where it is unknown. The writers of the metadata
// alone, and of subresources, do not count.
func HandMade(object metav1.Object) string {
	by := ""
	for _, entry := range object.GetManagedFields() {
		switch {
		case entry.Subresource != "" || !writesContent(entry.FieldsV1):
		case !OfPerson(entry.Manager) && !appliesForPerson(entry.Manager):
			return ""
		default:
			by = entry.Manager
		}
	}
	return words.External(by)
}

// writesContent reports whether fields are not of the metadata and the status only. Those that cannot be read are.
func writesContent(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(fields.GetRawString()), &members); err != nil {
		return true
	}
	for name := range members {
		if name != "f:metadata" && name != "f:status" {
			return true
		}
	}
	return false
}

// appliesForPerson reports whether a field manager is a tool by which people apply their manifests: Argo CD, Flux, Helm,
// Terraform, and the policies of Advanced Cluster Management.
func appliesForPerson(manager string) bool {
	return manager == "helm" || slices.ContainsFunc([]string{"argocd", "kustomize-controller", "helm-controller", "Helm", "Terraform", "terraform", "HashiCorp", "config-policy-controller"}, func(tool string) bool {
		return strings.HasPrefix(manager, tool)
	})
}
