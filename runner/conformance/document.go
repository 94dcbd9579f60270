package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/junit"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxLine bounds one text of the report, in bytes.
const maxLine = 4 << 10

// headline is the conclusion of the report.
func (r Report) headline() string {
	switch r.Outcome() {
	case preflight.Pass:
		return "Conforms: the check can be shipped."
	case preflight.Fail:
		return "Does not conform: do not ship the check."
	case preflight.Unknown, preflight.Warn, preflight.Skipped:
	}
	return "Undecided: not all requirements could be tested."
}

// WriteText writes the results as text.
func (r Report) WriteText(w io.Writer) error {
	var page bytes.Buffer
	check := ""
	for _, result := range r.Results {
		if result.Check != check {
			check = result.Check
			fmt.Fprintf(&page, "%s\n", words.Line(check, maxLine))
		}
		fmt.Fprintf(&page, "  %-8s %-19s %s\n", strings.ToUpper(string(result.Outcome)), result.Requirement, words.Line(result.Message, maxLine))
		if result.Outcome != preflight.Pass && result.Remediation != "" {
			fmt.Fprintf(&page, "  %28s Fix: %s\n", "", words.Line(result.Remediation, maxLine))
		}
	}
	fmt.Fprintf(&page, "\n%s\n", r.headline())
	_, err := w.Write(page.Bytes())
	return err
}

// MarshalJSON implements json.Marshaler: the outcome is included.
// HTML characters are not escaped.
func (r Report) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Outcome    preflight.Outcome `json:"outcome"`
		Results    []Result          `json:"results"`
	}{report.APIVersion, Kind, r.Outcome(), append([]Result{}, r.Results...)})
	return text.Bytes(), err
}

// WriteJUnit writes a test case for each requirement, and one for the outcome, so that a
// report without results does not pass.
func (r Report) WriteJUnit(w io.Writer) error {
	var cases []junit.Case
	for _, result := range r.Results {
		text := strings.TrimSpace(result.Message + "\n" + result.Remediation)
		if result.Outcome == preflight.Warn {
			text = "warning: " + text
		}
		cases = append(cases, junit.Case{
			Suite: result.Check, Class: result.Check, Name: result.Requirement, Outcome: result.Outcome, Type: string(result.Reason),
			Message: result.Message, Text: text,
		})
	}
	outcome := r.Outcome()
	return junit.Write(w, "", nil, append(cases, junit.Case{
		Suite: "conformance", Class: "conformance", Name: "Outcome", Outcome: outcome, Type: string(outcome), Message: r.headline(), Text: r.headline(),
	}))
}
