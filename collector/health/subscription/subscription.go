// Package subscription answers: which operators has OLM not updated as requested, and which catalogs can it not
// read?
//
// None of these problems stops the cluster-version operator, so all of them are warnings. The requirements of the
// next minor version are the gate IncompatibleOperator.
package subscription

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameSubscriptions = finding.NewName("Subscriptions",
		"Checks for operators that OLM has not updated as requested, and for catalogs that it cannot read. Each has a finding "+
			"Subscription-<namespace>.<name>, ClusterServiceVersion-<namespace>.<name> or CatalogSource-<namespace>.<name>. It "+
			"concerns every update and every release, and warns. It makes 2 requests, and 1 for 10 operators. The rules are the "+
			"conditions that OLM sets (operator-lifecycle-manager pkg/controller/operators/catalog).")

	nameSubscription = finding.NewName("Subscription",
		"An operator, found by the check Subscriptions: Subscription-<namespace>.<name>.")
	nameOperator = finding.NewName("ClusterServiceVersion",
		"A version of an operator, found by the check Subscriptions: ClusterServiceVersion-<namespace>.<name>.")
	nameCatalogSource = finding.NewName("CatalogSource",
		"A catalog, found by the check Subscriptions: CatalogSource-<namespace>.<name>.")

	reasonApprovalRequired = finding.NewReason("InstallPlanRequiresApproval", finding.Explanation{
		Meaning: "The update of an operator waits for approval.",
		Cause: "Its Subscription has spec.installPlanApproval Manual. Meanwhile OLM creates no other InstallPlan for the namespace, so " +
			"it does not install a version that supports the target either (operator-lifecycle-manager#1871).",
		Remedy: "Check that the new version of the operator supports both the current release and the target, and approve the " +
			"InstallPlan before the update: `oc -n NAMESPACE patch installplan NAME --type merge -p '{\"spec\":{\"approved\":true}}'`.",
	})
	reasonOperatorNotUpdated = finding.NewReason("OperatorNotUpdated", finding.Explanation{
		Meaning: "OLM cannot update an operator: a failure condition of its Subscription is True.",
		Cause: "The dependencies of an operator in its namespace cannot be resolved, which blocks the whole namespace; its bundle " +
			"cannot be unpacked; its InstallPlan has failed or is missing; or a catalog is not healthy.",
		Remedy:  "Fix the cause that the condition reports.",
		Command: "oc -n NAMESPACE describe subscriptions.operators.coreos.com NAME",
	})
	reasonOperatorUpdating = finding.NewReason("OperatorUpdating", finding.Explanation{
		Meaning: "An operator is being installed or replaced, or its installation has failed.",
		Cause: "Its ClusterServiceVersion has a phase other than Succeeded, or its Subscription updates it to a ClusterServiceVersion " +
			"that does not exist yet. OLM of the target continues from that state, while OLM itself is updated.",
		Remedy:  "Wait until the new ClusterServiceVersion has the phase Succeeded. If it does not, check why.",
		Command: "oc -n NAMESPACE get clusterserviceversions.operators.coreos.com",
	})
	reasonCatalogNotReady = finding.NewReason("CatalogNotReady", finding.Explanation{
		Meaning: "OLM has no connection to a CatalogSource.",
		Cause: "Its pod is not running, for example because its image cannot be pulled. OLM neither updates nor installs operators in " +
			"the namespaces that use it.",
		Remedy:  "Repair the CatalogSource, or disable it if this cluster cannot reach it.",
		Command: "oc -n NAMESPACE get catalogsources.operators.coreos.com,pods",
	})
	reasonOperatorsUpdated = finding.NewReason("OperatorsUpdated", finding.Explanation{
		Meaning: "OLM has updated all operators as their Subscriptions request, and can read all catalogs.",
		Cause:   "No condition and no state reports a problem.",
	})
	reasonNoSubscriptions = finding.NewReason("NoOLM", finding.Explanation{
		Meaning: "The cluster has no Subscriptions of OLM.",
		Cause:   "OLM is not installed, or only its successor, which has no Subscriptions.",
	})
)

const (
	group = "operators.coreos.com"
	// maxText bounds a message of OLM, in bytes.
	maxText = 512
)

// Check is the check Subscriptions.
func Check() check.Check {
	return check.Check{
		Name: nameSubscriptions, Kind: finding.SourceHealth,
		Reads: append(check.ReadsTopology(), check.List(group, "subscriptions"), check.List(group, "catalogsources"),
			check.List(group, "clusterserviceversions")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			subscriptions, err := s.Cluster.Subscriptions(ctx)
			if apierrors.IsNotFound(err) {
				return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonNoSubscriptions,
					"the cluster has no Subscriptions, so OLM updates no operators")}, nil
			}
			if err != nil {
				return check.Unread("Subscriptions", err), ctx.Err()
			}
			catalogs, err := s.Cluster.CatalogSources(ctx)
			if err != nil && !apierrors.IsNotFound(err) {
				return check.Unread("CatalogSources", err), ctx.Err()
			}
			operators, err := s.Cluster.InstalledOperators(ctx)
			if err != nil && !apierrors.IsNotFound(err) {
				return check.Unread("ClusterServiceVersions", err), ctx.Err()
			}
			return evaluate(gap.ExtentOf(ctx), state{subscriptions, catalogs, operators}), nil
		},
	}
}

type state struct {
	subscriptions []snapshot.Subscription
	catalogs      []snapshot.CatalogSource
	operators     []snapshot.InstalledOperator
}

func evaluate(read gap.Extent, s state) []finding.Finding {
	found := slices.Concat(each(s.catalogs, judgeCatalog), each(s.subscriptions, judgeSubscription), each(s.operators, judgeOperator))
	if len(found) == 0 {
		return []finding.Finding{finding.Pass(read, reasonOperatorsUpdated, "OLM has updated the operators of all %s, and can read all %s",
			words.Count(len(s.subscriptions), "Subscription"), words.Count(len(s.catalogs), "CatalogSource"))}
	}
	return finding.Bounded(finding.Drafts(found...))
}

func each[T any](all []T, evaluate func(*T) (finding.Finding, bool)) []finding.Finding {
	var found []finding.Finding
	for i := range all {
		if f, ok := evaluate(&all[i]); ok {
			found = append(found, f)
		}
	}
	return found
}

// judgeOperator is false for an operator that runs.
func judgeOperator(operator *snapshot.InstalledOperator) (finding.Finding, bool) {
	status := operator.Status
	if operator.Copied() || status.Phase == "Succeeded" {
		return finding.Finding{}, false
	}
	return finding.Warn(reasonOperatorUpdating, "ClusterServiceVersion %s/%s has the phase %s", operator.Namespace, operator.Name,
		words.Condition(words.Line(status.Phase, maxText), words.Line(status.Reason, maxText), words.Line(status.Message, maxText))).
		Named(finding.NameOf(nameOperator, operator.Namespace+"."+operator.Name)).
		Do(finding.Read("oc -n %s describe clusterserviceversions.%s %s", operator.Namespace, group, operator.Name)).
		About(object("ClusterServiceVersion", operator.Namespace, operator.Name)), true
}

// judgeCatalog is false for a catalog that can be read. A connection that is idle is made again when it is used.
func judgeCatalog(catalog *snapshot.CatalogSource) (finding.Finding, bool) {
	connection := catalog.Status.ConnectionState
	if connection == nil || slices.Contains([]string{"", "READY", "IDLE"}, connection.LastObservedState) {
		return finding.Finding{}, false
	}
	return finding.Warn(reasonCatalogNotReady,
		"OLM has no connection to CatalogSource %s/%s, whose state is %s: it updates no operator from it",
		catalog.Namespace, catalog.Name, words.Line(connection.LastObservedState, maxText)).
		Named(finding.NameOf(nameCatalogSource, catalog.Namespace+"."+catalog.Name)).
		Do(finding.Read("oc -n %s get catalogsources.%s,pods", catalog.Namespace, group)).
		About(object("CatalogSource", catalog.Namespace, catalog.Name)), true
}

// faults are conditions that are True while OLM does not update an operator; the first one counts. Deprecated and
// BundleUnpacking are none.
func faults() []string {
	return []string{"ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed", "InstallPlanMissing", "CatalogSourcesUnhealthy"}
}

// judgeSubscription is false for an operator that is at the version to which OLM updates it.
func judgeSubscription(subscription *snapshot.Subscription) (finding.Finding, bool) {
	f, ok := stateOf(subscription)
	if !ok {
		return finding.Finding{}, false
	}
	return f.Named(finding.NameOf(nameSubscription, subscription.Namespace+"."+subscription.Name)).
		About(object("Subscription", subscription.Namespace, subscription.Name)), true
}

func stateOf(subscription *snapshot.Subscription) (finding.Finding, bool) {
	status := subscription.Status
	name := subscription.Namespace + "/" + subscription.Name
	describe := finding.Read("oc -n %s describe subscriptions.%s %s", subscription.Namespace, group, subscription.Name)
	plan := status.InstallPlanRef
	reason, _, pending := condition(subscription, "InstallPlanPending")
	waits := pending && reason == "RequiresApproval" || subscription.Spec.InstallPlanApproval == "Manual" && status.State == "UpgradePending"
	if waits && plan != nil {
		return finding.Warn(reasonApprovalRequired, "the operator of Subscription %s waits for the approval of InstallPlan %s, which updates %s",
			name, plan.Name, step(status.InstalledCSV, status.CurrentCSV)).
			Do(finding.Read("oc -n %s get installplans.%s %s -o yaml", subscription.Namespace, group, plan.Name),
				finding.Change(`oc -n %s patch installplans.%s %s --type merge -p {"spec":{"approved":true}}`, subscription.Namespace, group,
					plan.Name)), true
	}
	for _, fault := range faults() {
		if reason, message, ok := condition(subscription, fault); ok {
			return finding.Warn(reasonOperatorNotUpdated, "OLM cannot update the operator of Subscription %s: %s=%s",
				name, fault, words.Condition(corev1.ConditionTrue, words.Line(reason, maxText), words.Line(message, maxText))).Do(describe), true
		}
	}
	if status.CurrentCSV != "" && status.CurrentCSV != status.InstalledCSV {
		return finding.Warn(reasonOperatorUpdating, "the operator of Subscription %s is being replaced%s: %s",
			name, words.Aside(words.Line(status.State, maxText)), step(status.InstalledCSV, status.CurrentCSV)).
			Do(finding.Read("oc -n %s get clusterserviceversions.%s", subscription.Namespace, group), describe), true
	}
	return finding.Finding{}, false
}

// condition is false where the condition is not True.
func condition(subscription *snapshot.Subscription, kind string) (reason, message string, ok bool) {
	for _, each := range subscription.Status.Conditions {
		if each.Type == kind && each.Status == corev1.ConditionTrue {
			return each.Reason, each.Message, true
		}
	}
	return "", "", false
}

func step(from, to string) string {
	if from == "" {
		return "nothing to " + words.Line(to, maxText)
	}
	return fmt.Sprintf("%s to %s", words.Line(from, maxText), words.Line(to, maxText))
}

func object(kind, namespace, name string) finding.Object {
	return finding.Object{APIVersion: group + "/v1alpha1", Kind: kind, Namespace: namespace, Name: name}
}
