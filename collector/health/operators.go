package health

import (
	"cmp"
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameUnavailable = finding.NewName("ClusterOperatorUnavailable",
		"The findings about ClusterOperators that are not Available.")

	nameDegraded = finding.NewName("ClusterOperatorDegraded", "The findings about ClusterOperators that are Degraded.")

	nameClusterOperatorHealth = finding.NewName("ClusterOperatorHealth",
		"The check for ClusterOperators that are not Available, or Degraded: a finding "+
			"ClusterOperatorUnavailable-<name> for each or, where it is available, ClusterOperatorDegraded-<name>, "+
			"with the operator's own reason. An operator whose condition is absent or Unknown is Unknown by the same "+
			"name. The preflight's own ClusterOperator does not count. It concerns every update of every OpenShift cluster.")

	reasonUnavailable = finding.NewReason("Unavailable", finding.Explanation{
		Meaning: "Reported when a ClusterOperator is not available, and gives no reason of its own.",
		Cause:   "The condition Available is False.",
		Remedy:  "Fix what the message names: `oc describe clusteroperator NAME`.",
	})
	reasonDegraded = finding.NewReason("Degraded", finding.Explanation{
		Meaning: "Reported when a ClusterOperator is degraded, and gives no reason of its own.",
		Cause:   "The condition Degraded is True.",
		Remedy:  "Fix what the message names: `oc describe clusteroperator NAME`.",
	})
	reasonNoConditions = finding.NewReason("NoConditions", finding.Explanation{
		Meaning: "Reported when a ClusterOperator has no conditions, so that its state is unknown.",
		Cause:   "The operator has not started yet, or does not run.",
		Remedy:  "Check that the operator runs: `oc describe clusteroperator NAME`.",
	})
	reasonNotReported = finding.NewReason("NotReported", finding.Explanation{
		Meaning: "Reported when a condition of a ClusterOperator is absent or Unknown, without a reason of its own.",
		Cause:   "The operator could not determine its state.",
		Remedy:  "Check that the operator runs: `oc describe clusteroperator NAME`.",
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
		return []finding.Finding{finding.Pass(read, check.ReasonAsExpected, "all %d ClusterOperators are Available=True and Degraded=False", others)}
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
	const fix, inspect = "Fix what the operator's message names.", "Check that the operator runs, and read its conditions."
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
func operatorCondition(operator *configv1.ClusterOperator, kind configv1.ClusterStatusConditionType) configv1.ClusterOperatorStatusCondition {
	for _, condition := range operator.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{Type: kind}
}
