package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/record"
)

// JudgeAgain judges gates, risks and health of the cluster as they are now, for the update
// of a complete run whose verdict has not ended, and returns its report with this verdict.
// What depends on the release alone, and the results of its checks, are those of the run.
// Acceptances are those of the run and of ClusterVersion; what the run bypassed by force
// counts. Of options, what the run covers is that of its record.
//
// A report of another run, such as that of a later update of a path, is returned as it is.
func JudgeAgain(ctx context.Context, cluster *cluster.Cluster, run record.Record, stored report.Report, options Options) (report.Report, error) {
	if run.Phase != record.Complete || run.Provisional || !stored.Holds() || run.Verified() != nil {
		return stored, nil
	}
	covered, err := selectionOf(run)
	if err != nil {
		return report.Report{}, err
	}
	options.IgnoredAlerts, options.IgnoredNamespaces = covered.IgnoredAlerts, covered.IgnoredNamespaces
	if options.Fixed, err = removedapi.ParseFixTime(covered.Fixed); err != nil && covered.Fixed != "" {
		return report.Report{}, fmt.Errorf("the record of run %s has a time of the fix that cannot be parsed: %w", run.ID, err)
	}
	options.Accept = acceptance.Named("run "+run.ID, stored.Verdict.Accepted...)
	v, err := presentView(ctx, cluster, options, access.Needs{})
	if err != nil {
		return report.Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.remaining())
	defer cancel()
	return v.judgeAgain(ctx, stored), ctx.Err()
}

// judgeAgain folds what the run found and what the built-in checks find now.
func (v view) judgeAgain(ctx context.Context, stored report.Report) report.Report {
	version := stored.Target.Version
	present := collector.Collect(ctx, v.builtin(version), func(collector.Source, []finding.Finding) {})
	findings := append(v.unchanged(stored.Findings), present.Findings...)
	findings = append(findings, acceptance.Review(acceptance.Target{Account: v.accounts(version), Findings: findings})...)
	policy := v.policy(version)
	policy.Force = false
	decided, folded := verdict.Fold(findings, v.expectedAgain(stored.Expected, present), policy)
	decided.Forced, decided.ValidUntil = stored.Verdict.Forced, stored.Verdict.ValidUntil
	stored.Expected = v.expectedAgain(stored.Expected, present)
	stored.Verdict, stored.Findings = decided, folded
	stored.CVO = v.predictCVO(cvo.Request{Version: version, Signed: signed(stored.Target), PayloadVersion: version}, policy, folded)
	if stored.Standing != nil {
		stored.Standing.Judged = timestamp(v.start)
	}
	return stored
}

// unchanged are the findings of a run that the built-in checks do not make, without what
// force bypassed.
func (v view) unchanged(findings []finding.Finding) []finding.Finding {
	external := dependency.Name
	var kept []finding.Finding
	for _, f := range findings {
		builtin := f.Source == finding.SourceGate || f.Source == finding.SourceRisk || f.Source == finding.SourceHealth
		again := builtin && !strings.HasPrefix(f.Name, definition.Name) && (v.options.Dependencies != nil || !strings.HasPrefix(f.Name, external))
		if again {
			continue
		}
		if f.Bypass != nil && f.Bypass.By == finding.ByForce {
			f.Bypass = nil
		}
		kept = append(kept, f)
	}
	return kept
}

// expectedAgain counts the checks of the run that are not built in, and the built-in ones
// as they reported now.
func (v view) expectedAgain(then verdict.Expectation, now collector.Collection) verdict.Expectation {
	builtin := map[string]bool{}
	for _, each := range v.checks() {
		builtin[each.Name] = true
	}
	missing := slices.DeleteFunc(slices.Clone(then.Missing), func(name string) bool { return builtin[name] })
	others := max(then.Checks-len(builtin), len(missing))
	missing = append(missing, now.Missing...)
	slices.Sort(missing)
	return verdict.Expectation{Checks: others + now.Expected, Reported: others + now.Expected - len(missing), Missing: missing}
}

// signed is what CVO is known to say of a signature: true if it was verified, nil otherwise.
func signed(target report.Target) *bool {
	if target.Verified {
		return new(true)
	}
	return nil
}
