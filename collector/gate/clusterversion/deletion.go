package clusterversion

import (
	"cmp"
	"regexp"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/measure"
)

var (
	nameResourceDeletionInProgress = finding.NewName("ResourceDeletionInProgress",
		"The gate that is closed while CVO deletes objects that the release no longer has (pkg/risk/deletion). It "+
			"concerns updates to another minor or major version. CVO publishes the list only in a condition of "+
			"ClusterVersion: UpgradeableDeletesInProgress up to 4.22, and a part of Upgradeable since.")

	reasonResourceDeletesInProgress = finding.NewReason("ResourceDeletesInProgress", finding.Explanation{
		Meaning: "Reported while CVO deletes objects that the release no longer has. Until then the cluster cannot leave " +
			"its minor version.",
		Cause:   "Most often a finalizer keeps one of the objects.",
		Remedy:  "Wait. If the deletion does not end, check what keeps the objects, most likely a finalizer.",
		Command: "oc get KIND NAME -o yaml",
	})
	reasonEvaluationFailed = finding.NewReason("EvaluationFailed", finding.Explanation{
		Meaning: "Reported when CVO could not evaluate whether the cluster can be updated.",
		Cause:   "An error of CVO, which its log has.",
		Remedy:  "Read the log of CVO: `oc -n openshift-cluster-version logs deployment/cluster-version-operator`.",
	})
	reasonNothingDeleted = finding.NewReason("NothingDeleted", finding.Explanation{
		Meaning: "Reported when CVO is not deleting objects.",
		Cause:   "No condition of ClusterVersion reports a deletion.",
	})
)

// Deletion is the check ResourceDeletionInProgress.
func Deletion() check.Check {
	return check.Check{
		Name: nameResourceDeletionInProgress, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeDeletion)),
	}
}

var (
	// deletions is the message of all releases of CVO since 4.9.
	deletions = regexp.MustCompile(`not allowed while resource deletions are in progress; resources=([^\n]*)`)
	// deleted is one object in that message.
	deleted = regexp.MustCompile(`([a-zA-Z0-9.]+) "(?:([a-z0-9.-]+)/)?([A-Za-z0-9.:_-]+)"`)
)

func judgeDeletion(s situation) []finding.Finding {
	m := s.measure()
	if m.Effect == measure.None || m.Effect == measure.Warns {
		return s.notConcerned("a deletion in progress")
	}
	return m.Apply([]finding.Finding{s.deletion(m.Within)})
}

func (s situation) deletion(minor string) finding.Finding {
	own, all := s.condition("UpgradeableDeletesInProgress"), s.condition(configv1.OperatorUpgradeable)
	resources := deletions.FindStringSubmatch(own.Message + "\n" + all.Message)
	switch {
	case own.Status == configv1.ConditionFalse || (all.Status == configv1.ConditionFalse && resources != nil):
		f := finding.Fail(reasonResourceDeletesInProgress,
			"CVO is deleting objects that the release no longer has, and until then the cluster cannot leave %s: %s", minor, cmp.Or(own.Message, all.Message))
		if resources != nil {
			f = f.Observed(map[string]string{"resources": resources[1]}).Do(inspectDeleted(resources[1])...)
		}
		return f
	case all.Status == configv1.ConditionUnknown:
		if s.update.LeavesMinor() { // one cause is one finding
			return finding.Skipped(s.read, reasonEvaluationFailed,
				"the condition Upgradeable of ClusterVersion, in which CVO reports deletions in progress, is Unknown: see the finding ClusterVersionUpgradeable")
		}
		return finding.Unknown(reasonEvaluationFailed,
			"the condition Upgradeable of ClusterVersion, in which CVO reports deletions in progress, is Unknown").
			Remedy("Check what CVO could not evaluate.").Do(cvoLog())
	}
	return finding.Pass(s.read, reasonNothingDeleted, "ClusterVersion reports no deletion in progress")
}

// inspectDeleted are the commands that print the first few of the objects in CVO's message.
func inspectDeleted(resources string) []finding.Action {
	const most = 5
	var actions []finding.Action
	for _, object := range deleted.FindAllStringSubmatch(resources, most) {
		kind, namespace, name := strings.ToLower(object[1]), object[2], object[3]
		actions = append(actions, finding.Read("oc get %s %s -o yaml", kind, name).Namespaced(namespace))
	}
	return actions
}

func cvoLog() finding.Action {
	return finding.Read("oc -n openshift-cluster-version logs deployment/cluster-version-operator")
}
