package hosted

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/hypershift/hostedcondition"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameReconciliation = finding.NewName("HostedClusterReconciliation",
		"Whether HyperShift carries out a request: it does not update a paused HostedCluster, and does not reconcile one whose "+
			"configuration, platform or release is invalid.")
	nameControlPlane = finding.NewName("HostedControlPlane",
		"The health of the control plane according to the conditions of the HostedCluster: etcd, the API server, infrastructure and "+
			"connections. The ClusterOperators of the guest do not report it.")

	reasonReconciled = finding.NewReason("Reconciled", finding.Explanation{
		Meaning: "HyperShift reconciles the HostedCluster.",
		Cause:   "It is not paused, and its configuration is valid.",
	})
	reasonPaused = finding.NewReason("HostedClusterPaused", finding.Explanation{
		Meaning: "The HostedCluster or a NodePool is paused, so an update does not start.",
		Cause: "Its spec.pausedUntil is a time in the future, or a text that HyperShift reads as true: \"true\", \"True\", \"TRUE\", " +
			"\"t\", \"T\" or \"1\".",
		Remedy: "Remove spec.pausedUntil when the pause is no longer needed.",
	})
	reasonPauseInvalid = finding.NewReason("PauseInvalid", finding.Explanation{
		Meaning: "spec.pausedUntil is neither a boolean nor a time, so it pauses nothing.",
		Cause:   "A typing error.",
		Remedy:  "Correct spec.pausedUntil, a time in RFC 3339.",
	})
	reasonNotReconciled = finding.NewReason("NotReconciled", finding.Explanation{
		Meaning: "According to a condition of the HostedCluster, HyperShift does not reconcile it.",
		Cause:   "The message contains the condition.",
		Remedy:  "Fix the cause that the condition reports: oc get hostedcluster -o yaml.",
	})
	reasonDeleted = finding.NewReason("BeingDeleted", finding.Explanation{
		Meaning: "A HostedCluster or a NodePool is being deleted, so it is not updated.",
		Cause:   "Its metadata.deletionTimestamp is set.",
		Remedy:  "Wait until it is deleted, or choose another one.",
	})
	reasonReplaced = finding.NewReason("RefusedReleaseReplaced", finding.Explanation{
		Meaning: "HyperShift rejects, because of its version, the release that is currently requested. The request for the target " +
			"replaces it.",
		Cause:  "Another release was requested before.",
		Remedy: "Request the target, or cancel the current request.",
	})
	reasonNotObserved = finding.NewReason("SpecNotObserved", finding.Explanation{
		Meaning: "The conditions of the HostedCluster are older than its spec, so whether HyperShift reconciles it is unknown.",
		Cause: "The spec was changed a moment ago, or the hypershift-operator is not running, fails before it reports, or does not " +
			"include the HostedCluster in its scope.",
		Remedy: "Wait a moment. If the problem persists, check the log of the hypershift-operator.",
	})
	reasonControlPlaneHealthy = finding.NewReason("ControlPlaneHealthy", finding.Explanation{
		Meaning: "The conditions of the control plane are as expected.",
		Cause:   "Etcd and the API server are available.",
	})
	reasonControlPlaneUnhealthy = finding.NewReason("ControlPlaneUnhealthy", finding.Explanation{
		Meaning: "According to a condition of the HostedCluster, a part of the control plane is not working.",
		Cause:   "The message contains the condition.",
		Remedy:  "Fix the control plane before the update: check the pods in its namespace of the management cluster.",
	})
	reasonConditionMissing = finding.NewReason("ConditionMissing", finding.Explanation{
		Meaning: "The HostedCluster lacks a condition, or it is Unknown, so the health of the control plane is unknown.",
		Cause:   "The control plane was not reconciled yet, or the control-plane-operator is not running.",
		Remedy:  "Check the pods of the hypershift-operator and of the control plane.",
	})
	reasonConditionsStale = finding.NewReason("ConditionsStale", finding.Explanation{
		Meaning: "The management cluster cannot reach the guest, so the conditions that are copied from it, such as " +
			"ClusterVersionUpgradeable, may be silently out of date.",
		Cause:  "The API server of the guest or a connection is not working.",
		Remedy: "Restore the connection, then run the preflight again.",
	})
	reasonControlPlaneNotUpgradeable = finding.NewReason("ControlPlaneNotUpgradeable", finding.Explanation{
		Meaning: "The condition ControlPlaneUpgradeable of the HostedCluster is False.",
		Cause:   "The control-plane-operator reports why the control plane must not be updated.",
		Remedy:  "Fix the cause that the condition reports.",
	})
)

// reconciliationCheck is the check HostedClusterReconciliation.
func reconciliationCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameReconciliation, Kind: finding.SourceGate, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			found := judgeReconciliation(c, s.Now, s.Update.To.String())
			if len(found) == 0 {
				found = append(found, c.about(finding.Pass(gap.Proven("the HostedCluster"), reasonReconciled, "HyperShift reconciles HostedCluster %s",
					c.name())))
			}
			return found, nil
		},
	}
}

// judgeReconciliation is why HyperShift would not reconcile the HostedCluster at a time with the request
// for a version.
func judgeReconciliation(c *ControlPlane, now time.Time, version string) []finding.Finding {
	var found []finding.Finding
	if c.Cluster.DeletionTimestamp != nil {
		found = append(found, c.about(finding.Fail(reasonDeleted, "HostedCluster %s is being deleted, so it is not updated", c.name())))
	}
	noted, paused := pause("HostedCluster "+c.name(), c.Cluster.Spec.PausedUntil, now)
	if noted {
		found = append(found, c.about(paused))
	}
	for _, name := range hostedcondition.Stops() {
		stated := meta.FindStatusCondition(c.Cluster.Status.Conditions, name)
		if stated == nil || stated.Status != metav1.ConditionFalse {
			continue
		}
		if name == "ReconciliationActive" && paused.Outcome == preflight.Fail {
			continue // it repeats the pause
		}
		if name == "ValidReleaseImage" && replaced(stated.Message, version) {
			found = append(found, c.about(finding.Warn(reasonReplaced,
				"HyperShift does not reconcile HostedCluster %s until the request for %s replaces its release: %s", c.name(), version,
				inWords(stated))))
			continue
		}
		found = append(found, c.about(finding.Fail(reasonNotReconciled, "HyperShift does not reconcile HostedCluster %s: %s", c.name(),
			inWords(stated))))
	}
	return append(found, judgeObserved(c)...)
}

// judgeObserved is about a spec that HyperShift has not seen: it may be stopped, may not run, or may have another
// scope, and reports none of these.
func judgeObserved(c *ControlPlane) []finding.Finding {
	active := meta.FindStatusCondition(c.Cluster.Status.Conditions, "ReconciliationActive")
	if active == nil || active.ObservedGeneration == 0 || active.ObservedGeneration >= c.Cluster.Generation {
		return nil
	}
	return []finding.Finding{c.about(finding.Unknown(reasonNotObserved,
		"HyperShift has not reconciled the current spec of HostedCluster %s: the spec has generation %d, its conditions have "+
			"generation %d",
		c.name(), c.Cluster.Generation, active.ObservedGeneration))}
}

// replaced reports whether a release is rejected because of its version, and differs from the release of a
// request, which HyperShift then evaluates instead.
func replaced(message, version string) bool {
	refused, ok := hypershift.RefusedVersion(message)
	return ok && refused != version
}

// pause is the finding about a pause of an object; false without one. An invalid pause pauses nothing.
func pause(object, until string, now time.Time) (bool, finding.Finding) {
	paused, err := hypershift.PausedUntil(until, now)
	switch {
	case err != nil:
		return true, finding.Warn(reasonPauseInvalid, "spec.pausedUntil of %s is %q, which is neither a boolean nor a time, so it pauses nothing",
			object, words.External(until))
	case paused.Active && paused.Until.IsZero():
		return true, finding.Fail(reasonPaused, "%s is paused (spec.pausedUntil is %q), so it is not updated", object, until)
	case paused.Active:
		return true, finding.Fail(reasonPaused, "%s is paused until %s, so it is not updated before", object, words.Time(paused.Until))
	}
	return false, finding.Finding{}
}

// controlPlaneCheck is the check HostedControlPlane.
func controlPlaneCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameControlPlane, Kind: finding.SourceHealth, Side: check.Management,
		Run: func(context.Context, check.Subject) ([]finding.Finding, error) {
			found := append(unmetConditions(c), staleConditions(c)...)
			if condition := meta.FindStatusCondition(c.Cluster.Status.Conditions, "ControlPlaneUpgradeable"); condition != nil &&
				condition.Status == metav1.ConditionFalse {
				found = append(found, c.about(finding.Fail(reasonControlPlaneNotUpgradeable, "the control plane is not upgradeable: %s",
					inWords(condition))))
			}
			if len(found) == 0 {
				found = append(found, c.about(finding.Pass(gap.Proven("the HostedCluster"), reasonControlPlaneHealthy,
					"according to its conditions, the control plane of HostedCluster %s is healthy", c.name())))
			}
			return found, nil
		},
	}
}

// unmetConditions are the findings about conditions that are not as expected.
func unmetConditions(c *ControlPlane) []finding.Finding {
	var found []finding.Finding
	var unknown []string
	for _, each := range hostedcondition.OfControlPlane() {
		stated := meta.FindStatusCondition(c.Cluster.Status.Conditions, each.Condition)
		switch {
		case stated == nil && !each.Required, stated != nil && stated.Status == each.Want:
		case stated == nil || stated.Status == metav1.ConditionUnknown:
			unknown = append(unknown, each.Condition)
		default:
			found = append(found, c.about(finding.Fail(reasonControlPlaneUnhealthy, "the control plane of HostedCluster %s: %s", c.name(),
				inWords(stated))).
				Do(finding.Read("oc -n %s get pods", c.Namespace()).In(finding.Management)))
		}
	}
	if len(unknown) > 0 {
		found = append(found, c.about(finding.Unknown(reasonConditionMissing, "HostedCluster %s does not report %s", c.name(),
			words.List(unknown, len(unknown)))))
	}
	return found
}

// staleConditions is about what is copied from a guest that cannot be reached.
func staleConditions(c *ControlPlane) []finding.Finding {
	var broken []string
	for _, name := range []string{"DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable"} {
		if c.Cluster.Is(name, metav1.ConditionFalse) {
			broken = append(broken, name)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return []finding.Finding{c.about(finding.Unknown(reasonConditionsStale,
		"%s of HostedCluster %s is False, so the conditions that are copied from the guest may be out of date", strings.Join(broken, " and "),
		c.name()))}
}

// inWords is a condition in a message.
func inWords(condition *metav1.Condition) string {
	return condition.Type + " is " + words.Condition(condition.Status, words.External(condition.Reason), words.External(condition.Message))
}
