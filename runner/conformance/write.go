package conformance

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxLine bounds one text of the report, in bytes.
const maxLine = 4 << 10

// Formats lists the names of the output formats.
func Formats() []string { return []string{"text", "json", "junit"} }

// Write renders the report in one of the Formats.
func Write(w io.Writer, format string, report Report) error {
	switch format {
	case "text":
		return writeText(w, report)
	case "json":
		return writeJSON(w, report)
	case "junit":
		return writeJUnit(w, report)
	}
	return fmt.Errorf("unknown output format %q: it must be one of %s", format, strings.Join(Formats(), ", "))
}

// headline is the answer for people.
func (r Report) headline() string {
	switch r.Outcome() {
	case preflight.Pass:
		return "Conforms: this may be shipped."
	case preflight.Fail:
		return "Does not conform: do not ship this yet."
	case preflight.Unknown, preflight.Warn, preflight.Skipped:
	}
	return "Undecided: not everything could be tried."
}

func writeText(w io.Writer, report Report) error {
	var page bytes.Buffer
	check := ""
	for _, result := range report.Results {
		if result.Check != check {
			check = result.Check
			fmt.Fprintf(&page, "%s\n", words.Line(check, maxLine))
		}
		fmt.Fprintf(&page, "  %-8s %-19s %s\n", strings.ToUpper(string(result.Outcome)), result.Requirement, words.Line(result.Message, maxLine))
		if result.Outcome != preflight.Pass && result.Remediation != "" {
			fmt.Fprintf(&page, "  %28s Fix: %s\n", "", words.Line(result.Remediation, maxLine))
		}
	}
	fmt.Fprintf(&page, "\n%s\n", report.headline())
	_, err := w.Write(page.Bytes())
	return err
}

func writeJSON(w io.Writer, report Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Outcome preflight.Outcome `json:"outcome"`
		Results []Result          `json:"results"`
	}{report.Outcome(), append([]Result{}, report.Results...)})
}

// The parts of JUnit's format that CI systems read: a suite for each check, a
// case for each requirement. What could not be tried is an error there, and
// what is worth a warning a pass with output.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Failure *junitText `xml:"failure"`
	Error   *junitText `xml:"error"`
	Skipped *junitText `xml:"skipped"`
	Output  string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func writeJUnit(w io.Writer, report Report) error {
	var suites junitSuites
	for _, result := range report.Results {
		i := slices.IndexFunc(suites.Suites, func(suite junitSuite) bool { return suite.Name == result.Check })
		if i < 0 {
			i = len(suites.Suites)
			suites.Suites = append(suites.Suites, junitSuite{Name: result.Check})
		}
		suites.Suites[i].add(result)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suites); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(result Result) {
	entry := junitCase{Class: result.Check, Name: result.Requirement}
	said := &junitText{Message: result.Message, Type: result.Reason, Text: result.Remediation}
	s.Tests++
	switch result.Outcome {
	case preflight.Fail:
		s.Failures++
		entry.Failure = said
	case preflight.Unknown:
		s.Errors++
		entry.Error = said
	case preflight.Skipped:
		s.Skipped++
		said.Type = "" // the format has none there
		entry.Skipped = said
	case preflight.Pass:
		entry.Output = result.Message
	case preflight.Warn:
		entry.Output = strings.TrimSpace("warning: " + result.Message + "\n" + result.Remediation)
	}
	s.Cases = append(s.Cases, entry)
}
