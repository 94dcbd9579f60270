package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// WriteDocument renders what scripts read, as YAML or JSON: the same document.
func WriteDocument(w io.Writer, format string, document any) error {
	if format != formatYAML {
		return writeJSON(w, document)
	}
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML(printable(text)); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// printable escapes what JSON may have in its strings and YAML may not (YAML
// 1.2, 5.1 Character Set), or reads as the end of a line.
func printable(text []byte) []byte {
	var escaped strings.Builder
	escaped.Grow(len(text))
	for _, r := range string(text) {
		if (r >= 0x7f && r < 0xa0) || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return []byte(escaped.String())
}
