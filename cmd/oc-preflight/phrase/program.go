package phrase

import (
	"slices"

	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/fleet"
)

// worded is a finding whose actions are command lines, and whose remedy calls the programs by the names of the
// user. That of a Job is its author's.
func (p Phrase) worded(f finding.Finding) finding.Finding {
	if f.Source != finding.SourceJob {
		f.Remediation = called.Text(f.Remediation, p.program)
	}
	f.Remediation = withAsked(f.Remediation, f.Actions)
	f.Actions = p.actions(f.Actions)
	return f
}

// Named is the row of a cluster whose commands and remedies call the programs by the names of the user, who calls
// this one by program.
func Named(row fleet.Row, program string) fleet.Row {
	row.Causes = slices.Clone(row.Causes)
	for i, cause := range row.Causes {
		row.Causes[i].Remediation = called.Text(cause.Remediation, program)
		row.Causes[i].Actions = slices.Clone(cause.Actions)
		for j, action := range cause.Actions {
			row.Causes[i].Actions[j] = Phrase{program: program}.named(action)
		}
	}
	return row
}
