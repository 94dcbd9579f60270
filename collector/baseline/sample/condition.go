package sample

import (
	"cmp"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/words"
)

// condition is what conditions of all APIs have in common.
type condition struct {
	Type               string      `json:"type"`
	Status             string      `json:"status"`
	Reason             string      `json:"reason"`
	Message            string      `json:"message"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

const (
	conditionTrue  = string(metav1.ConditionTrue)
	conditionFalse = string(metav1.ConditionFalse)
)

// conditions are those of one object.
type conditions []condition

// of is a condition by its type; that of no status where it is absent.
func (c conditions) of(kind string) condition {
	for _, each := range c {
		if each.Type == kind {
			return each
		}
	}
	return condition{Type: kind}
}

// problem is what a condition states, as a problem with a reason. A message says the status where there is no other text.
func (c condition) problem(reason string) baseline.Problem {
	message := cmp.Or(clause(c.Reason, c.Message), c.Type+" is "+cmp.Or(words.External(c.Status), "absent"))
	return baseline.Problem{Reason: reason, Since: at(c.LastTransitionTime), Message: message}
}

// since is since when the condition has a status; zero where it has another.
func (c condition) since(status string) time.Time {
	if c.Status != status {
		return time.Time{}
	}
	return at(c.LastTransitionTime)
}

func conditionsOf[T any](all []T, convert func(T) condition) conditions {
	converted := make(conditions, 0, len(all))
	for _, each := range all {
		converted = append(converted, convert(each))
	}
	return converted
}

func ofOperator(c configv1.ClusterOperatorStatusCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofPool(c machineconfigurationv1.MachineConfigPoolCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofNode(c corev1.NodeCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofDeployment(c appsv1.DeploymentCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofStandard(c metav1.Condition) condition {
	return condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}
