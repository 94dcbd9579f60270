package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// format is one output format. A new one is a file with its encoder and a line
// in formats.
type format struct {
	name string
	// encodes reports whether a document has this format.
	encodes func(document any) bool
	encode  func(w io.Writer, document any) error
}

// formats are all formats, in the order in which help lists them.
func formats() []format {
	return []format{
		written("text", textDocument.WriteText),
		written("wide", func(d wideDocument, w io.Writer) error { return d.WriteWide(w, Style{}) }),
		written("name", nameDocument.WriteName),
		written("short", shortDocument.WriteShort),
		{name: "json", encodes: always, encode: encodeJSON},
		{name: "yaml", encodes: always, encode: encodeYAML},
		written("markdown", markdownDocument.WriteMarkdown),
		written("html", htmlDocument.WriteHTML),
		written("junit", junitDocument.WriteJUnit),
		written(preflightV1, preflightV1Document.WritePreflightV1),
		written("images", imagesDocument.WriteImages),
		written("imageset", imageSetDocument.WriteImageSet),
	}
}

// textDocument has a text for people.
type textDocument interface {
	WriteText(w io.Writer) error
}

// wideDocument has a table with more columns than its text.
type wideDocument interface {
	WriteWide(w io.Writer, style Style) error
}

// nameDocument has a line KIND/NAME for each of its entries, by which commands select it.
type nameDocument interface {
	WriteName(w io.Writer) error
}

// shortDocument has one line that stands alone.
type shortDocument interface {
	WriteShort(w io.Writer) error
}

// markdownDocument has a text for tickets and pull requests.
type markdownDocument interface {
	WriteMarkdown(w io.Writer) error
}

// htmlDocument has a page for approvers and archives.
type htmlDocument interface {
	WriteHTML(w io.Writer) error
}

// junitDocument has test cases for CI systems.
type junitDocument interface {
	WriteJUnit(w io.Writer) error
}

// preflightV1Document has the risks of one target.
type preflightV1Document interface {
	WritePreflightV1(w io.Writer) error
}

// imagesDocument has the images of releases.
type imagesDocument interface {
	WriteImages(w io.Writer) error
}

// imageSetDocument has configurations of oc-mirror.
type imageSetDocument interface {
	WriteImageSet(w io.Writer) error
}

// written is the format of the documents with a method that writes it.
func written[T any](name string, write func(T, io.Writer) error) format {
	return format{
		name:    name,
		encodes: func(document any) bool { _, ok := document.(T); return ok },
		encode: func(w io.Writer, document any) error {
			has, ok := document.(T)
			if !ok {
				return fmt.Errorf("a %T has no format %s", document, name)
			}
			return write(has, w)
		},
	}
}

func always(any) bool { return true }

// Formats are the names of the formats that a document has. Every document is
// JSON and YAML; it is text when it has a method WriteText(io.Writer) error, and
// JUnit when it has WriteJUnit(io.Writer) error, Markdown when it has
// WriteMarkdown(io.Writer) error, HTML when it has WriteHTML(io.Writer) error. One with WritePreflightV1(io.Writer)
// error has preflight-v1-json, which is provisional. One with WriteImages(io.Writer)
// error or WriteImageSet(io.Writer) error has images or imageset, one with
// WriteWide(io.Writer, Style) error, WriteName(io.Writer) error or WriteShort(io.Writer)
// error has wide, name or short.
func Formats(document any) []string {
	var names []string
	for _, format := range formats() {
		if format.encodes(document) {
			names = append(names, format.name)
		}
	}
	return names
}

// CheckFormat returns an error that lists the formats of the document when name is
// none of them.
func CheckFormat(name string, document any) error {
	if slices.Contains(Formats(document), name) {
		return nil
	}
	return fmt.Errorf("unknown output format %q: it must be one of %s", name, strings.Join(Formats(document), ", "))
}

// Write writes the document in a format. A format that the document does not have
// is the error of CheckFormat, and nothing is written.
func Write(w io.Writer, name string, document any) error {
	if err := CheckFormat(name, document); err != nil {
		return err
	}
	for _, format := range formats() {
		if format.name == name {
			return format.encode(w, document)
		}
	}
	return nil // CheckFormat has found it
}

// styledDocument has a text whose layout depends on the terminal.
type styledDocument interface {
	WriteStyled(w io.Writer, style Style) error
}

// WriteStyled is Write for a terminal: text and wide have a style where the document
// supports it.
func WriteStyled(w io.Writer, name string, document any, style Style) error {
	if styled, ok := document.(styledDocument); ok && name == "text" {
		return styled.WriteStyled(w, style)
	}
	if wide, ok := document.(wideDocument); ok && name == "wide" {
		return wide.WriteWide(w, style)
	}
	return Write(w, name, document)
}
