package tableview

import (
	"strings"

	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/fleet"
)

// JUnit has a test case for each cluster, and one for the decision about all, so that a fleet
// without clusters does not pass.
func (t Table) JUnit() junit.Results {
	made := junit.Results{Time: t.Time, Properties: []junit.Property{{Name: "to", Value: t.Target}, {Name: "decision", Value: word(t.Decision)}}}
	for _, row := range t.Rows {
		made.Cases = append(made.Cases, junit.Case{
			Suite: "clusters", Class: "preflight.fleet", Name: row.Cluster.Name, Outcome: outcomeOf(row.State),
			Type: string(row.State), Message: why(row), Text: textOf(row),
		})
	}
	outcome := map[verdict.Decision]preflight.Outcome{verdict.Ready: preflight.Warn, verdict.NothingKnown: preflight.Warn, verdict.Undecided: preflight.Unknown}[t.Decision]
	if outcome == "" {
		outcome = preflight.Fail
	}
	return junit.Results{Time: made.Time, Properties: made.Properties, Cases: append(made.Cases, junit.Case{
		Suite: "verdict", Class: "preflight", Name: "preflight.Fleet", Outcome: outcome, Type: word(t.Decision), Message: t.Short(), Text: t.Short(),
	})}
}

func outcomeOf(state fleet.State) preflight.Outcome {
	switch state {
	case fleet.Ready, fleet.Clear:
		return preflight.Pass
	case fleet.Blocked:
		return preflight.Fail
	case fleet.NotInstalled, fleet.Updated:
		return preflight.Skipped
	case fleet.Undecided, fleet.Unreachable, fleet.Hibernating:
	}
	return preflight.Unknown
}

func textOf(row fleet.Row) string {
	var text strings.Builder
	for _, each := range []string{row.Message, judgement(row), row.Evidence} {
		if each != "" {
			text.WriteString(each + "\n")
		}
	}
	for _, cause := range row.Causes {
		text.WriteString(cause.Name + " (" + cause.Reason + "): " + cause.Message + "\n")
		if cause.Remediation != "" {
			text.WriteString(cause.Remediation + "\n")
		}
		for _, action := range cause.Actions {
			if action.Command != "" {
				text.WriteString("$ " + action.Command + "\n")
			}
		}
	}
	return text.String()
}
