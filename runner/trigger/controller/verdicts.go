package controller

import (
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

// verdicts are the reports of the last complete runs. They are of authentic records only.
type verdicts map[covered]report.Report

// add adds a verdict. Of two runs that ended in the same second, one that is not Ready
// counts.
func (v verdicts) add(of covered, decided report.Report) {
	if known, exists := v[of]; !exists || decisionOf(known) == verdict.Ready {
		v[of] = decided
	}
}

// decisionOf is the decision of a verdict. A forced one is that of the user who forced it,
// and not known to be Ready.
func decisionOf(decided report.Report) verdict.Decision {
	if decided.Verdict.Forced {
		return verdict.Undecided
	}
	return decided.Verdict.Decision
}
