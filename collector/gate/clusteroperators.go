package gate

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

const ReasonUnexplained finding.Reason = "Unexplained"

const (
	ReasonUpgradeable finding.Reason = "Upgradeable"
	ReasonAPIMissing  finding.Reason = "APIMissing"
)

// ClusterOperators is the gate that an operator shuts with Upgradeable=False:
// one finding for each. It keeps from leaving the minor version. By the API's
// own words (ClusterOperator status.conditions, OperatorUpgradeable) what is
// missing, True or Unknown does not: Unknown is a warning, but for the reason
// NoData, with which operators say that they have nothing to say.
func ClusterOperators() check.Check {
	return check.Check{
		Name: "ClusterOperatorUpgradeable", Kind: finding.SourceGate,
		Reads: append(clusterVersionReads(), check.List("config.openshift.io", "clusteroperators")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			var minor string
			findings, err := onClusterVersion(func(s situation) []finding.Finding {
				minor = s.minor()
				if s.move.LeavesMinor() {
					return nil
				}
				return s.notLeaving("Upgradeable=False of a ClusterOperator")
			})(ctx, s)
			if err != nil || len(findings) > 0 {
				return findings, err
			}
			operators, err := s.Cluster.ClusterOperators(ctx)
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

func judgeOperators(operators []configv1.ClusterOperator, minor string) []finding.Finding {
	var findings []finding.Finding
	for i := range operators {
		if f, ok := judgeOperator(&operators[i], minor); ok {
			findings = append(findings, f)
		}
	}
	if len(findings) > 0 {
		return findings
	}
	return []finding.Finding{finding.Pass(ReasonUpgradeable, "none of %s says Upgradeable=False", count(len(operators), "ClusterOperator"))}
}

// judgeOperator judges one operator; false means that it has nothing against
// the update.
func judgeOperator(operator *configv1.ClusterOperator, minor string) (finding.Finding, bool) {
	condition := upgradeableOf(operator)
	message := fmt.Sprintf("ClusterOperator %q reports Upgradeable=%s: %s", operator.Name, condition.Status, either(condition.Message, "without a message"))
	reason := finding.Reason(either(condition.Reason, string(ReasonUnexplained)))
	inspect := finding.Run("oc get clusteroperator %s -o yaml", operator.Name)
	var f finding.Finding
	switch {
	case condition.Status == configv1.ConditionFalse:
		f = finding.Fail(reason, "%s\nThis blocks updates to another minor version than %s.", message, minor).
			Remedy("Do what the operator's message asks for, then check the condition.").Do(inspect, finding.Force())
	case condition.Status == configv1.ConditionUnknown && condition.Reason != "NoData":
		f = finding.Warn(reason, "%s", message).
			Remedy("CVO accepts the update, but the operator could not determine whether it is safe. Check the operator.").Do(inspect)
	default:
		return finding.Finding{}, false
	}
	return f.Named("ClusterOperatorUpgradeable-" + operator.Name).
		About(finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator", Name: operator.Name}), true
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
func noClusterOperators() []finding.Finding {
	return []finding.Finding{finding.Unknown(ReasonAPIMissing,
		"the cluster does not serve ClusterOperators, so nobody can tell what its operators have against the update").
		Remedy("See whether the API is there: oc get crd clusteroperators.config.openshift.io")}
}
