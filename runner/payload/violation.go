package payload

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxName bounds the name of a finding, below the limit of 256 of ClusterVersion
// for names of risks.
const maxName = 200

const toAuthors = "Report it to the authors of the component: "

// violation is a broken rule or an unmet filter of a manifest, without its place.
type violation struct {
	outcome              preflight.Outcome
	reason               finding.Reason
	message, remediation string
	actions              []finding.Action
	// annotation is the affected annotation, line its line in the
	// file; "" and 0 when the whole object is affected.
	annotation string
	line       int
}

func fail(reason finding.Reason, message, remediation string, actions ...finding.Action) *violation {
	return &violation{outcome: preflight.Fail, reason: reason, message: message, remediation: remediation, actions: actions}
}

func warn(reason finding.Reason, message, remediation string, actions ...finding.Action) *violation {
	return &violation{outcome: preflight.Warn, reason: reason, message: message, remediation: remediation, actions: actions}
}

// at is the finding for a violation at a place in a file. Fail and Unknown
// block.
func (v *violation) at(file string, place place) finding.Finding {
	message := words.External(file) + ": " + v.message
	evidence := map[string]string{"file": words.External(file)}
	if v.annotation != "" {
		evidence["annotation"] = words.External(v.annotation)
	}
	if v.line > 0 {
		place.line = v.line
	}
	if place.number > 0 {
		evidence["document"] = strconv.Itoa(place.number)
		evidence["line"] = strconv.Itoa(place.line)
		message = words.External(file) + ", document " + strconv.Itoa(place.number) + " (line " + strconv.Itoa(place.line) + "): " + v.message
	}
	return finding.New(v.outcome, v.reason, "%s", message).Named(findingName(file)).From(finding.SourcePayload).
		Remedy("%s", v.remediation).Do(v.actions...).Observed(evidence)
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

// component returns the part of the file's name that identifies the component that
// ships it (cluster-version-operator pkg/payload/task_graph.go), or the name
// without extension if it has another form.
func component(file string) string {
	match := regexp.MustCompile(`^0000_(\d+)_([a-zA-Z0-9]+(-[a-zA-Z0-9]+)*?)_`).FindStringSubmatch(file)
	if match == nil {
		return strings.TrimSuffix(file, path.Ext(file))
	}
	return match[2]
}
