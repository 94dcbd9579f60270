// Package health answers: is the cluster in a state in which an update can complete?
//
// [Checks] returns the checks that the managed-upgrade-operator (MUO) makes before it starts an update, for any
// cluster: operators, nodes, obstacles to draining nodes, reserved capacity, external dependencies (package
// dependency), and the window of an UpgradeConfig. Other checks find out whether the update can make its own
// requests (package deadlock), whether a migration of the cluster is in progress (package migration), which
// problems objects of the platform report (package platform), and which configuration of users changes how the
// platform is updated (packages intrusion and mirrors). Critical alerts, which MUO checks too, are among the risks
// (package risk).
//
// The findings may be accepted by name. They concern all updates: patch updates reboot nodes too. Differences from
// MUO:
//
//   - An operator without the conditions Available and Degraded is Unknown. MUO
//     treats it as healthy.
//   - All nodes are checked, not only workers: a control plane that cannot be
//     scheduled to prevents its own guards from moving.
//   - A PodDisruptionBudget is evaluated by its status, unless that is out of date. MUO
//     evaluates spec.maxUnavailable of the first violation.
//   - A dependency that redirects is reachable. MUO requires 200.
package health

import (
	"cmp"
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health/certificate"
	"github.com/openshift/update-preflight/collector/health/deadlock"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/health/intrusion"
	"github.com/openshift/update-preflight/collector/health/migration"
	"github.com/openshift/update-preflight/collector/health/mirrors"
	"github.com/openshift/update-preflight/collector/health/platform"
	"github.com/openshift/update-preflight/collector/health/subscription"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Checks are all checks of the cluster's health. A new one is added here. Checks of
// many updates may share the dependencies, so that each is probed once for all.
func Checks(dependencies *dependency.Set) []check.Check {
	return []check.Check{
		ClusterOperators(),
		Nodes(),
		migration.Check(),
		draining.Check(),
		Capacity(),
		dependency.Check(dependencies),
		UpgradeWindow(),
		deadlock.Webhooks(),
		deadlock.Policies(),
		certificate.Authorities(),
		certificate.Secrets(),
		certificate.PausedPools(),
		subscription.Check(),
		EtcdQuorum(),
		platform.Check(),
		mirrors.Check(),
		intrusion.PlatformPods(),
		RollingUpdates(),
	}
}

const (
	// maxNamed bounds the objects in one message.
	maxNamed = 5
	// maxQuoted bounds a text of the cluster in a message, in bytes.
	maxQuoted = 1024
)

var (
	nameUnavailable = finding.NewName("ClusterOperatorUnavailable",
		"ClusterOperators that are not Available.")

	nameDegraded = finding.NewName("ClusterOperatorDegraded", "ClusterOperators that are Degraded.")

	nameClusterOperatorHealth = finding.NewName("ClusterOperatorHealth",
		"Checks for ClusterOperators that are not Available, or Degraded. Each has a finding ClusterOperatorUnavailable-<name> or, if "+
			"it is available, ClusterOperatorDegraded-<name>, with the operator's own reason. If the condition is absent or Unknown, "+
			"the finding of that name is Unknown. The preflight's own ClusterOperator does not count. It concerns every update of "+
			"every OpenShift cluster.")

	reasonUnavailable = finding.NewReason("Unavailable", finding.Explanation{
		Meaning: "A ClusterOperator is not available, and gives no reason of its own.",
		Cause:   "The condition Available is False.",
		Remedy:  "Fix the cause in the message: `oc describe clusteroperator NAME`.",
	})
	reasonDegraded = finding.NewReason("Degraded", finding.Explanation{
		Meaning: "A ClusterOperator is degraded, and gives no reason of its own.",
		Cause:   "The condition Degraded is True.",
		Remedy:  "Fix the cause in the message: `oc describe clusteroperator NAME`.",
	})
	reasonNoConditions = finding.NewReason("NoConditions", finding.Explanation{
		Meaning: "A ClusterOperator has no conditions, so its state is unknown.",
		Cause:   "The operator has not started yet, or is not running.",
		Remedy:  "Check that the operator is running: `oc describe clusteroperator NAME`.",
	})
	reasonNotReported = finding.NewReason("NotReported", finding.Explanation{
		Meaning: "A condition of a ClusterOperator is absent or Unknown, without a reason of its own.",
		Cause:   "The operator could not determine its state.",
		Remedy:  "Check that the operator is running: `oc describe clusteroperator NAME`.",
	})
)

// ClusterOperators is the check ClusterOperatorHealth.
func ClusterOperators() check.Check {
	return check.Check{
		Name: nameClusterOperatorHealth, Kind: finding.SourceHealth,
		Reads: append(check.ReadsTopology(), check.List(configv1.GroupName, "clusteroperators")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			ctx, missing := gap.Watch(ctx)
			operators, err := s.Cluster.ClusterOperators(ctx)
			if err == nil && len(operators) == 0 {
				err = missing.Err()
			}
			if apierrors.IsNotFound(err) || (err == nil && len(operators) == 0) {
				return s.WithoutAPI(ctx, "ClusterOperators", configv1.GroupName)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the ClusterOperators: %w", err)
			}
			return judgeOperators(gap.ExtentOf(ctx), operators), nil
		},
	}
}

func judgeOperators(read gap.Extent, operators []configv1.ClusterOperator) []finding.Finding {
	var findings []finding.Finding
	others := len(operators)
	for i := range operators {
		f, ok := judgeOperator(&operators[i])
		switch {
		case operators[i].Name == ownsignal.ClusterOperator:
			others--
		case ok:
			findings = append(findings, f.
				Do(finding.Read("oc describe clusteroperator %s", operators[i].Name)).
				About(finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator", Name: operators[i].Name}))
		}
	}
	if len(findings) == 0 {
		return []finding.Finding{finding.Pass(read, check.ReasonAsExpected, "all %d ClusterOperators are Available=True and Degraded=False",
			others)}
	}
	return finding.Bounded(finding.Drafts(findings...))
}

// judgeOperator returns the worst finding of an operator, whose message has the
// others too; false for a healthy one.
func judgeOperator(operator *configv1.ClusterOperator) (finding.Finding, bool) {
	available, degraded := operatorCondition(operator, configv1.OperatorAvailable), operatorCondition(operator, configv1.OperatorDegraded)
	unavailableName, degradedName := nameUnavailable+"-"+operator.Name, nameDegraded+"-"+operator.Name
	message := fmt.Sprintf("ClusterOperator %q is %s", operator.Name, describeCondition(available))
	if available.Status == configv1.ConditionTrue {
		message = fmt.Sprintf("ClusterOperator %q is %s", operator.Name, describeCondition(degraded))
	} else if degraded.Status != configv1.ConditionFalse {
		message += ". It is " + describeCondition(degraded)
	}
	const fix, inspect = "Fix the cause in the operator's message.", "Check that the operator is running, and read its conditions."
	switch {
	case available.Status == configv1.ConditionFalse:
		return finding.Fail(reasonOf(available, reasonUnavailable), "%s", message).Named(unavailableName).Remedy(fix), true
	case degraded.Status == configv1.ConditionTrue:
		return finding.Fail(reasonOf(degraded, reasonDegraded), "%s", message).Named(degradedName).Remedy(fix), true
	case len(operator.Status.Conditions) == 0:
		return finding.Unknown(reasonNoConditions, "ClusterOperator %q has no conditions, so its state is unknown", operator.Name).
			Named(unavailableName).Remedy(inspect), true
	case available.Status != configv1.ConditionTrue:
		return finding.Unknown(reasonOf(available, reasonNotReported), "%s", message).Named(unavailableName).Remedy(inspect), true
	case degraded.Status != configv1.ConditionFalse:
		return finding.Unknown(reasonOf(degraded, reasonNotReported), "%s", message).Named(degradedName).Remedy(inspect), true
	}
	return finding.Finding{}, false
}

// reasonOf is the operator's own reason, or the default.
func reasonOf(condition configv1.ClusterOperatorStatusCondition, byDefault finding.Reason) finding.Reason {
	return cmp.Or(finding.ReportedReason(condition.Reason), byDefault)
}

func describeCondition(condition configv1.ClusterOperatorStatusCondition) string {
	if condition.Status == "" {
		return fmt.Sprintf("without the condition %s, so its state is unknown", condition.Type)
	}
	return fmt.Sprintf("%s=%s: %s", condition.Type, condition.Status, cmp.Or(words.Line(condition.Message, maxQuoted), "no message"))
}

// operatorCondition returns a condition; its status is empty where there is none.
func operatorCondition(operator *configv1.ClusterOperator,
	kind configv1.ClusterStatusConditionType,
) configv1.ClusterOperatorStatusCondition {
	for _, condition := range operator.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{Type: kind}
}

var (
	nameEtcdQuorum = finding.NewName("EtcdQuorum",
		"Checks for a highly available control plane of two nodes. It concerns every update: patch updates reboot nodes, too.")

	reasonTwoMembers = finding.NewReason("TwoControlPlaneNodes", finding.Explanation{
		Meaning: "A control plane whose topology is HighlyAvailable has only two nodes, so etcd loses its quorum when the update " +
			"reboots one of them.",
		Cause: "A node of the control plane was deleted or never added, for instance with " +
			"useUnsupportedUnsafeNonHANonProductionUnstableEtcd in spec.unsupportedConfigOverrides of the Etcd \"cluster\". Two " +
			"members of etcd have no quorum while one of them reboots, so the API server does not respond either (etcd.io, FAQ: \"What " +
			"is failure tolerance?\").",
		Remedy:  "Add the third node of the control plane, and wait until etcd has three members.",
		Command: "oc get nodes -l node-role.kubernetes.io/master",
	})
)

// quorate is the least number of members of etcd of which one may be down.
const quorate = 3

// EtcdQuorum is the check EtcdQuorum. Two nodes with an arbiter, or with fencing, have topologies of their own.
func EtcdQuorum() check.Check {
	return check.Check{
		Name: nameEtcdQuorum, Kind: finding.SourceHealth, NotHosted: "its etcd runs in the management cluster",
		Reads: append(check.ReadsTopology(), check.List("", "nodes")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.Kubernetes {
				return []finding.Finding{check.PlainKubernetes("a topology of the control plane")}, nil
			}
			infrastructure, err := s.Cluster.Infrastructure(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
			}
			ctx, missing := gap.Watch(ctx)
			nodes, err := s.Cluster.Nodes(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the nodes: %w", err)
			}
			f := judgeQuorum(gap.ExtentOf(ctx), infrastructure.Status.ControlPlaneTopology, nodes)
			if err := missing.Err(); f.Blocks && err != nil { // an archive may lack the third node
				return nil, err
			}
			return []finding.Finding{f}, nil
		},
	}
}

func judgeQuorum(read gap.Extent, topology configv1.TopologyMode, nodes []corev1.Node) finding.Finding {
	var members []string
	for i := range nodes {
		_, master := nodes[i].Labels["node-role.kubernetes.io/master"]
		_, controlPlane := nodes[i].Labels["node-role.kubernetes.io/control-plane"]
		if master || controlPlane {
			members = append(members, nodes[i].Name)
		}
	}
	if topology != configv1.HighlyAvailableTopologyMode || len(members) != quorate-1 {
		return finding.Pass(read, check.ReasonAsExpected, "the control plane has %s, with the topology %s", words.Count(len(members), "node"),
			words.External(string(topology)))
	}
	return finding.Fail(reasonTwoMembers, "the control plane has the topology HighlyAvailable and two nodes, %s: while one of them "+
		"reboots, etcd has no quorum and the API server does not respond",
		words.List(members, maxNamed)).
		Remedy("Add the third node of the control plane, and wait until etcd has three members, then update.").
		Do(finding.Read("oc get nodes -l node-role.kubernetes.io/master"), finding.Read("oc get etcds.operator.openshift.io cluster -o yaml"))
}
