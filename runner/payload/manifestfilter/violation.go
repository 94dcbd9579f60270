package manifestfilter

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload/manifestdoc"
)

// maxName bounds the name of a finding, below the limit of 256 of ClusterVersion for names of risks.
const maxName = 200

// ToAuthors begins the remedy of a defect of a manifest.
const ToAuthors = "Report it to the authors of the component: "

// Violation is a broken rule or an unmet filter of a manifest, without its place.
type Violation struct {
	Outcome              preflight.Outcome
	Reason               finding.Reason
	Message, Remediation string
	Actions              []finding.Action
	// Annotation is the affected annotation, line its line in the file; "" and 0 when the whole object is affected.
	Annotation string
	Line       int
}

// Fail returns a violation for which the manifest is not applied.
func Fail(reason finding.Reason, message, remediation string, actions ...finding.Action) *Violation {
	return &Violation{Outcome: preflight.Fail, Reason: reason, Message: message, Remediation: remediation, Actions: actions}
}

// Warn returns a violation that does not block.
func Warn(reason finding.Reason, message, remediation string, actions ...finding.Action) *Violation {
	return &Violation{Outcome: preflight.Warn, Reason: reason, Message: message, Remediation: remediation, Actions: actions}
}

// At is the finding for a violation at a place in a file. Fail and Unknown block.
func (v *Violation) At(file string, place manifestdoc.Place) finding.Finding {
	message := words.External(file) + ": " + v.Message
	evidence := map[string]string{"file": words.External(file)}
	if v.Annotation != "" {
		evidence["annotation"] = words.External(v.Annotation)
	}
	if v.Line > 0 {
		place.Line = v.Line
	}
	if place.Number > 0 {
		evidence["document"] = strconv.Itoa(place.Number)
		evidence["line"] = strconv.Itoa(place.Line)
		message = words.External(file) + ", document " + strconv.Itoa(place.Number) + " (line " + strconv.Itoa(place.Line) + "): " + v.Message
	}
	return finding.Reported(gap.Proven("the annotations of the manifest"), v.Outcome, v.Reason, "%s", message).Named(findingName(file)).From(finding.SourcePayload).
		Remedy("%s", v.Remediation).Do(v.Actions...).Observed(evidence)
}

// findingName derives the name of a finding from the name of a file:
// 0000_50_cloud-credential_preflight.yaml is Payload.CloudCredentialPreflight.
func findingName(file string) string {
	stem := strings.TrimSuffix(file, path.Ext(file))
	stem = regexp.MustCompile(`^0000_\d+_`).ReplaceAllString(stem, "")
	words := strings.FieldsFunc(stem, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, word := range words {
		words[i] = strings.ToUpper(word[:1]) + word[1:]
	}
	name := strings.TrimSuffix("Payload."+strings.Join(words, ""), ".")
	return name[:min(len(name), maxName)]
}

// Component returns the part of the file's name that identifies the component that
// ships it (cluster-version-operator pkg/payload/task_graph.go), or the name
// without extension if it has another form.
func Component(file string) string {
	match := regexp.MustCompile(`^0000_(\d+)_([a-zA-Z0-9]+(-[a-zA-Z0-9]+)*?)_`).FindStringSubmatch(file)
	if match == nil {
		return strings.TrimSuffix(file, path.Ext(file))
	}
	return match[2]
}
