package health

import (
	"cmp"
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ClusterOperators looks for operators that are Degraded or not Available: one
// finding for each, ClusterOperatorUnavailable-<name> or, where it is available,
// ClusterOperatorDegraded-<name>. An operator that does not say so is Unknown
// by the same name. It does not matter to the check where the control plane
// runs.
func ClusterOperators() check.Check {
	return check.Check{
		Name: "ClusterOperatorHealth", Kind: finding.SourceHealth,
		Reads: []access.Request{check.List("config.openshift.io", "clusteroperators"), check.Get("config.openshift.io", "infrastructures", "", "cluster")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			operators, err := s.Cluster.ClusterOperators(ctx)
			if apierrors.IsNotFound(err) || (err == nil && len(operators) == 0) {
				return apiMissing(ctx, s.Cluster, "ClusterOperators", configv1.GroupName)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the ClusterOperators: %w", err)
			}
			return judgeOperators(operators), nil
		},
	}
}

func judgeOperators(operators []configv1.ClusterOperator) []finding.Finding {
	var problems []problem
	for i := range operators {
		if outcome, f := judgeOperator(&operators[i]); outcome != preflight.Pass {
			f.Objects = []preflight.Object{{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator", Name: operators[i].Name}}
			problems = append(problems, problem{outcome, func() finding.Finding { return f }})
		}
	}
	if len(problems) == 0 {
		return []finding.Finding{finding.Pass(ReasonAsExpected, "all ClusterOperators, %d of them, are Available=True and Degraded=False", len(operators))}
	}
	return told(problems)
}

// judgeOperator says the worst of an operator, and the rest with it.
func judgeOperator(operator *configv1.ClusterOperator) (preflight.Outcome, finding.Finding) {
	available, degraded := operatorCondition(operator, configv1.OperatorAvailable), operatorCondition(operator, configv1.OperatorDegraded)
	unavailableName, degradedName := "ClusterOperatorUnavailable-"+operator.Name, "ClusterOperatorDegraded-"+operator.Name
	message := fmt.Sprintf("ClusterOperator %q is %s", operator.Name, saying(available))
	if available.Status == configv1.ConditionTrue {
		message = fmt.Sprintf("ClusterOperator %q is %s", operator.Name, saying(degraded))
	} else if degraded.Status != configv1.ConditionFalse {
		message += ". It is " + saying(degraded)
	}
	mend := fmt.Sprintf("Put right what the operator complains about: oc describe clusteroperator %s", operator.Name)
	wait := fmt.Sprintf("See whether the operator runs, and what it says: oc describe clusteroperator %s", operator.Name)
	switch {
	case available.Status == configv1.ConditionFalse:
		return preflight.Fail, finding.Finding{Finding: preflight.Finding{
			Name:        unavailableName,
			Reason:      cmp.Or(available.Reason, "Unavailable"),
			Message:     message,
			Remediation: mend,
		}}
	case degraded.Status == configv1.ConditionTrue:
		return preflight.Fail, finding.Finding{Finding: preflight.Finding{
			Name:        degradedName,
			Reason:      cmp.Or(degraded.Reason, "Degraded"),
			Message:     message,
			Remediation: mend,
		}}
	case len(operator.Status.Conditions) == 0:
		return preflight.Unknown, finding.Finding{Finding: preflight.Finding{
			Name:        unavailableName,
			Reason:      "NoConditions",
			Remediation: wait,
			Message:     fmt.Sprintf("ClusterOperator %q has no conditions, so nobody can tell how it is", operator.Name),
		}}
	case available.Status != configv1.ConditionTrue:
		return preflight.Unknown, finding.Finding{Finding: preflight.Finding{
			Name:        unavailableName,
			Reason:      cmp.Or(available.Reason, "NotReported"),
			Message:     message,
			Remediation: wait,
		}}
	case degraded.Status != configv1.ConditionFalse:
		return preflight.Unknown, finding.Finding{Finding: preflight.Finding{
			Name:        degradedName,
			Reason:      cmp.Or(degraded.Reason, "NotReported"),
			Message:     message,
			Remediation: wait,
		}}
	}
	return preflight.Pass, finding.Finding{}
}

// saying is what a condition says, in the operator's own words.
func saying(condition configv1.ClusterOperatorStatusCondition) string {
	if condition.Status == "" {
		return fmt.Sprintf("without the condition %s, so nobody can tell", condition.Type)
	}
	return fmt.Sprintf("%s=%s: %s", condition.Type, condition.Status, cmp.Or(short(condition.Message), "it does not say why"))
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
