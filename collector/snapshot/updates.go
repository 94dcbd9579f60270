package snapshot

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/snapshot/reported"
)

// ConditionalUpdates is an index of the conditional updates in ClusterVersion: hundreds are possible, and every
// target searches them.
type ConditionalUpdates struct {
	// ByVersion are the updates by the version of their release, as it is spelled. Data
	// with defects has several of one version.
	ByVersion map[string][]configv1.ConditionalUpdate
	// NotSemVer are the versions that are not semantic versions, sorted.
	NotSemVer []string
	// Published are the risks of status.conditionalUpdateRisks, by name. Only some feature sets have them.
	Published map[string]configv1.ConditionalUpdateRisk
	// Definitions are the definitions of each risk that differ in more than their conditions, by name.
	Definitions map[string][]configv1.ConditionalUpdateRisk
}

// ConditionalUpdates reads the conditional updates in the status of the ClusterVersion.
func (c *Cluster) ConditionalUpdates(ctx context.Context) (*ConditionalUpdates, error) {
	return once(ctx, c, "conditionalUpdates", func(ctx context.Context) (*ConditionalUpdates, error) {
		version, err := c.ClusterVersion(ctx)
		if err != nil {
			return nil, err
		}
		return conditionalUpdatesOf(version.Status), nil
	})
}

func conditionalUpdatesOf(status configv1.ClusterVersionStatus) *ConditionalUpdates {
	found := &ConditionalUpdates{
		ByVersion:   map[string][]configv1.ConditionalUpdate{},
		Published:   map[string]configv1.ConditionalUpdateRisk{},
		Definitions: map[string][]configv1.ConditionalUpdateRisk{},
	}
	for _, risk := range status.ConditionalUpdateRisks {
		found.Published[risk.Name] = risk
		found.define(risk)
	}
	for _, update := range status.ConditionalUpdates {
		version := update.Release.Version
		found.ByVersion[version] = append(found.ByVersion[version], update)
		if _, err := semver.Parse(version); err != nil {
			found.NotSemVer = append(found.NotSemVer, version)
		}
		for _, risk := range update.Risks {
			found.define(risk)
		}
	}
	slices.Sort(found.NotSemVer)
	found.NotSemVer = slices.Compact(found.NotSemVer)
	return found
}

func (c *ConditionalUpdates) define(risk configv1.ConditionalUpdateRisk) {
	same := func(known configv1.ConditionalUpdateRisk) bool { return sameRisk(known, risk) }
	if !slices.ContainsFunc(c.Definitions[risk.Name], same) {
		c.Definitions[risk.Name] = append(c.Definitions[risk.Name], risk)
	}
}

// sameRisk compares two definitions as CVO does, without the cluster's assessment (pkg/risk/risk.go).
func sameRisk(a, b configv1.ConditionalUpdateRisk) bool {
	return a.URL == b.URL && a.Message == b.Message && slices.EqualFunc(a.MatchingRules, b.MatchingRules, sameRule)
}

// SameRules reports whether definitions of a risk differ at most in words: whether
// all have the same matching rules.
func SameRules(definitions []configv1.ConditionalUpdateRisk) bool {
	return !slices.ContainsFunc(definitions, func(risk configv1.ConditionalUpdateRisk) bool {
		return !slices.EqualFunc(risk.MatchingRules, definitions[0].MatchingRules, sameRule)
	})
}

func sameRule(a, b configv1.ClusterCondition) bool {
	if a.PromQL == nil || b.PromQL == nil {
		return a.Type == b.Type && a.PromQL == b.PromQL
	}
	return a.Type == b.Type && *a.PromQL == *b.PromQL
}

// UpgradeConfig is an update scheduled for the managed-upgrade-operator
// (upgrade.managed.openshift.io/v1alpha1), with the fields that checks read.
type UpgradeConfig struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		// UpgradeAt is an RFC 3339 time for the operator; the API accepts any text.
		UpgradeAt string `json:"upgradeAt"`
		// CapacityReservation reserves extra nodes during the update.
		CapacityReservation bool `json:"capacityReservation"`
		Desired             struct {
			// Version may be empty when an image is set.
			Version string `json:"version"`
		} `json:"desired"`
	} `json:"spec"`
}

// UpgradeConfigs returns all UpgradeConfigs, sorted by namespace and name. If the API is not served, the error is
// NotFound, even without permission to read it.
func (c *Cluster) UpgradeConfigs(ctx context.Context) ([]UpgradeConfig, error) {
	return once(ctx, c, "upgradeConfigs", func(ctx context.Context) ([]UpgradeConfig, error) {
		resource := schema.GroupVersionResource{Group: "upgrade.managed.openshift.io", Version: "v1alpha1", Resource: "upgradeconfigs"}
		configs, err := listAs(ctx, c.api.Dynamic, resource, func(*UpgradeConfig) {})
		if !apierrors.IsForbidden(err) {
			return configs, err
		}
		// The API server checks permissions first, and most clusters do not have the
		// API. Every user may list the served APIs.
		_, unserved := discovery.ToServerResourcesInterfaceWithContext(c.api.Kubernetes.Discovery()).ServerResourcesForGroupVersionWithContext(
			ctx, resource.GroupVersion().String())
		if apierrors.IsNotFound(unserved) {
			return nil, unserved
		}
		return nil, err
	})
}

// Subscription is an operator that OLM updates (operators.coreos.com/v1alpha1), with the fields that checks read.
type Subscription struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		InstallPlanApproval string `json:"installPlanApproval"`
		// Source is the CatalogSource that the operator is from, and SourceNamespace its namespace.
		Source          string `json:"source"`
		SourceNamespace string `json:"sourceNamespace"`
	} `json:"spec"`
	Status struct {
		// InstalledCSV is the ClusterServiceVersion that runs, and CurrentCSV the one to which the operator is updated.
		InstalledCSV string `json:"installedCSV"`
		CurrentCSV   string `json:"currentCSV"`
		State        string `json:"state"`
		// InstallPlanRef is the InstallPlan of CurrentCSV; nil before there is one.
		InstallPlanRef *corev1.ObjectReference `json:"installPlanRef"`
		Conditions     []struct {
			Type               string                 `json:"type"`
			Status             corev1.ConditionStatus `json:"status"`
			Reason             string                 `json:"reason"`
			Message            string                 `json:"message"`
			LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

// Subscriptions are all Subscriptions, sorted by namespace and name.
func (c *Cluster) Subscriptions(ctx context.Context) ([]Subscription, error) {
	return List[Subscription](ctx, c, schema.GroupVersionResource{
		Group: "operators.coreos.com", Version: "v1alpha1",
		Resource: "subscriptions",
	})
}

// CatalogSource has the operators that OLM may install (operators.coreos.com/v1alpha1), with the fields that checks read.
type CatalogSource struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		// ConnectionState is nil for a source without a server.
		ConnectionState *struct {
			// LastObservedState is a state of gRPC.
			LastObservedState string `json:"lastObservedState"`
		} `json:"connectionState"`
	} `json:"status"`
}

// CatalogSources are all CatalogSources, sorted by namespace and name.
func (c *Cluster) CatalogSources(ctx context.Context) ([]CatalogSource, error) {
	return List[CatalogSource](ctx, c, schema.GroupVersionResource{
		Group: "operators.coreos.com", Version: "v1alpha1",
		Resource: "catalogsources",
	})
}

// InstalledOperator is a ClusterServiceVersion with its state.
type InstalledOperator struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		// Phase is Succeeded if the operator is running.
		Phase   string `json:"phase"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"status"`
}

// operatorsPage is the number of ClusterServiceVersions that are read at a time: each has hundreds of kilobytes.
const operatorsPage = 10

// InstalledOperators returns the ClusterServiceVersions that are not copies, sorted by namespace and name. Their
// content is dropped page by page.
func (c *Cluster) InstalledOperators(ctx context.Context) ([]InstalledOperator, error) {
	return once(ctx, c, "statesOfOperators", func(ctx context.Context) ([]InstalledOperator, error) {
		resource := schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector, options.Limit = notCopied, operatorsPage
			return c.api.Dynamic.Resource(resource).List(ctx, options)
		}
		var all []InstalledOperator
		err := each(ctx, page, func(object *unstructured.Unstructured) error {
			var operator InstalledOperator
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &operator); err != nil {
				return fmt.Errorf("ClusterServiceVersion %s/%s cannot be decoded: %w", object.GetNamespace(), object.GetName(), err)
			}
			operator.Annotations = map[string]string{operatorHome: operator.Annotations[operatorHome]}
			operator.ManagedFields = nil
			all = append(all, operator)
			return nil
		})
		return all, err
	})
}

// operatorHome is the annotation with the namespace of the operator; older versions of OLM mark a copy by it alone.
const operatorHome = "olm.operatorNamespace"

// Copied is true for a copy that OLM made of another namespace's operator.
func (o InstalledOperator) Copied() bool {
	home := o.Annotations[operatorHome]
	return home != "" && home != o.Namespace
}

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

// Reporting returns the resource in a served version in which its objects have a status, preferably the storage
// version; false if there is none.
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

// Reports returns all objects of a resource with their reported status, sorted by namespace and name.
func (c *Cluster) Reports(ctx context.Context, resource schema.GroupVersionResource) ([]reported.Object, error) {
	return once(ctx, c, "reports of "+resource.String(), func(ctx context.Context) ([]reported.Object, error) {
		return listAs(ctx, c.api.Dynamic, resource, (*reported.Object).Reduce)
	})
}

// PodDisruptionBudgets returns all PodDisruptionBudgets, sorted by namespace and name. Of the labels and
// annotations, only the ones that name an operator or a Helm release are kept.
func (c *Cluster) PodDisruptionBudgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	return once(ctx, c, "budgets", func(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
		r := &reader[policyv1.PodDisruptionBudget]{cluster: c, resource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")}
		r.rules = allBut[policyv1.PodDisruptionBudget]("metadata.labels[olm.owner]", "metadata.annotations[meta.helm.sh/release-name]")
		return r.all(ctx)
	})
}
