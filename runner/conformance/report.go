package conformance

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
)

// Kind is the kind of the document.
const Kind = "PreflightConformance"

// Report is the results for all checks of a manifest, each check's results in the same order.
type Report struct {
	Results []requirement.Result `json:"results"`
}

// Outcome is Fail when a check violates a requirement, else Unknown when one
// could not be tested, else Pass. A report without results is Unknown.
func (r Report) Outcome() preflight.Outcome {
	out := preflight.Pass
	if len(r.Results) == 0 {
		return preflight.Unknown
	}
	for _, result := range r.Results {
		switch result.Outcome {
		case preflight.Fail:
			return preflight.Fail
		case preflight.Unknown:
			out = preflight.Unknown
		case preflight.Pass, preflight.Warn, preflight.Skipped:
		}
	}
	return out
}

func (r Report) verdict() document.Verdict {
	switch r.Outcome() {
	case preflight.Pass:
		return document.Verdict{Mark: document.Mark{Level: document.Good, Word: "Conforms"}, Meaning: "the check can be shipped."}
	case preflight.Fail:
		return document.Verdict{Mark: document.Mark{Level: document.Bad, Word: "Does not conform"}, Meaning: "do not ship the check."}
	case preflight.Unknown, preflight.Warn, preflight.Skipped:
	}
	return document.Verdict{Mark: document.Mark{Level: document.Unclear, Word: "Undecided"}, Meaning: "not all requirements could be tested."}
}

func (r Report) headline() string { return r.verdict().Word + ": " + r.verdict().Meaning }

// Document is the conclusion, the results for each check, those that need attention first, and
// the conclusion again.
func (r Report) Document(document.View) document.Document {
	made := document.Document{Title: "Conformance of checks", Source: "The JSON document has all data.", Blocks: []document.Block{r.verdict()}}
	for rest := r.Results; len(rest) > 0; {
		check := rest[0].Check
		end := slices.IndexFunc(rest, func(result requirement.Result) bool { return result.Check != check })
		if end < 0 {
			end = len(rest)
		}
		made.Blocks = append(made.Blocks, document.Section{Title: check, Blocks: blocksOf(rest[:end])})
		rest = rest[end:]
	}
	made.Blocks = append(made.Blocks, document.Paragraph{Text: r.headline()})
	return made
}

func blocksOf(results []requirement.Result) []document.Block {
	var items document.Items
	table := document.Table{Title: "Requirements", Columns: []string{"Outcome", "Requirement", "Result"}}
	for _, result := range results {
		outcome := strings.ToUpper(string(result.Outcome))
		if result.Outcome == preflight.Pass || result.Outcome == preflight.Skipped {
			table.Rows = append(table.Rows, []string{outcome, result.Requirement, result.Message})
			continue
		}
		level := map[preflight.Outcome]document.Level{preflight.Fail: document.Bad, preflight.Unknown: document.Unclear, preflight.Warn: document.Caution}[result.Outcome]
		items.Entries = append(items.Entries, document.Item{
			Mark: document.Mark{Level: level, Word: outcome}, Names: []string{result.Requirement}, State: "(" + result.Reason + ")",
			Counts: result.Outcome != preflight.Warn, Message: result.Message, Remedy: result.Remediation,
		})
	}
	return []document.Block{items, table}
}

// MarshalJSON implements json.Marshaler: the outcome is included. HTML characters are not escaped.
func (r Report) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		APIVersion string               `json:"apiVersion"`
		Kind       string               `json:"kind"`
		Outcome    preflight.Outcome    `json:"outcome"`
		Results    []requirement.Result `json:"results"`
	}{report.APIVersion, Kind, r.Outcome(), append([]requirement.Result{}, r.Results...)})
	return text.Bytes(), err
}

// JUnit has a test case for each requirement, and one for the outcome, so that a report
// without results does not pass.
func (r Report) JUnit() junit.Results {
	var cases []junit.Case
	for _, result := range r.Results {
		text := strings.TrimSpace(result.Message + "\n" + result.Remediation)
		if result.Outcome == preflight.Warn {
			text = "warning: " + text
		}
		cases = append(cases, junit.Case{
			Suite: result.Check, Class: result.Check, Name: result.Requirement, Outcome: result.Outcome, Type: result.Reason,
			Message: result.Message, Text: text,
		})
	}
	outcome := r.Outcome()
	return junit.Results{Cases: append(cases, junit.Case{
		Suite: "conformance", Class: "conformance", Name: "Outcome", Outcome: outcome, Type: string(outcome), Message: r.headline(), Text: r.headline(),
	})}
}
