package sample

import (
	"context"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
)

var _ = finding.Explain("An operator of OLM has a problem after the update that it did not have before.", `
BundleUnpackFailed | OLM could not unpack the bundle of its next version. | Read the conditions of the Subscription. | `+describe+`
CatalogSourcesUnhealthy | A catalog cannot be read, so OLM updates no operator of its namespace. | Read the state of the catalogs. | oc get catalogsources -A -o yaml
InstallPlanFailed | The InstallPlan of its next version has failed. | Read the InstallPlan. | oc get installplans -n NAMESPACE -o yaml
InstallPlanMissing | The InstallPlan that its Subscription names does not exist. | Read the conditions of the Subscription. | `+describe+`
NotSucceeded | Its ClusterServiceVersion has another phase than Succeeded. | Read its status. | oc describe clusterserviceversion NAME -n NAMESPACE
ResolutionFailed | OLM finds no set of operators that satisfies all dependencies. | Read the conditions of the Subscription. | `+describe+`
UpgradeFailed | OLM could not update the operator. | Read the status of the Subscription. | `+describe)

const describe = "oc describe subscription.operators.coreos.com NAME -n NAMESPACE"

// replaced are the phases of a ClusterServiceVersion that another one replaces, which has the same key (operator-framework/api
// pkg/operators/v1alpha1, CSVPhaseReplacing).
func replaced() []string { return []string{"Replacing", "Deleting"} }

// installed are the operators of OLM.
func (s *sampler) installed(ctx context.Context) {
	operators := kept(read(ctx, s, s.cluster.InstalledOperators, "ClusterServiceVersions", baseline.ClusterServiceVersion))
	for i := range operators {
		of := &operators[i]
		if of.Copied() || slices.Contains(replaced(), of.Status.Phase) {
			continue
		}
		object := baseline.Object{Detail: fact(of.Name)}
		if of.Status.Phase != "Succeeded" {
			object.Add(baseline.Problem{Reason: "NotSucceeded", Message: "its phase is " + phase(of)})
		}
		s.keep(baseline.Key{Kind: baseline.ClusterServiceVersion, Namespace: of.Namespace, Name: operatorName(of)}, object)
	}
	subscriptions := kept(read(ctx, s, s.cluster.Subscriptions, "Subscriptions", baseline.Subscription))
	for i := range subscriptions {
		of := &subscriptions[i]
		s.keep(baseline.Key{Kind: baseline.Subscription, Namespace: of.Namespace, Name: of.Name}, subscriptionOf(of))
	}
}

func phase(of *snapshot.InstalledOperator) string {
	if of.Status.Phase == "" {
		return "not set"
	}
	return clause(of.Status.Phase, clause(of.Status.Reason, of.Status.Message))
}

// operatorLabel begins the label by which OLM marks what belongs to an operator; PACKAGE.NAMESPACE follows.
const operatorLabel = "operators.coreos.com/"

// versioned matches the name of a ClusterServiceVersion, which ends with a version.
var versioned = regexp.MustCompile(`^(.+?)\.v?[0-9]`)

// operatorName is the name of an operator without its version.
func operatorName(of *snapshot.InstalledOperator) string {
	var names []string
	for label := range of.Labels {
		qualified, ok := strings.CutPrefix(label, operatorLabel)
		if name, own := strings.CutSuffix(qualified, "."+of.Namespace); ok && own && name != "" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return slices.Min(names)
	}
	if match := versioned.FindStringSubmatch(of.Name); match != nil {
		return match[1]
	}
	return of.Name
}

// faults are the conditions of a Subscription that are True while OLM does not update the operator (package health/subscription).
func faults() []string {
	return []string{"ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed", "InstallPlanMissing", "CatalogSourcesUnhealthy"}
}

// upgradeFailed is a state of a Subscription (operator-framework/api pkg/operators/v1alpha1, SubscriptionStateFailed).
const upgradeFailed = "UpgradeFailed"

func subscriptionOf(of *snapshot.Subscription) baseline.Object {
	object := baseline.Object{Generation: of.Generation}
	for _, each := range of.Status.Conditions {
		if each.Status == corev1.ConditionTrue && slices.Contains(faults(), each.Type) {
			object.Add(condition{each.Type, string(each.Status), each.Reason, each.Message, each.LastTransitionTime}.problem(each.Type))
		}
	}
	if of.Status.State == upgradeFailed {
		object.Add(baseline.Problem{Reason: upgradeFailed, Message: "the update of the operator has failed"})
	}
	return object
}
