package report

import (
	"encoding/json"
	"io"
)

// writeJSON renders the report as one indented JSON object. It is made for
// files and scripts, so characters special to HTML stay readable.
func writeJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}
