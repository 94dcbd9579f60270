package preflight

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

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

// addVerdict adds the test case for the worst outcome of the result.
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
