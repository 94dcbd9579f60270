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

// Conversion is how the objects of a CustomResourceDefinition are converted between its versions.
type Conversion struct {
	// Definition has name, labels and annotations.
	Definition metav1.ObjectMeta
	Kind       string
	Webhook    apiextensionsv1.WebhookClientConfig
	// Served are the versions that the API server serves. Stored are those in which objects may be stored.
	Served, Stored []string
}

// definitionsPage is the number of CustomResourceDefinitions that are read at a time: each
// has up to a megabyte, of which a conversion is the least part.
const definitionsPage = 10

// Conversions by webhooks, sorted by the name of the definition.
func (c *Cluster) Conversions(ctx context.Context) ([]Conversion, error) {
	return once(ctx, c, "conversions", func(ctx context.Context) ([]Conversion, error) {
		var found []Conversion
		resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
		_, err := listPages(ctx, c.api.Dynamic, resource, definitionsPage, func(definition *conversionFields) bool {
			if conversion, ok := definition.conversion(); ok {
				found = append(found, conversion)
			}
			return false
		})
		return found, err
	})
}

// conversionFields are the fields of a CustomResourceDefinition that a Conversion is made of.
type conversionFields struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
		Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

func (d *conversionFields) conversion() (Conversion, bool) {
	how := d.Spec.Conversion
	if how == nil || how.Strategy != apiextensionsv1.WebhookConverter || how.Webhook == nil || how.Webhook.ClientConfig == nil {
		return Conversion{}, false
	}
	found := Conversion{Definition: d.ObjectMeta, Kind: d.Spec.Names.Kind, Webhook: *how.Webhook.ClientConfig, Stored: d.Status.StoredVersions}
	found.Webhook.CABundle = nil
	for _, version := range d.Spec.Versions {
		if version.Served {
			found.Served = append(found.Served, version.Name)
		}
	}
	return found, true
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
