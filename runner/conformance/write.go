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

// WriteText writes the results for people.
func (r Report) WriteText(w io.Writer) error {
	var page bytes.Buffer
	check := ""
	for _, result := range r.Results {
		if result.Check != check {
			check = result.Check
			fmt.Fprintf(&page, "%s\n", words.Line(check, maxLine))
		}
		fmt.Fprintf(&page, "  %-8s %-19s %s\n", strings.ToUpper(string(result.Outcome)), result.Requirement, words.Line(result.Message, maxLine))
		if result.Outcome != preflight.Pass && result.Remediation != "" {
			fmt.Fprintf(&page, "  %28s Fix: %s\n", "", words.Line(result.Remediation, maxLine))
		}
	}
	fmt.Fprintf(&page, "\n%s\n", r.headline())
	_, err := w.Write(page.Bytes())
	return err
}

// MarshalJSON implements json.Marshaler: the outcome comes with the results.
// Characters that are special in HTML stay readable.
func (r Report) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Outcome preflight.Outcome `json:"outcome"`
		Results []Result          `json:"results"`
	}{r.Outcome(), append([]Result{}, r.Results...)})
	return text.Bytes(), err
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

// WriteJUnit writes the results as test cases.
func (r Report) WriteJUnit(w io.Writer) error {
	var suites junitSuites
	for _, result := range r.Results {
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
