// Package reassessment answers: is the verdict of a recorded run still valid for this cluster?
//
// [Of] evaluates gates, risks and health again, and combines them with the findings of the run.
package reassessment

import (
	"context"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/imagestream"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/selection"
)

// Of evaluates gates, risks and health of the present cluster, for the update of a complete run whose verdict has not
// expired, and returns its report with this verdict. Everything that depends on the release alone, and the results of
// its checks, are taken from the run. Acceptances come from the run and from ClusterVersion. The coverage of the
// judgement is the coverage in the run's record.
//
// A report of another kind of run, such as a later update of a path, is returned unchanged.
func Of(ctx context.Context, cluster *cluster.Cluster, run record.Record, stored report.Report,
	settings scene.Settings,
) (report.Report, error) {
	if run.Phase != record.Complete || run.Provisional || !stored.Holds() || run.Verified() != nil {
		return stored, nil
	}
	covered, err := selection.Recorded(run)
	if err != nil {
		return report.Report{}, err
	}
	if settings.Judgement, err = covered.Judgement(settings, run); err != nil {
		return report.Report{}, err
	}
	settings.Judgement.Accept = acceptance.Named("run "+run.ID, stored.Verdict.Accepted...)
	s, err := scene.Open(ctx, cluster, settings, access.Needs{})
	if err != nil {
		return report.Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Remaining())
	defer cancel()
	return judgeAgain(ctx, s, stored), ctx.Err()
}

// judgeAgain folds what the run found and what the built-in checks find now.
func judgeAgain(ctx context.Context, s scene.Scene, stored report.Report) report.Report {
	version, from := stored.Target.Version, departure.Present()
	present := collector.Collect(ctx, departure.Sources(s, from, version),
		func(collector.Source, []finding.Finding) {}).Merged(s.Account(version).Accepted())
	findings := append(unchanged(s.Settings.Judgement, stored.Findings), present.Findings...)
	findings = append(findings, acceptance.Review(acceptance.Target{Account: s.Account(version), Findings: findings})...)
	policy := departure.Policy(s, from, version)
	policy.Force, policy.ForceReason, policy.ForcedBy = stored.Verdict.Forced, stored.Verdict.ForceReason, stored.Verdict.ForcedBy
	stored.Expected = expectedAgain(s.Settings.Judgement, stored.Expected, present)
	decided, folded := departure.Fold(findings, stored.Expected, policy)
	decided.ValidUntil, decided.Narrowed = stored.Verdict.ValidUntil, stored.Verdict.Narrowed
	stored.Verdict, stored.Findings = decided, folded
	stored.CVO = s.Predict(cvo.Request{Version: version, Signed: signed(stored.Target), PayloadVersion: version}, policy, folded)
	stored.Actions = nil
	if stored.Permits() {
		stored.Actions = s.StartOf(update.Release{Version: version, Image: stored.Target.Image})
	}
	if stored.Standing != nil {
		stored.Standing.Judged = words.Time(s.Start)
	}
	return stored
}

// unchanged are the findings of a run that the built-in checks do not make.
func unchanged(judgement scene.Judgement, findings []finding.Finding) []finding.Finding {
	external := dependency.Name
	var kept []finding.Finding
	for _, f := range findings {
		builtin := f.Source == finding.SourceGate || f.Source == finding.SourceRisk || f.Source == finding.SourceHealth
		ofRelease := definition.Reports(f.Name) || strings.HasPrefix(f.Name, imagestream.Name)
		again := builtin && !ofRelease && (judgement.Dependencies != nil || !strings.HasPrefix(f.Name, external))
		if again {
			continue
		}
		kept = append(kept, f)
	}
	return kept
}

// expectedAgain counts the checks of the run that are not built in, and the built-in ones as they reported now.
func expectedAgain(judgement scene.Judgement, then verdict.Expectation, now collector.Collection) verdict.Expectation {
	own := map[string]bool{}
	for _, each := range builtin.Checks(judgement) {
		own[each.Name] = true
	}
	missing := slices.DeleteFunc(slices.Clone(then.Missing), func(name string) bool { return own[name] })
	others := max(then.Checks-len(own), len(missing))
	missing = append(missing, now.Missing...)
	slices.Sort(missing)
	return verdict.Expectation{Checks: others + now.Expected, Reported: others + now.Expected - len(missing), Missing: missing}
}

// signed is true if CVO is known to have verified the signature, nil otherwise.
func signed(target report.Target) *bool {
	if target.Verified {
		return new(true)
	}
	return nil
}
