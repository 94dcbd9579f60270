package preflight

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// entry is a check in --list -o json. Fields are only ever added.
type entry struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	URL         string   `json:"url,omitempty"`
	Timeout     string   `json:"timeout,omitempty"`
	Advisory    bool     `json:"advisory,omitempty"`
	After       []string `json:"after,omitempty"`
	Rules       []Rule   `json:"rules,omitempty"`
}

// list prints what could be run.
func list(w io.Writer, output string, checks []Check) error {
	if output == outputText {
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, c := range checks {
			fmt.Fprintf(columns, "%s\t%s\n", c.Name, c.Description)
		}
		return columns.Flush()
	}
	entries := make([]entry, len(checks))
	for i, c := range checks {
		entries[i] = entry{
			Name: c.Name, Description: c.Description, URL: c.URL,
			Advisory: c.Advisory, After: c.After, Rules: c.Rules,
		}
		if c.Timeout > 0 {
			entries[i].Timeout = c.Timeout.String()
		}
	}
	return printJSON(w, entries)
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
