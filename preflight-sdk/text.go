package preflight

import (
	"fmt"
	"io"
	"strings"
)

// printFinding writes one finding for people: the outcome and the cause first,
// then what to do.
func printFinding(w io.Writer, f Finding) {
	fmt.Fprintf(w, "%s %s: %s", sign(f.Outcome), f.Name, f.Outcome)
	if f.Message != "" {
		fmt.Fprintf(w, ": %s", indent(f.Message))
	}
	fmt.Fprintln(w)
	if f.Remediation != "" {
		fmt.Fprintf(w, "    %s\n", indent(f.Remediation))
	}
	if f.URL != "" && severity(f.Outcome) > severity(Skipped) {
		fmt.Fprintf(w, "    See %s\n", f.URL)
	}
}

// printSummary writes how many checks there were of each outcome.
func printSummary(w io.Writer, result Result) {
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
	fmt.Fprintf(w, "%s\n", strings.Join(parts, ", "))
}

// indent keeps the lines of a text together.
func indent(text string) string {
	return strings.ReplaceAll(text, "\n", "\n    ")
}

func sign(outcome Outcome) string {
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
