package jobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// Limits of what one Job may say.
const (
	maxFindings = 200
	maxObjects  = 50
	maxEvidence = 50
)

// said is what a container left in the SDK's form. The zero value is nothing.
type said struct {
	result preflight.Result
	found  bool
	// problem says what is wrong with what it left.
	problem string
}

// listen reads the termination message, and the log where that was read: it is
// there because the message has no result or only a part of it. A result of
// another run does not count.
func listen(run, message string, log *Log) said {
	heard := parse(run, []byte(message))
	if log == nil {
		return heard
	}
	full := parse(run, log.Text)
	if full.found && full.result.State == preflight.StateFinal || !heard.found && heard.problem == "" {
		return full
	}
	return heard
}

func parse(run string, data []byte) said {
	result, err := preflight.ParseFrame(data)
	switch {
	case errors.Is(err, preflight.ErrNoFrame):
		return said{}
	case err != nil:
		return said{problem: err.Error()}
	case result.RunID != run:
		return said{problem: fmt.Sprintf("the result is of run %q, this is run %q", result.RunID, run)}
	}
	return said{result: result, found: true}
}

func (s said) final() bool {
	return s.found && s.result.State == preflight.StateFinal
}

// complete is true when no log needs to be read: everything was said.
func (s said) complete() bool {
	return s.final() && !s.result.Truncated
}

// findings are those of a result, as the report may have them: named after the
// component, bounded, and free of what only a runner may say. A result that
// cannot be taken over whole is an error.
func findings(check launch.Check, result preflight.Result) ([]finding.Finding, error) {
	if len(result.Findings) > maxFindings {
		return nil, fmt.Errorf("it has %d findings, at most %d are taken", len(result.Findings), maxFindings)
	}
	var all []finding.Finding
	for _, f := range result.Findings {
		name := check.Prefix() + "." + f.Name
		if len(f.Name) == 0 || len(name) > 2*maxWord || !isName(name, ".-") {
			return nil, fmt.Errorf("%q is not the name of a check", words.Line(f.Name, maxWord))
		}
		all = append(all, tidy(name, f))
	}
	if len(all) == 0 {
		return nil, errors.New("it has no findings")
	}
	return all, nil
}

// tidy takes over one finding.
func tidy(name string, f preflight.Finding) finding.Finding {
	out := finding.New(f.Outcome, finding.Reason(f.Reason), "%s", words.Lines(f.Message, maxMessage)).
		Named(name).
		From(finding.SourceJob).
		Remedy("%s", words.Lines(f.Remediation, maxMessage)).
		Documented(link(f.URL))
	if !isName(f.Reason, "") || len(f.Reason) > maxWord {
		out.Reason = defaultReason(f.Outcome)
	}
	for _, object := range f.Objects[:min(maxObjects, len(f.Objects))] {
		out.Objects = append(out.Objects, preflight.Object{
			APIVersion: words.Line(object.APIVersion, maxWord), Kind: words.Line(object.Kind, maxWord),
			Namespace: words.Line(object.Namespace, maxWord), Name: words.Line(object.Name, 2*maxWord),
		})
	}
	out.Evidence = evidence(f.Evidence)
	return out
}

// isName is true for a capital letter and any number of letters, digits and
// those of more.
func isName(text, more string) bool {
	capital := func(r rune) bool { return 'A' <= r && r <= 'Z' }
	for i, r := range text {
		letter := capital(r) || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune(more, r)
		if !letter || i == 0 && !capital(r) {
			return false
		}
	}
	return text != ""
}

func defaultReason(outcome preflight.Outcome) string {
	switch outcome {
	case preflight.Pass:
		return "Passed"
	case preflight.Warn:
		return "Warned"
	case preflight.Fail:
		return "Failed"
	case preflight.Skipped:
		return "NotApplicable"
	case preflight.Unknown:
	}
	return "CouldNotTell"
}

// link is a URL that is fit to be shown as one.
func link(url string) string {
	if url = words.Line(url, maxLine); strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return url
	}
	return ""
}

// evidence takes over at most maxEvidence facts; which ones does not depend on
// the order of the map.
func evidence(facts map[string]string) map[string]string {
	if len(facts) == 0 {
		return nil
	}
	kept := map[string]string{}
	for _, key := range sortedKeys(facts)[:min(maxEvidence, len(facts))] {
		kept[words.Line(key, maxWord)] = words.Lines(facts[key], maxLine)
	}
	return kept
}
