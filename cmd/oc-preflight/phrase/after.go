package phrase

import (
	"slices"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/document/afterview"
)

// AfterUpdate is a judgement whose commands are for the clusters of the request, with the next step.
func AfterUpdate(p Phrase, made afterupdate.Report) afterview.Report {
	for _, list := range []*[]afterupdate.Regression{&made.Regressions, &made.Pending, &made.Unchanged, &made.Excused, &made.Unattributed} {
		*list = slices.Clone(*list)
		for i, each := range *list {
			if each.Action.Command != "" { // that of a stored document is as it was
				(*list)[i].Command = p.action(each.Action).Command
			}
		}
	}
	return afterview.Report{Report: made, Next: afterUpdate(p, made)}
}

// afterUpdate is the next step after a judgement; empty for none.
func afterUpdate(p Phrase, made afterupdate.Report) string {
	waits := made.Decision == afterupdate.Settling || made.Decision == afterupdate.Unfinished
	switch {
	case waits && p.Given.has("archive"):
		return "Compare with an archive that is gathered later."
	case waits && p.unlessAsked(p.About("after").Adding("--watch")).Command != "":
		return "Wait for the decision: " + p.About("after").Adding("--watch").Command
	case made.Decision == afterupdate.Undecided && made.Baseline == nil:
		return "The next run stores a baseline: " + p.About("run").Command
	}
	return ""
}
