package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/junit"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// WriteJUnit writes the report for CI systems: a test case for each finding, for each
// check that has not reported, and for the verdict, which fails unless it is Ready, so
// that a report without findings does not pass. A finding that an administrator bypassed
// passes, with the decision as its output.
func (r Report) WriteJUnit(w io.Writer) error {
	return junit.Write(w, r.Run.StartTime, r.properties(), r.cases())
}

// cases are those of the findings, the missing checks and the verdict.
func (r Report) cases() []junit.Case {
	var cases []junit.Case
	for _, f := range r.Findings {
		cases = append(cases, caseOf(f))
	}
	for _, name := range r.Expected.Missing {
		const text = "the check has not reported"
		cases = append(cases, junit.Case{
			Suite: string(finding.SourceJob), Class: "preflight.job", Name: name, Outcome: preflight.Unknown, Type: "NotReported", Message: text, Text: text,
		})
	}
	return append(cases, r.verdictCase())
}

func (r Report) properties() []junit.Property {
	var known []junit.Property
	for _, property := range []junit.Property{
		{Name: "run", Value: r.Run.ID},
		{Name: "cluster", Value: r.Cluster.ID},
		{Name: "from", Value: r.from()},
		{Name: "to", Value: r.Target.Version},
		{Name: "image", Value: r.Target.Image},
		{Name: "decision", Value: string(r.Verdict.Decision)},
		{Name: "validUntil", Value: r.Verdict.ValidUntil},
	} {
		property.Value = words.Line(property.Value, maxCommand)
		if property.Value != "" {
			known = append(known, property)
		}
	}
	return known
}

func caseOf(f finding.Finding) junit.Case {
	var text page.Page
	text.Finding(f)
	c := junit.Case{
		Suite: string(f.Source), Class: "preflight." + string(f.Source), Name: f.Name, Outcome: f.Outcome,
		Type: f.Reason, Message: f.Message, Text: strings.TrimSpace(text.String()) + "\n", Seconds: seconds(f.Job),
	}
	if !f.Open() && (f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown) {
		c.Outcome = preflight.Warn
	}
	return c
}

// seconds is how long a Job ran; 0 if unknown.
func seconds(job *finding.Job) float64 {
	start, end, ok := times(job)
	if !ok {
		return 0
	}
	return end.Sub(start).Seconds()
}

func (r Report) verdictCase() junit.Case {
	c := junit.Case{Suite: "verdict", Class: "preflight", Name: "preflight.Verdict", Outcome: preflight.Fail, Type: string(r.Verdict.Decision)}
	switch {
	case !r.Holds() || r.Run.Phase == PhaseRunning:
		c.Outcome, c.Type = preflight.Unknown, "NoVerdict"
	case r.Verdict.Decision == verdict.Ready, r.Verdict.Decision == verdict.NothingKnown:
		c.Outcome = preflight.Warn
	case r.Verdict.Decision == verdict.Undecided:
		c.Outcome = preflight.Unknown
	}
	c.Message = headline(r)
	c.Text = fmt.Sprintf("%s\n%s", c.Message, tally(r.Findings))
	return c
}
