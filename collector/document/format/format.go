// Package format answers: in which formats is a document written?
//
// [Write] writes a value in a format that it has. A new format is a function in a file of its
// own and an entry of formats: all documents have it.
package format

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/html"
	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/document/markdown"
	"github.com/openshift/update-preflight/collector/document/text"
)

// Style is the layout of text.
type Style = text.Style

type format struct {
	name string
	has  func(value any) bool
	// write writes a value that has the format; the style is used for text.
	write func(w io.Writer, value any, style Style) error
}

// formats are all formats, in the order in which help lists them.
func formats() []format {
	return []format{
		of("text", func(w io.Writer, d document.Source, style Style) error {
			return text.Write(w, d.Document(style.View()).Complete(style.Cluster, style.View()), style)
		}),
		of("wide", func(w io.Writer, d wide, style Style) error {
			shown := d.Wide(style.View())
			if len(shown.Blocks) > 1 { // a table alone is for scripts: all its lines are rows
				shown = shown.Complete(style.Cluster, document.View{Brief: style.Brief(), Full: true})
			}
			return text.Write(w, shown, style)
		}),
		of("name", writeNames),
		of("short", writeShort),
		of("json", func(w io.Writer, value any, _ Style) error { return encodeJSON(w, value) }),
		of("yaml", func(w io.Writer, value any, _ Style) error { return encodeYAML(w, value) }),
		page("markdown", markdown.Write),
		page("html", html.Write),
		of("junit", func(w io.Writer, value testCases, _ Style) error { return value.JUnit().Write(w) }),
		of("images", writeImages),
		of("imageset", writeImageSet),
	}
}

func page(name string, write func(io.Writer, document.Document) error) format {
	view := document.View{Full: true}
	return of(name, func(w io.Writer, d document.Source, style Style) error {
		return write(w, d.Document(view).Complete(style.Cluster, view))
	})
}

func of[T any](name string, write func(w io.Writer, value T, style Style) error) format {
	return format{
		name: name,
		has:  func(value any) bool { _, ok := value.(T); return ok },
		write: func(w io.Writer, value any, style Style) error {
			has, ok := value.(T)
			if !ok {
				return fmt.Errorf("a %T has no format %s", value, name)
			}
			return write(w, has, style)
		},
	}
}

// testCases has test cases for CI systems.
type testCases interface {
	JUnit() junit.Results
}

// Names are the names of the formats that a value has. Every value
// is JSON and YAML; a document.Source is also text, Markdown and HTML. The others are those of
// values with a method: wide with Wide(document.View) document.Document, name with Names()
// ([]string, error), short with Short() string, junit with JUnit() junit.Results, images with
// Images() []string, and imageset with ImageSet() ([]imageset.File, error).
func Names(value any) []string {
	var names []string
	for _, each := range formats() {
		if each.has(value) {
			names = append(names, each.name)
		}
	}
	return names
}

// Check returns an error that lists the formats of the value when name is none of them.
func Check(name string, value any) error {
	if slices.ContainsFunc(formats(), func(f format) bool { return f.name == name && f.has(value) }) {
		return nil
	}
	return fmt.Errorf("unknown output format %q: it must be one of %s", name, strings.Join(Names(value), ", "))
}

// Write writes the value in a format; text and wide have the style. A format that the
// value does not have is the error of Check, and nothing is written.
func Write(w io.Writer, name string, value any, style Style) error {
	if err := Check(name, value); err != nil {
		return err
	}
	for _, each := range formats() {
		if each.name == name {
			return each.write(w, value, style)
		}
	}
	return nil // Check has found it
}

// The kinds in the format name.
const (
	// RunName is the kind of a run: its name is the ID.
	RunName = "preflight"
	// UpdateName is the kind of a target: its name is the version.
	UpdateName = "update"
	// CheckName is the kind of a check of a release.
	CheckName = "check"
)

// BareName is a name with or without its kind, without it.
func BareName(kind, text string) string { return strings.TrimPrefix(text, kind+"/") }
