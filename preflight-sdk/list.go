package preflight

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// listedCheck is a check in the output of --list -o json. Later versions may add
// fields and do not remove any.
type listedCheck struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	URL         string   `json:"url,omitempty"`
	Timeout     string   `json:"timeout,omitempty"`
	Advisory    bool     `json:"advisory,omitempty"`
	After       []string `json:"after,omitempty"`
	Rules       []Rule   `json:"rules,omitempty"`
}

// list prints the checks without running them.
func list(w io.Writer, output string, checks []Check) error {
	if output == outputText {
		columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, c := range checks {
			fmt.Fprintf(columns, "%s\t%s\n", c.Name, c.Description)
		}
		return columns.Flush()
	}
	listed := make([]listedCheck, len(checks))
	for i, c := range checks {
		listed[i] = listedCheck{
			Name: c.Name, Description: c.Description, URL: c.URL,
			Advisory: c.Advisory, After: c.After, Rules: c.Rules,
		}
		if c.Timeout > 0 {
			listed[i].Timeout = c.Timeout.String()
		}
	}
	return printJSON(w, listed)
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
