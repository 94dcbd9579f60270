// Package junit answers: how do CI systems read results as test cases?
//
// It writes the dialect that Prow, GitLab and Jenkins all read. Prow reads only the text of a failure, not its
// attributes, and ignores error elements, so there are none: an inconclusive result is a failure. GitLab counts
// only the first of two test cases of one class and name, so names are unique. Texts are character data, never
// CDATA, which encoding/xml does not sanitize. Control and direction characters are removed.
package junit

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"

	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Property is a fact about all test cases.
type Property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// Case is one result.
type Case struct {
	// Suite groups test cases, and Class is the name under which CI systems show it.
	Suite, Class, Name string
	Outcome            preflight.Outcome
	// Type is one word, such as the reason, and Message one sentence. Text is everything.
	Type, Message, Text string
	// Seconds is how long the check ran; 0 if unknown.
	Seconds float64
}

// The bounds of texts, in bytes. GitLab reads 30 MB.
const (
	maxName    = 512
	maxMessage = 4 << 10
	maxText    = 32 << 10
)

type document struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"` // always 0
	Skipped  int      `xml:"skipped,attr"`
	Suites   []*suite `xml:"testsuite"`
}

type suite struct {
	Name       string      `xml:"name,attr"`
	Tests      int         `xml:"tests,attr"`
	Failures   int         `xml:"failures,attr"`
	Errors     int         `xml:"errors,attr"` // always 0
	Skipped    int         `xml:"skipped,attr"`
	Timestamp  string      `xml:"timestamp,attr,omitempty"`
	Properties *properties `xml:"properties"`
	Cases      []testCase  `xml:"testcase"`
}

type properties struct {
	Properties []Property `xml:"property"`
}

type testCase struct {
	Class   string `xml:"classname,attr"`
	Name    string `xml:"name,attr"`
	Time    string `xml:"time,attr"`
	Skipped *note  `xml:"skipped"`
	Failure *note  `xml:"failure"`
	// Output is the output of a case that passes.
	Output string `xml:"system-out,omitempty"`
}

type note struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// Results are test cases with their subject.
type Results struct {
	// Time is RFC 3339 in UTC, or empty.
	Time string
	// Properties are the properties of each suite. One without a value is left out.
	Properties []Property
	Cases      []Case
}

// Write writes the test cases. Fail and Unknown fail; a Warn passes with its text as output.
func (r Results) Write(w io.Writer) error {
	var all document
	about := r.about()
	suites := map[string]*suite{}
	names := map[string]int{}
	for _, c := range r.Cases {
		c.Suite, c.Class, c.Name = words.Line(c.Suite, maxName), words.Line(c.Class, maxName), words.Line(c.Name, maxName)
		group := suites[c.Suite]
		if group == nil {
			group = &suite{Name: c.Suite, Timestamp: words.Line(r.Time, maxName), Properties: about}
			suites[c.Suite] = group
			all.Suites = append(all.Suites, group)
		}
		id := c.Class + "\x00" + c.Name
		names[id]++
		if names[id] > 1 {
			c.Name = fmt.Sprintf("%s #%d", c.Name, names[id])
		}
		group.add(c.entry())
	}
	for _, group := range all.Suites {
		all.Tests += group.Tests
		all.Failures += group.Failures
		all.Skipped += group.Skipped
	}
	var text bytes.Buffer
	text.WriteString(xml.Header)
	encoder := xml.NewEncoder(&text)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	text.WriteString("\n")
	_, err := w.Write(text.Bytes())
	return err
}

// about are the properties that have a value; nil for none.
func (r Results) about() *properties {
	var known []Property
	for _, each := range r.Properties {
		each.Name, each.Value = words.Line(each.Name, maxName), words.Line(each.Value, maxMessage)
		if each.Value != "" {
			known = append(known, each)
		}
	}
	if len(known) == 0 {
		return nil
	}
	return &properties{Properties: known}
}

func (c Case) entry() testCase {
	entry := testCase{Class: c.Class, Name: c.Name, Time: fmt.Sprintf("%.3f", c.Seconds)}
	c.Type, c.Message, c.Text = words.Line(c.Type, maxName), words.Line(c.Message, maxMessage), words.Lines(c.Text, maxText)
	switch c.Outcome {
	case preflight.Fail:
		entry.Failure = &note{Message: c.Message, Type: c.Type, Text: c.Text}
	case preflight.Unknown:
		entry.Failure = &note{Message: c.Message, Type: "Unknown." + c.Type, Text: c.Text}
	case preflight.Skipped:
		entry.Skipped = &note{Message: c.Message, Text: c.Text}
	case preflight.Warn:
		entry.Output = c.Text
	case preflight.Pass:
	default: // an outcome of a later version
		entry.Failure = &note{Message: c.Message, Type: words.Line(string(c.Outcome), maxName), Text: c.Text}
	}
	return entry
}

func (s *suite) add(entry testCase) {
	s.Tests++
	if entry.Failure != nil {
		s.Failures++
	}
	if entry.Skipped != nil {
		s.Skipped++
	}
	s.Cases = append(s.Cases, entry)
}
