package snapshot

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/snapshot/reported"
)

// APIService is a version of an API group and its server (apiregistration.k8s.io/v1), with
// the fields that checks read.
type APIService struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// Service serves the version; nil for one of the API server itself.
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// APIServices are all APIServices, sorted by name.
func (c *Cluster) APIServices(ctx context.Context) ([]APIService, error) {
	return List[APIService](ctx, c, schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
}

// TerminatingNamespaces are the namespaces that are being deleted, sorted by name.
func (c *Cluster) TerminatingNamespaces(ctx context.Context) ([]corev1.Namespace, error) {
	return once(ctx, c, "terminatingNamespaces", func(ctx context.Context) ([]corev1.Namespace, error) {
		metadata, err := c.Namespaces(ctx)
		if err != nil || !slices.ContainsFunc(metadata, func(n metav1.PartialObjectMetadata) bool { return n.DeletionTimestamp != nil }) {
			return nil, err // the conditions, which only the full objects have, are rarely needed
		}
		all, err := list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.CoreV1().Namespaces().List(ctx, options)
		}, func(*corev1.Namespace) {})
		return slices.DeleteFunc(all, func(namespace corev1.Namespace) bool { return namespace.DeletionTimestamp == nil }), err
	})
}

// Definition is a CustomResourceDefinition, with the fields that checks read.
type Definition struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Versions   []definedVersion                          `json:"versions"`
		Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion"`
	} `json:"spec"`
	Status struct {
		// StoredVersions are those in which objects may be stored.
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

// definedVersion is a version of a Definition. Of its schema it has the fields of the status.
type definedVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPIV3Schema struct {
			Properties struct {
				Status struct {
					// Type is empty for a kind without a status.
					Type       string                 `json:"type"`
					Properties map[string]statusField `json:"properties"`
				} `json:"status"`
			} `json:"properties"`
		} `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// statusField is a field of a status, and the fields of its items where it is a list.
type statusField struct {
	Items struct {
		Properties struct {
			Conditions *struct{} `json:"conditions"`
		} `json:"properties"`
	} `json:"items"`
}

// reports is true where objects have what a reported.Object is made of.
func (v *definedVersion) reports() bool {
	for name, field := range v.Schema.OpenAPIV3Schema.Properties.Status.Properties {
		if field.Items.Properties.Conditions != nil || reported.Is(name) {
			return true
		}
	}
	return false
}

// definitionsPage is the number of CustomResourceDefinitions that are read at a time: each has up to a megabyte.
const definitionsPage = 10

// Definitions are all CustomResourceDefinitions, sorted by name.
func (c *Cluster) Definitions(ctx context.Context) ([]Definition, error) {
	return once(ctx, c, "definitions of kinds", func(ctx context.Context) ([]Definition, error) {
		resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
		return listPages(ctx, c.api.Dynamic, resource, definitionsPage, func(definition *Definition) bool {
			if webhook := definition.Webhook(); webhook != nil {
				webhook.CABundle = nil
			}
			return true
		})
	})
}

// Webhook converts objects between the versions; nil for a kind whose objects no webhook converts.
func (d *Definition) Webhook() *apiextensionsv1.WebhookClientConfig {
	how := d.Spec.Conversion
	if how == nil || how.Strategy != apiextensionsv1.WebhookConverter || how.Webhook == nil {
		return nil
	}
	return how.Webhook.ClientConfig
}

// Served are the names of the versions that the API server serves.
func (d *Definition) Served() []string {
	var served []string
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Served {
			served = append(served, d.Spec.Versions[i].Name)
		}
	}
	return served
}

// HasStatus reports whether the objects of a served version have a status, by the schema.
func (d *Definition) HasStatus() bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v definedVersion) bool {
		return v.Served && v.Schema.OpenAPIV3Schema.Properties.Status.Type != ""
	})
}

// Reporting is the resource in a served version in which its objects report anything, that of the storage if it is one;
// false where there is none.
func (d *Definition) Reporting() (schema.GroupVersionResource, bool) {
	found := ""
	for i := range d.Spec.Versions {
		of := &d.Spec.Versions[i]
		if of.Served && of.reports() && (found == "" || of.Storage) {
			found = of.Name
		}
	}
	return schema.GroupVersionResource{Group: d.Spec.Group, Version: found, Resource: d.Spec.Names.Plural}, found != ""
}

// Reports are all objects of a resource with what they report, sorted by namespace and name.
func (c *Cluster) Reports(ctx context.Context, resource schema.GroupVersionResource) ([]reported.Object, error) {
	return once(ctx, c, "reports of "+resource.String(), func(ctx context.Context) ([]reported.Object, error) {
		return listAs(ctx, c.api.Dynamic, resource, (*reported.Object).Reduce)
	})
}

// PodDisruptionBudgets are all PodDisruptionBudgets, sorted by namespace and name. Of the
// labels and annotations they have those that name an operator or a Helm release.
func (c *Cluster) PodDisruptionBudgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	return once(ctx, c, "budgets", func(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
		r := &reader[policyv1.PodDisruptionBudget]{cluster: c, resource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")}
		r.rules = allBut[policyv1.PodDisruptionBudget]("metadata.labels[olm.owner]", "metadata.annotations[meta.helm.sh/release-name]")
		return r.all(ctx)
	})
}
