package preflight

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The form of JUnit that CI systems read. There is no time in it: the same
// answer is the same text.
type (
	junitSuites struct {
		XMLName xml.Name   `xml:"testsuites"`
		Suite   junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
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
		Error   *junitNote `xml:"error"`
		Failure *junitNote `xml:"failure"`
		// Output has warnings, for which JUnit has no word.
		Output string `xml:"system-out,omitempty"`
	}
	junitNote struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// printJUnit writes the result for CI: a test case for each check, a failure
// for a Fail, an error for what could not tell. What XML cannot hold is
// replaced by U+FFFD.
func printJUnit(w io.Writer, update Update, result Result) error {
	suite := junitSuite{Name: "preflight", Tests: len(result.Findings)}
	for _, property := range []junitProperty{{"from", update.From}, {"to", update.To}, {"image", update.Image}, {"runID", update.RunID}} {
		if property.Value != "" {
			suite.Properties = append(suite.Properties, property)
		}
	}
	for _, f := range result.Findings {
		suite.add(f)
	}
	text, err := xml.MarshalIndent(junitSuites{Suite: suite}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func (s *junitSuite) add(f Finding) {
	c := junitCase{Name: f.Name, Class: s.Name}
	var text strings.Builder
	printFinding(&text, f)
	note := &junitNote{Message: f.Message, Type: f.Reason, Text: text.String()}
	switch f.Outcome {
	case Fail:
		c.Failure = note
		s.Failures++
	case Skipped:
		c.Skipped = &junitNote{Message: f.Message}
		s.Skipped++
	case Warn:
		c.Output = text.String()
	case Pass:
	case Unknown:
		c.Error = note
		s.Errors++
	}
	s.Cases = append(s.Cases, c)
}
