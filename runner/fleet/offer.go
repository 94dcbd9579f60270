package fleet

import (
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// Offered is the row of a cluster from the verdicts on its updates: about the best of them,
// and with no more than one requested, about that. The checks of the releases were not run,
// so no row is Ready.
func Offered(cluster Cluster, judged report.Targets) Row {
	if judged.Cluster.ID != "" {
		cluster.ID = judged.Cluster.ID
	}
	row := Row{Cluster: cluster, State: Undecided, Version: judged.Cluster.Version, Observed: judged.Time}
	best, ok := judged.Next()
	if !ok {
		row.Message = "the cluster knows no update"
		return row
	}
	row.State, row.Target = clearState(best.Verdict), best.Version
	for _, each := range judged.ByUrgency() {
		row.Targets = append(row.Targets, Candidate{Version: each.Version, State: clearState(each.Verdict)})
		// A version may have two images: the worst decides.
		if state := clearState(each.Verdict); each.Version == best.Version && state.rank() < row.State.rank() {
			row.State = state
		}
	}
	var about []finding.Finding
	for _, each := range judged.Findings {
		if len(each.Targets) == 0 || slices.Contains(each.Targets, best.Version) {
			about = append(about, each.Finding)
		}
	}
	row.Causes = CausesOf(about)
	if len(row.Causes) == 0 && row.State != Clear {
		row.Message = "not every check has reported"
	}
	return row
}

// clearState is the state of an update that was judged without the checks of its release.
func clearState(of verdict.Verdict) State {
	if of.Decision == verdict.Ready {
		return Clear
	}
	return StateOf(of.Decision)
}
