package preflight

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Finding is the result of one check. A check that links this SDK fills it
// through [T].
type Finding struct {
	// Name identifies the finding. Administrators type it to accept the finding. It
	// matches ^[A-Z][A-Za-z0-9.-]*$, the rule for risk names in ClusterVersion.
	Name string `json:"name"`
	// Outcome is how the check ended.
	Outcome Outcome `json:"outcome"`
	// Reason is the kind of cause as one CamelCase word, stable across releases.
	Reason string `json:"reason"`
	// Message states the cause in one sentence and names the object.
	Message string `json:"message"`
	// Remediation is the action that resolves the finding, in sentences.
	Remediation string `json:"remediation,omitempty"`
	// Actions are the steps of the remediation that are commands, in order.
	Actions []Action `json:"actions,omitempty"`
	// URL is the documentation of the check.
	URL string `json:"url,omitempty"`
	// Objects are the affected objects, most important first.
	Objects []Object `json:"objects,omitempty"`
	// Evidence contains short facts that support the message, by name.
	Evidence map[string]string `json:"evidence,omitempty"`
}

// Action is one step of a remediation.
type Action struct {
	// Command is the whole command, to be copied into a shell.
	Command string `json:"command"`
}

// Object identifies one Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Outcome is the result of a check in one word.
type Outcome string

// The outcomes. Every check ends with one of these: a check that did not end
// regularly is Unknown.
const (
	// Pass means that the check found nothing that prevents the update.
	Pass Outcome = "Pass"
	// Warn means that an administrator should know the finding, but that it does
	// not prevent the update.
	Warn Outcome = "Warn"
	// Fail means that the check found that the update would do harm.
	Fail Outcome = "Fail"
	// Unknown means that the check was inconclusive. It never counts as a pass.
	Unknown Outcome = "Unknown"
	// Skipped means that the check does not apply to this cluster. The message
	// states why.
	Skipped Outcome = "Skipped"
)

// Compare orders outcomes, the worst first: Fail, Unknown, Warn, Skipped, Pass.
// It is negative when o is worse than other, positive when other is worse, and 0
// when neither is. An outcome that this version does not define ranks as
// Unknown.
func (o Outcome) Compare(other Outcome) int { return cmp.Compare(severity(other), severity(o)) }

// severity orders outcomes: the most severe outcome that a check reports is the
// outcome of its finding. An undefined outcome is as severe as Unknown.
func severity(outcome Outcome) int {
	switch outcome {
	case Pass:
		return 0
	case Skipped:
		return 1
	case Warn:
		return 2
	case Unknown:
		return 3
	case Fail:
		return 4
	}
	return severity(Unknown)
}

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

// The JUnit dialect that Prow, GitLab and Jenkins all read. Prow reads only the
// text of a failure, not its attributes, and ignores error elements, so there
// are none: an inconclusive check is a failure. Texts are character data, never
// CDATA, which encoding/xml does not sanitize. The document contains no times,
// so that the same result is the same text.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"` // Always 0.
		Skipped    int             `xml:"skipped,attr"`
		Properties []junitProperty `xml:"properties>property,omitempty"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string     `xml:"name,attr"`
		Class   string     `xml:"classname,attr"`
		Skipped *junitNote `xml:"skipped"`
		Failure *junitNote `xml:"failure"`
		// Output contains warnings, which JUnit cannot express.
		Output string `xml:"system-out,omitempty"`
	}
	junitNote struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// junitVerdict is the name of the test case for the result as a whole. No check
// can have it.
const junitVerdict = "preflight.Verdict"

// printJUnit writes the result for CI systems: a test case for each finding, and
// one for the result as a whole, so that a result without findings fails.
// Characters that XML cannot represent are replaced by U+FFFD.
func printJUnit(w io.Writer, update Update, result Result) error {
	suite := junitSuite{Name: "preflight"}
	for _, property := range []junitProperty{{"from", update.From}, {"to", update.To}, {"image", update.Image}, {"runID", update.RunID}} {
		if property.Value != "" {
			suite.Properties = append(suite.Properties, property)
		}
	}
	for _, f := range result.Findings {
		suite.add(f)
	}
	suite.addVerdict(result)
	text, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func (s *junitSuite) add(f Finding) {
	c := junitCase{Name: f.Name}
	var text strings.Builder
	printFinding(&text, f)
	switch f.Outcome {
	case Fail:
		c.Failure = &junitNote{Message: f.Message, Type: f.Reason, Text: text.String()}
	case Unknown:
		c.Failure = &junitNote{Message: f.Message, Type: "Unknown." + f.Reason, Text: text.String()}
	case Skipped:
		c.Skipped = &junitNote{Message: f.Message, Text: text.String()}
	case Warn:
		c.Output = text.String()
	case Pass:
	}
	s.addCase(c)
}

func (s *junitSuite) addVerdict(result Result) {
	c := junitCase{Name: junitVerdict}
	outcome := worst(result.Findings)
	text := fmt.Sprintf("%s: %s", outcome, summary(result))
	switch outcome {
	case Pass, Skipped, Warn:
		c.Output = text
	case Fail, Unknown:
		c.Failure = &junitNote{Message: text, Type: string(outcome), Text: text}
	}
	s.addCase(c)
}

func (s *junitSuite) addCase(c junitCase) {
	c.Class = s.Name
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}
