package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/words"
)

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
