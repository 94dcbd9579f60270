package risk

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"
)

// separator is between the texts of risks in the message of Recommended.
const separator = "\n\n"

// applying is the text of a risk that applies.
func applying(risk configv1.ConditionalUpdateRisk) string { return risk.Message + " " + risk.URL }

// unknownText is the text of a risk that could not be evaluated; the error is
// between start and end.
type unknownText struct{ start, end string }

// unevaluated is the text since 4.14.
func unevaluated(risk configv1.ConditionalUpdateRisk) unknownText {
	return unknownText{
		start: "Could not evaluate exposure to update risk " + risk.Name + " (",
		end:   ")\n  " + risk.Name + " description: " + risk.Message + "\n  " + risk.Name + " URL: " + risk.URL,
	}
}

// formerlyUnevaluated is the text up to 4.13. It ends with that of a risk that
// applies.
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
