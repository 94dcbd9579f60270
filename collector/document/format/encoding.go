package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
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
