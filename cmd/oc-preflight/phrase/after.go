package phrase

import (
	"slices"

	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/document/afterview"
	"github.com/openshift/update-preflight/collector/finding"
)

// AfterUpdate is a judgement whose commands are for the clusters of the request, with the next step.
func AfterUpdate(p Phrase, made afterupdate.Report) afterview.Report {
	for _, list := range []*[]afterupdate.Regression{&made.Regressions, &made.Pending, &made.Unchanged, &made.Excused, &made.Unattributed} {
		*list = slices.Clone(*list)
		for i, each := range *list {
			action := finding.Run("%s", each.Command)
			if kind := baseline.Kind(each.Object.Kind); kind == baseline.HostedCluster || kind == baseline.NodePool {
				action.Cluster = finding.Management
			}
			(*list)[i].Command = called.Text(p.directed(action), p.program)
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
	case waits:
		return "Wait for the decision: " + p.About("after", "--watch")
	case made.Decision == afterupdate.Undecided && made.Baseline == nil:
		return "The next run stores a baseline: " + p.About("run", "")
	}
	return ""
}
