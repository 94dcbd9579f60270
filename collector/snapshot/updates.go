package snapshot

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// ConditionalUpdates are an index of those in ClusterVersion: hundreds are possible,
// and every target searches them.
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

// UpgradeConfigs are all UpgradeConfigs, sorted by namespace and name. Where the API
// is not served, the error is NotFound, also without permission to read it.
func (c *Cluster) UpgradeConfigs(ctx context.Context) ([]UpgradeConfig, error) {
	return once(ctx, c, "upgradeConfigs", func(ctx context.Context) ([]UpgradeConfig, error) {
		resource := schema.GroupVersionResource{Group: "upgrade.managed.openshift.io", Version: "v1alpha1", Resource: "upgradeconfigs"}
		configs, err := listAs(ctx, c.api.Dynamic, resource, func(*UpgradeConfig) {})
		if !apierrors.IsForbidden(err) {
			return configs, err
		}
		// The API server checks permissions first, and most clusters do not have the
		// API. Every user may list the served APIs.
		_, unserved := discovery.ToServerResourcesInterfaceWithContext(c.api.Kubernetes.Discovery()).ServerResourcesForGroupVersionWithContext(ctx, resource.GroupVersion().String())
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
	return List[Subscription](ctx, c, schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "subscriptions"})
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
	return List[CatalogSource](ctx, c, schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "catalogsources"})
}

// InstalledOperator is a ClusterServiceVersion with its state.
type InstalledOperator struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		// Phase is Succeeded where the operator runs.
		Phase   string `json:"phase"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"status"`
}

// operatorsPage is the number of ClusterServiceVersions that are read at a time: each has hundreds of kilobytes.
const operatorsPage = 10

// InstalledOperators are the ClusterServiceVersions that are no copies, sorted by namespace and name. Their content is
// dropped page by page.
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
