package risk

import (
	"cmp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type assessment struct {
	// applies is empty where the cluster has no assessment.
	applies         metav1.ConditionStatus
	reason, message string
}

func (a assessment) ofAlert() bool { return strings.HasPrefix(a.reason, "Alert:") }

// rank orders contradictory assessments: the first one counts.
func (a assessment) rank() int {
	switch a.applies {
	case metav1.ConditionTrue:
		return 0
	case metav1.ConditionFalse:
		return 2
	case metav1.ConditionUnknown:
	}
	return 1
}

// conditions are where the cluster publishes its assessments for one update.
type conditions struct {
	update    configv1.ConditionalUpdate
	published map[string]configv1.ConditionalUpdateRisk
	// generation is the generation of the spec; a condition of an earlier one is out of date.
	generation int64
	// accepts is true when the spec accepts risks: then the condition of the update
	// does not determine which of its risks apply.
	accepts bool
}

// of is the assessment of a risk: its condition Applies, where the feature set has
// it, otherwise what the condition Recommended of the update implies.
func (c conditions) of(risk configv1.ConditionalUpdateRisk) assessment {
	var found []assessment
	for _, holder := range []configv1.ConditionalUpdateRisk{risk, c.published[risk.Name]} {
		if condition := c.find(holder.Conditions, "Applies"); condition != nil {
			found = append(found, assessment{condition.Status, condition.Reason, condition.Message})
		}
	}
	if len(found) == 0 {
		return c.recommended(risk)
	}
	return slices.MinFunc(found, func(a, b assessment) int { return a.rank() - b.rank() })
}

// recommended is what the condition of the update implies for one risk: nothing where that is ambiguous.
func (c conditions) recommended(risk configv1.ConditionalUpdateRisk) assessment {
	condition := c.find(c.update.Conditions, "Recommended")
	if condition == nil {
		return assessment{}
	}
	implied := assessment{reason: condition.Reason, message: condition.Message}
	switch condition.Status {
	case metav1.ConditionTrue:
		if condition.Reason != "AllExposedRisksAccepted" {
			implied.applies = metav1.ConditionFalse
		}
	case metav1.ConditionFalse:
		implied.applies = c.exposed(risk, condition)
	case metav1.ConditionUnknown:
		implied.applies = cmp.Or(c.listed(risk, condition.Message), metav1.ConditionUnknown)
	}
	return implied
}

// exposed is what Recommended=False implies: its reason names a single risk, its message lists all that apply.
func (c conditions) exposed(risk configv1.ConditionalUpdateRisk, condition *metav1.Condition) metav1.ConditionStatus {
	named := func(other configv1.ConditionalUpdateRisk) bool { return other.Name == condition.Reason }
	several := slices.Contains([]string{"MultipleReasons", "ExposedToRisks", "EvaluationFailed"}, condition.Reason)
	switch listed := c.listed(risk, condition.Message); {
	case condition.Reason == risk.Name:
		return metav1.ConditionTrue
	case several || listed == metav1.ConditionTrue || listed == metav1.ConditionUnknown:
		return listed
	case !c.accepts && slices.ContainsFunc(c.update.Risks, named):
		return metav1.ConditionFalse
	}
	return ""
}

// listed is what the message of Recommended implies for one risk. CVO lists every
// risk of the update that applies or could not be evaluated, and no other, in the
// order of the update (pkg/cvo/availableupdates.go, evaluateConditionalUpdate). It
// is empty where the risk is not listed, and either the message has other text too
// or risks that apply were accepted, which CVO does not list.
func (c conditions) listed(risk configv1.ConditionalUpdateRisk, message string) metav1.ConditionStatus {
	switch {
	case hasBlock(message, applying(risk)):
		return metav1.ConditionTrue
	case strings.Contains(message, unevaluated(risk).start), strings.Contains(message, formerlyUnevaluated(risk).start):
		return metav1.ConditionUnknown
	case c.accepts || !listsOnly(message, c.update.Risks):
		return ""
	}
	return metav1.ConditionFalse
}

// find returns a condition that is not out of date, or nil.
func (c conditions) find(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i, condition := range conditions {
		if condition.Type != kind {
			continue
		}
		if condition.ObservedGeneration != 0 && condition.ObservedGeneration < c.generation {
			return nil
		}
		return &conditions[i]
	}
	return nil
}

// separator is between the texts of risks in the message of Recommended.
const separator = "\n\n"

func applying(risk configv1.ConditionalUpdateRisk) string { return risk.Message + " " + risk.URL }

// unknownText is the text of a risk that could not be evaluated; the error is between start and end.
type unknownText struct{ start, end string }

// unevaluated is the text since 4.14.
func unevaluated(risk configv1.ConditionalUpdateRisk) unknownText {
	return unknownText{
		start: "Could not evaluate exposure to update risk " + risk.Name + " (",
		end:   ")\n  " + risk.Name + " description: " + risk.Message + "\n  " + risk.Name + " URL: " + risk.URL,
	}
}

// formerlyUnevaluated is the text up to 4.13. It ends with that of a risk that applies.
func formerlyUnevaluated(risk configv1.ConditionalUpdateRisk) unknownText {
	return unknownText{
		start: "Exposure to " + risk.Name + " is unknown due to an evaluation failure: ",
		end:   "\n" + applying(risk),
	}
}

// hasBlock reports whether the message has a text that separators enclose.
func hasBlock(message, text string) bool {
	return strings.Contains(separator+message+separator, separator+text+separator)
}

// listsOnly reports whether the message is a list of these risks and nothing else.
func listsOnly(message string, risks []configv1.ConditionalUpdateRisk) bool {
	rest := message + separator
	for _, risk := range risks {
		rest = withoutRisk(rest, risk)
	}
	return message != "" && rest == ""
}

// withoutRisk is a list without its first text, where that is about the risk.
func withoutRisk(list string, risk configv1.ConditionalUpdateRisk) string {
	if rest, ok := strings.CutPrefix(list, applying(risk)+separator); ok {
		return rest
	}
	for _, text := range []unknownText{unevaluated(risk), formerlyUnevaluated(risk)} {
		failed, ok := strings.CutPrefix(list, text.start)
		if !ok {
			continue
		}
		if _, rest, ended := strings.Cut(failed, text.end+separator); ended {
			return rest
		}
	}
	return list
}
