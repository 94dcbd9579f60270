package risk

import (
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statement is what the cluster says of one risk of one update.
type statement struct {
	// applies is empty where the cluster says nothing of it.
	applies metav1.ConditionStatus
	// reason and text are as the cluster has them.
	reason, text string
}

// records are where the cluster says what it found.
type records struct {
	update    configv1.ConditionalUpdate
	published map[string]configv1.ConditionalUpdateRisk
	// generation is that of the spec; a condition of an older one is not current.
	generation int64
	// accepts is whether the spec accepts risks: then the cluster's word on the
	// update as a whole does not tell which of its risks apply.
	accepts bool
}

// of reads what the cluster says of a risk: from its condition Applies, where
// the feature set has it, or else from what Recommended says of the update.
func (r records) of(risk configv1.ConditionalUpdateRisk) statement {
	var said []statement
	for _, holder := range []configv1.ConditionalUpdateRisk{risk, r.published[risk.Name]} {
		if condition := r.find(holder.Conditions, "Applies"); condition != nil {
			said = append(said, statement{condition.Status, condition.Reason, condition.Message})
		}
	}
	if len(said) == 0 {
		return r.recommended(risk)
	}
	return slices.MinFunc(said, func(a, b statement) int { return a.rank() - b.rank() })
}

// rank has first what counts where the cluster contradicts itself.
func (s statement) rank() int {
	switch s.applies {
	case metav1.ConditionTrue:
		return 0
	case metav1.ConditionFalse:
		return 2
	case metav1.ConditionUnknown:
	}
	return 1
}

// recommended reads the condition of the update, which is about all its risks:
// only what can mean one thing is taken for an answer.
func (r records) recommended(risk configv1.ConditionalUpdateRisk) statement {
	condition := r.find(r.update.Conditions, "Recommended")
	if condition == nil {
		return statement{}
	}
	said := statement{reason: condition.Reason, text: condition.Message}
	switch condition.Status {
	case metav1.ConditionTrue:
		if condition.Reason != "AllExposedRisksAccepted" {
			said.applies = metav1.ConditionFalse
		}
	case metav1.ConditionFalse:
		said.applies = r.exposed(risk, condition)
	case metav1.ConditionUnknown:
		said.applies = metav1.ConditionUnknown
	}
	return said
}

// exposed reads a Recommended=False. Its reason is the name of the risk where
// one alone applies, and its message has the text of every risk that does.
func (r records) exposed(risk configv1.ConditionalUpdateRisk, condition *metav1.Condition) metav1.ConditionStatus {
	named := func(other configv1.ConditionalUpdateRisk) bool { return other.Name == condition.Reason }
	switch {
	case condition.Reason == risk.Name, strings.Contains(condition.Message, risk.Message+" "+risk.URL):
		return metav1.ConditionTrue
	case slices.Contains([]string{"MultipleReasons", "ExposedToRisks", "EvaluationFailed"}, condition.Reason):
		return ""
	case !r.accepts && slices.ContainsFunc(r.update.Risks, named):
		return metav1.ConditionFalse
	}
	return ""
}

// find returns a condition, if it is current.
func (r records) find(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i, condition := range conditions {
		if condition.Type != kind {
			continue
		}
		if condition.ObservedGeneration != 0 && condition.ObservedGeneration < r.generation {
			return nil
		}
		return &conditions[i]
	}
	return nil
}
