package reportview

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// JUnit has a test case for each finding, for each check that has not reported, and for the
// verdict, which fails unless it is Ready, so that a report without findings does not pass. A
// finding that an administrator bypassed passes, with the decision as its output.
func (r Report) JUnit() junit.Results {
	return junit.Results{Time: r.Run.StartTime, Cases: casesOf(r), Properties: []junit.Property{
		{Name: "run", Value: r.Run.ID},
		{Name: "cluster", Value: r.Cluster.ID},
		{Name: "from", Value: r.From()},
		{Name: "to", Value: r.Target.Version},
		{Name: "image", Value: r.Target.Image},
		{Name: "decision", Value: string(r.Verdict.Decision)},
		{Name: "validUntil", Value: r.Verdict.ValidUntil},
	}}
}

func casesOf(r Report) []junit.Case {
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
	return append(cases, verdictCase(r))
}

func caseOf(f finding.Finding) junit.Case {
	c := junit.Case{
		Suite: string(f.Source), Class: "preflight." + string(f.Source), Name: f.Name, Outcome: f.Outcome,
		Type: f.Reason, Message: f.Message, Text: text.Item(findingview.Item(f)), Seconds: seconds(f.Job),
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

func verdictCase(r Report) junit.Case {
	c := junit.Case{Suite: "verdict", Class: "preflight", Name: "preflight.Verdict", Outcome: preflight.Fail, Type: string(r.Verdict.Decision)}
	switch {
	case !r.Holds() || r.Run.Phase == report.PhaseRunning:
		c.Outcome, c.Type = preflight.Unknown, "NoVerdict"
	case r.Verdict.Decision == verdict.Ready, r.Verdict.Decision == verdict.NothingKnown:
		c.Outcome = preflight.Warn
	case r.Verdict.Decision == verdict.Undecided:
		c.Outcome = preflight.Unknown
	}
	c.Message = r.headline()
	c.Text = fmt.Sprintf("%s\n%s", c.Message, countsOf(r.Findings))
	return c
}

// JUnit has the test cases of each update, with its version as the last part of the class, and
// one for the decision about the path.
func (p Path) JUnit() junit.Results {
	var cases []junit.Case
	for _, each := range p.Updates {
		for _, c := range casesOf(Report{Report: each}) {
			c.Class += "." + strings.ReplaceAll(orUnknown(each.Target.Version), ".", "_")
			cases = append(cases, c)
		}
	}
	outcome, known := map[verdict.Decision]preflight.Outcome{
		verdict.Ready: preflight.Warn, verdict.NothingKnown: preflight.Warn, verdict.Undecided: preflight.Unknown,
	}[p.Decision]
	switch {
	case !p.Holds():
		outcome = preflight.Unknown
	case !known:
		outcome = preflight.Fail
	}
	route := strings.ReplaceAll(p.route(), " → ", " -> ")
	return junit.Results{
		Time:       p.Updates[0].Run.StartTime,
		Properties: []junit.Property{{Name: "path", Value: route}, {Name: "decision", Value: string(p.Decision)}},
		Cases: append(cases, junit.Case{
			Suite: "verdict", Class: "preflight", Name: "preflight.Path", Outcome: outcome, Type: cmp.Or(string(p.Decision), "NoVerdict"),
			Message: p.headline(), Text: route,
		}),
	}
}
