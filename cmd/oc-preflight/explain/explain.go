// Package explain answers: what does a reason or the name of a finding mean, and
// what is there to do?
//
// The entries are generated from the comments of the source code.
package explain

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain/source"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
)

//go:generate go run ./generate

//go:embed entries.json
var generated []byte

// Directories are those of the module whose packages make findings.
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

// Kind is that of both documents.
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

// WriteText writes the names of the findings, then those of the reasons.
func (x Index) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tPACKAGE")
	for _, kind := range []string{source.KindFinding, source.KindReason} {
		for _, entry := range x.Entries {
			if entry.Kind == kind {
				fmt.Fprintf(table, "%s\t%s\t%s\n", entry.Name, entry.Kind, entry.Package)
			}
		}
	}
	return table.Flush()
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

// width is that of the text, in characters.
const width = 80

// WriteText writes each entry with its meaning, cause and remedy.
func (p Page) WriteText(w io.Writer) error {
	var page bytes.Buffer
	for i, entry := range p.Entries {
		if i > 0 {
			page.WriteByte('\n')
		}
		fmt.Fprintf(&page, "%s (%s of %s)\n", entry.Name, strings.ToLower(entry.Kind), entry.Package)
		paragraph(&page, "", entry.Meaning)
		paragraph(&page, "Cause:  ", entry.Cause)
		paragraph(&page, "Remedy: ", entry.Remedy)
	}
	_, err := w.Write(page.Bytes())
	return err
}

// paragraph writes text in lines of the width, indented behind its label.
func paragraph(page *bytes.Buffer, label, text string) {
	if text == "" {
		return
	}
	const margin = "  "
	line := margin + label
	indent := strings.Repeat(" ", len(line))
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && len(line)+1+len(word) > width {
			page.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	page.WriteString(line + "\n")
}
