// Package explain answers: what does a reason or the name of a finding mean, and
// what is there to do?
//
// The entries are generated from the comments of the source code.
package explain

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain/source"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
)

//go:generate go run ./generate

//go:embed entries.json
var generated []byte

// Directories lists the directories of the module whose packages make findings.
func Directories() []string { return []string{"collector", "runner", "signature"} }

// Entries are all entries, sorted by name.
func Entries() ([]source.Entry, error) {
	var entries []source.Entry
	if err := json.Unmarshal(generated, &entries); err != nil {
		return nil, fmt.Errorf("the built-in documentation cannot be read: %w", err)
	}
	return entries, nil
}

// UnknownError is the error for a word that is neither a reason nor the name of a
// built-in finding.
type UnknownError struct {
	Word string
	// Similar are words that contain it or differ in case only.
	Similar []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%q is neither a reason nor a finding of this tool", e.Word)
	if len(e.Similar) > 0 {
		const most = 10
		return text + "; similar are " + words.List(e.Similar, most)
	}
	return text + "; the check of an operator and the reason of a condition are documented by the operator"
}

// Kind is the kind in the JSON and YAML documents of one explanation and of the list.
const Kind = "PreflightExplanation"

// Page is the entries for one word.
type Page struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Entries []source.Entry `json:"entries"`
}

// Index is a list of entries.
type Index struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Entries []source.Entry `json:"entries"`
}

// All is the list of all entries.
func All(entries []source.Entry) Index {
	return Index{APIVersion: report.APIVersion, Kind: Kind, Entries: entries}
}

// Document is the names of the findings, then those of the reasons.
func (x Index) Document(document.View) document.Document {
	table := document.Table{Title: "Findings and reasons", Columns: []string{"Name", "Kind", "Package"}}
	for _, kind := range []string{source.KindFinding, source.KindReason} {
		for _, entry := range x.Entries {
			if entry.Kind == kind {
				table.Rows = append(table.Rows, []string{entry.Name, entry.Kind, entry.Package})
			}
		}
	}
	return document.Document{Title: "Findings and their reasons", Blocks: []document.Block{table}}
}

// Find returns the entries of a word: exactly that one, or for a finding such as
// AdminAck-ack-4.18 the entry of AdminAck. The name of a finding about a webhook is the kind of
// its configuration and the reason. The error is an *UnknownError.
func Find(entries []source.Entry, word string) (Page, error) {
	for name := word; ; {
		found := named(entries, name)
		for _, kind := range []string{"Validating", "Mutating"} {
			if reason, ok := strings.CutPrefix(name, kind); ok && len(found) == 0 {
				found = named(entries, reason)
			}
		}
		if len(found) > 0 {
			return Page{APIVersion: report.APIVersion, Kind: Kind, Entries: found}, nil
		}
		dash := strings.LastIndex(name, "-")
		if dash < 0 {
			return Page{}, &UnknownError{Word: word, Similar: similar(entries, word)}
		}
		name = name[:dash]
	}
}

func named(entries []source.Entry, name string) []source.Entry {
	var found []source.Entry
	for _, entry := range entries {
		if strings.EqualFold(entry.Name, name) {
			found = append(found, entry)
		}
	}
	return found
}

func similar(entries []source.Entry, word string) []string {
	var names []string
	for _, entry := range entries {
		if strings.Contains(strings.ToLower(entry.Name), strings.ToLower(word)) {
			names = append(names, entry.Name)
		}
	}
	return slices.Compact(names)
}

// Document is each entry with its meaning, cause and remedy.
func (p Page) Document(document.View) document.Document {
	made := document.Document{Title: "What a finding means"}
	for _, entry := range p.Entries {
		var about document.Table
		about.Row("Cause", entry.Cause)
		about.Row("Remedy", entry.Remedy)
		made.Blocks = append(made.Blocks, document.Section{
			Title:  fmt.Sprintf("%s (%s of %s)", entry.Name, strings.ToLower(entry.Kind), entry.Package),
			Blocks: []document.Block{document.Paragraph{Text: entry.Meaning}, about},
		})
	}
	return made
}
