package runner

import (
	"context"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/standing"
)

// followed is a run that another process has brought to its end.
type followed struct {
	view
	finished record.Record
}

// conduct implements run: the findings of the other process are judged by what
// this user accepts.
func (f followed) conduct(context.Context, context.Context) (report.Report, error) {
	if err := f.finished.Verified(); err != nil {
		return report.Report{}, err
	}
	stored, err := standing.Stored(f.finished)
	if err != nil {
		return report.Report{}, err
	}
	if len(f.finished.Report) > 0 {
		stored = f.refold(stored)
	}
	for _, result := range f.finished.Results {
		f.shared.put(result.Check, f.finished.Target.Version, result.Findings)
	}
	f.progress.Decided(stored)
	return stored, nil
}

// resultsOf reports the results of a record, each once.
func resultsOf(progress *serial) func(record.Record) {
	reported := map[string]bool{}
	return func(now record.Record) {
		for _, result := range now.Results {
			if !reported[result.Check] {
				reported[result.Check] = true
				progress.Reported(result.Findings)
			}
		}
	}
}

// refold judges the findings of another user's run by what this user accepts.
func (v view) refold(stored report.Report) report.Report {
	findings := slices.Clone(stored.Findings)
	for i := range findings {
		if bypass := findings[i].Bypass; bypass != nil && bypass.By != finding.ByAdminAck {
			findings[i].Bypass = nil
		}
	}
	until := stored.Verdict.ValidUntil
	policy := v.policy(stored.Target.Version)
	policy.Provisional = stored.Verdict.Provisional
	stored.Verdict, stored.Findings = verdict.Fold(findings, stored.Expected, policy)
	stored.Verdict.ValidUntil = until
	return stored
}
