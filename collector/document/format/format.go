// Package format answers: in which formats is a document written?
//
// [Write] writes a value in a format that the value supports. A new format needs a function in a file of its own
// and an entry in formats: all documents then support it.
package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/html"
	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/document/markdown"
	"github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/words"
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

// Names returns the names of the formats that a value supports. Every value supports JSON and YAML; a
// document.Source also supports text, Markdown and HTML. The others need a method: wide needs Wide(document.View)
// document.Document, name needs Names() ([]string, error), short needs Short() string, junit needs JUnit()
// junit.Results, images needs Images() []string, and imageset needs ImageSet() ([]imageset.File, error).
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

// encodeJSON writes one indented object. It is for files and scripts, so characters
// that are special in HTML stay readable.
func encodeJSON(w io.Writer, document any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return err
	}
	_, err := w.Write(escape(text.Bytes()))
	return err
}

// encodeYAML writes the same document as encodeJSON. One with characters that must be
// escaped is written as JSON, which is YAML too: no block style has escapes.
func encodeYAML(w io.Writer, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if !bytes.Equal(escape(text), text) {
		return encodeJSON(w, document)
	}
	if text, err = yaml.JSONToYAML(text); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// escape escapes what JSON may have in its strings and YAML may not (YAML 1.2, 5.1
// Character Set), what YAML reads as the end of a line, and invisible characters and
// those that change the direction of reading.
func escape(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r >= 0x7f && r < 0xa0, r == 0xfeff, r == 0xfffe, r == 0xffff, r == 0x2028, r == 0x2029, r == 0x061c,
			r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}

// maxName bounds a name on one line, in bytes.
const maxName = 256

type wide interface {
	Wide(view document.View) document.Document
}

// named has a name, or names, by which commands select it.
type named interface {
	Names() ([]string, error)
}

func writeNames(w io.Writer, value named, _ Style) error {
	names, err := value.Names()
	if err != nil {
		return err
	}
	for i, name := range names {
		names[i] = words.Line(name, maxName)
	}
	return writeLines(w, names)
}

// short has one line that stands alone.
type short interface {
	Short() string
}

func writeShort(w io.Writer, value short, _ Style) error {
	return text.Write(w, document.Document{Blocks: []document.Block{document.Paragraph{Text: value.Short()}}}, Style{})
}

type images interface {
	Images() []string
}

func writeImages(w io.Writer, value images, _ Style) error { return writeLines(w, value.Images()) }

func writeLines(w io.Writer, lines []string) error {
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintln(&text, line)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

type imageSet interface {
	ImageSet() ([]imageset.File, error)
}

func writeImageSet(w io.Writer, value imageSet, _ Style) error {
	files, err := value.ImageSet()
	if err != nil {
		return err
	}
	var text strings.Builder
	for i, file := range files {
		if i > 0 {
			text.WriteString("---\n")
		}
		fmt.Fprintf(&text, "# %s: %s\n%s", file.Name, strings.Join(file.Releases, ", "), file.Content)
	}
	_, err = io.WriteString(w, text.String())
	return err
}
