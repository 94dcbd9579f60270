package payload

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxName bounds the name of a finding, below the 256 that ClusterVersion has
// for the names of risks.
const maxName = 200

// problem is what is said about a manifest, without where it stands.
type problem struct {
	outcome                      preflight.Outcome
	reason, message, remediation string
	// annotation is the one that the problem is about, line its line in the
	// file; "" and 0 when it is about the whole object.
	annotation string
	line       int
}

func fail(reason, message, remediation string) *problem {
	return &problem{outcome: preflight.Fail, reason: reason, message: message, remediation: remediation}
}

func warn(reason, message, remediation string) *problem {
	return &problem{outcome: preflight.Warn, reason: reason, message: message, remediation: remediation}
}

// at makes a finding of what is said about a place in a file. One that fails
// blocks, and so does one that could not be told.
func (p *problem) at(file string, place place) finding.Finding {
	f := finding.Finding{Finding: preflight.Finding{
		Name:        problemName(file),
		Outcome:     p.outcome,
		Reason:      p.reason,
		Message:     oneLine(file) + ": " + p.message,
		Remediation: p.remediation,
		Evidence:    map[string]string{"file": oneLine(file)},
	}, Source: finding.SourcePayload, Blocks: p.outcome == preflight.Fail || p.outcome == preflight.Unknown}
	if p.annotation != "" {
		f.Evidence["annotation"] = oneLine(p.annotation)
	}
	if p.line > 0 {
		place.line = p.line
	}
	if place.number > 0 {
		f.Evidence["document"] = strconv.Itoa(place.number)
		f.Evidence["line"] = strconv.Itoa(place.line)
		f.Message = oneLine(file) + ", document " + strconv.Itoa(place.number) + " (line " + strconv.Itoa(place.line) + "): " + p.message
	}
	return f
}

// problemName makes the name of a finding of the name of a file:
// 0000_50_cloud-credential_preflight.yaml is Payload.CloudCredentialPreflight.
func problemName(file string) string {
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

// component returns the part of the file's name that names the component that
// ships it (cluster-version-operator pkg/payload/task_graph.go), or all of it
// but the extension where it has another form.
func component(file string) string {
	match := regexp.MustCompile(`^0000_(\d+)_([a-zA-Z0-9]+(-[a-zA-Z0-9]+)*?)_`).FindStringSubmatch(file)
	if match == nil {
		return strings.TrimSuffix(file, path.Ext(file))
	}
	return match[2]
}
