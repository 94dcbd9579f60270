// Package explain answers: what does a reason or the name of a finding mean, and
// what is there to do?
//
// [Find] looks a word up in the [Entries], which are what the packages of the program declare
// (finding.NewReason, finding.NewName) and the reasons of signature/refusal.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/signature/refusal"
)

// The kinds of entries.
const (
	KindReason  = "Reason"
	KindFinding = "Finding"
)

// Entry documents one reason or one name of findings.
type Entry struct {
	Kind string `json:"kind"`
	// Name is the value that a report has.
	Name string `json:"name"`
	// Package is the directory of the package, from the root of the module.
	Package string `json:"package"`
	// Meaning is one or more sentences. Only a reason has a Cause and a Remedy.
	Meaning string `json:"meaning"`
	Cause   string `json:"cause,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
}

// Entries are all entries, sorted by name.
func Entries() []Entry {
	var entries []Entry
	for _, d := range finding.Declarations() {
		kind := KindReason
		if d.IsName {
			kind = KindFinding
		}
		entries = append(entries, Entry{Kind: kind, Name: d.Name, Package: d.Package, Meaning: d.Meaning, Cause: d.Cause, Remedy: remedy(d.Explanation)})
	}
	for _, r := range refusal.Reasons() {
		entries = append(entries, Entry{Kind: KindReason, Name: r.Name, Package: "signature/refusal", Meaning: r.Meaning, Cause: r.Cause, Remedy: r.Remedy})
	}
	for i := range entries {
		if entries[i].Kind == KindReason {
			entries[i].Remedy = cmp.Or(entries[i].Remedy, "None needed.")
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Package, b.Package))
	})
	return entries
}

// remedy ends with the command of the remedy, where there is one.
func remedy(e finding.Explanation) string {
	if e.Command == "" {
		return e.Remedy
	}
	return fmt.Sprintf("%s: `%s`.", strings.TrimSuffix(e.Remedy, "."), e.Command)
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

	Entries []Entry `json:"entries"`
}

// Index is a list of entries.
type Index struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Entries []Entry `json:"entries"`
}

// All is the list of all entries.
func All(entries []Entry) Index {
	return Index{APIVersion: report.APIVersion, Kind: Kind, Entries: entries}
}

// Document is the names of the findings, then those of the reasons.
func (x Index) Document(document.View) document.Document {
	table := document.Table{Title: "Findings and reasons", Columns: []string{"Name", "Kind", "Package"}}
	for _, kind := range []string{KindFinding, KindReason} {
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
func Find(entries []Entry, word string) (Page, error) {
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

func named(entries []Entry, name string) []Entry {
	var found []Entry
	for _, entry := range entries {
		if strings.EqualFold(entry.Name, name) {
			found = append(found, entry)
		}
	}
	return found
}

func similar(entries []Entry, word string) []string {
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
