package preflight

import (
	"fmt"
	"io"
	"strings"
)

// printFinding writes one finding as text: the outcome and the cause, then the
// remediation and its commands.
func printFinding(w io.Writer, f Finding) {
	fmt.Fprintf(w, "%s %s: %s", symbol(f.Outcome), f.Name, f.Outcome)
	if f.Message != "" {
		fmt.Fprintf(w, ": %s", indent(f.Message))
	}
	fmt.Fprintln(w)
	if f.Remediation != "" {
		fmt.Fprintf(w, "    %s\n", indent(f.Remediation))
	}
	for _, action := range f.Actions {
		fmt.Fprintf(w, "    $ %s\n", action.Command)
	}
	if f.URL != "" && severity(f.Outcome) > severity(Skipped) {
		fmt.Fprintf(w, "    See %s\n", f.URL)
	}
}

// printSummary writes the number of findings of each outcome.
func printSummary(w io.Writer, result Result) {
	fmt.Fprintf(w, "%s\n", summary(result))
}

// summary returns the number of findings of each outcome that occurs, such as
// "1 Fail, 2 Pass".
func summary(result Result) string {
	count := map[Outcome]int{}
	for _, f := range result.Findings {
		count[f.Outcome]++
	}
	var parts []string
	for _, o := range []Outcome{Fail, Unknown, Warn, Skipped, Pass} {
		if count[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[o], o))
		}
	}
	if len(parts) == 0 {
		return "no check was run"
	}
	return strings.Join(parts, ", ")
}

// indent aligns the lines of a text with its first line.
func indent(text string) string {
	return strings.ReplaceAll(text, "\n", "\n    ")
}

func symbol(outcome Outcome) string {
	switch outcome {
	case Pass:
		return "✓"
	case Warn:
		return "‼"
	case Fail:
		return "✗"
	case Skipped:
		return "–"
	case Unknown:
	}
	return "?"
}
