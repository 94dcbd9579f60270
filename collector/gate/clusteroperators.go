package gate

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ClusterOperators is the gate that an operator shuts with Upgradeable=False:
// one finding for each. It keeps from leaving the minor version. By the API's
// own words (ClusterOperator status.conditions, OperatorUpgradeable) what is
// missing, True or Unknown does not: Unknown is a warning, but for the reason
// NoData, with which operators say that they have nothing to say.
func ClusterOperators(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "ClusterOperatorUpgradeable", Kind: preflight.SourceGate, Update: u,
		Look: func(ctx context.Context) ([]preflight.Finding, error) {
			var minor string
			findings, err := onClusterVersion(cluster, u, func(s situation) []preflight.Finding {
				minor = s.minor()
				if s.move.LeavesMinor() {
					return nil
				}
				return s.notLeaving("Upgradeable=False of a ClusterOperator")
			})(ctx)
			if err != nil || len(findings) > 0 {
				return findings, err
			}
			operators, err := cluster.ClusterOperators(ctx)
			if apierrors.IsNotFound(err) {
				return noClusterOperators(), nil
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the ClusterOperators: %w", err)
			}
			return judgeOperators(operators, minor), nil
		},
	}
}

func judgeOperators(operators []configv1.ClusterOperator, minor string) []preflight.Finding {
	var findings []preflight.Finding
	for i := range operators {
		if finding, ok := judgeOperator(&operators[i], minor); ok {
			findings = append(findings, finding)
		}
	}
	if len(findings) > 0 {
		return findings
	}
	return []preflight.Finding{{
		Outcome: preflight.Pass, Reason: "Upgradeable",
		Message: fmt.Sprintf("none of %s says Upgradeable=False", count(len(operators), "ClusterOperator")),
	}}
}

// judgeOperator judges one operator; false means that it has nothing against
// the update.
func judgeOperator(operator *configv1.ClusterOperator, minor string) (preflight.Finding, bool) {
	condition := upgradeableOf(operator)
	finding := preflight.Finding{
		Name: "ClusterOperatorUpgradeable-" + operator.Name, Reason: either(condition.Reason, "Unexplained"),
		Message: fmt.Sprintf("ClusterOperator %q says Upgradeable=%s: %s", operator.Name, condition.Status, either(condition.Message, "it does not say why")),
		Objects: []preflight.Object{{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator", Name: operator.Name}},
	}
	switch {
	case condition.Status == configv1.ConditionFalse:
		finding.Outcome = preflight.Fail
		finding.Message += fmt.Sprintf("\nThat blocks updates that leave %s, and none within it.", minor)
		finding.Remediation = fmt.Sprintf("Do what the operator's message asks for, then see whether it is satisfied: oc get clusteroperator %s -o yaml. "+
			"Accepting risks does not get past it, only --force does.", operator.Name)
		return finding, true
	case condition.Status == configv1.ConditionUnknown && condition.Reason != "NoData":
		finding.Outcome = preflight.Warn
		finding.Remediation = fmt.Sprintf("CVO lets the update pass, but the operator could not tell whether it is safe; see why: oc get clusteroperator %s -o yaml", operator.Name)
		return finding, true
	}
	return preflight.Finding{}, false
}

func upgradeableOf(operator *configv1.ClusterOperator) configv1.ClusterOperatorStatusCondition {
	for _, condition := range operator.Status.Conditions {
		if condition.Type == configv1.OperatorUpgradeable {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{}
}

// noClusterOperators is for a cluster that has a ClusterVersion, but not the
// API of the operators that it is made of.
func noClusterOperators() []preflight.Finding {
	return []preflight.Finding{{
		Outcome: preflight.Unknown, Reason: "APIMissing",
		Message:     "the cluster does not serve ClusterOperators, so nobody can tell what its operators have against the update",
		Remediation: "See whether the API is there: oc get crd clusteroperators.config.openshift.io",
	}}
}
