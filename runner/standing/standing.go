// Package standing answers: what did a recorded run find, and does its verdict
// still hold?
package standing

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/fingerprint"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
)

// Of is the report of a recorded run with its standing: whether its verdict still
// holds, and why not, or who holds a run in progress.
func Of(ctx context.Context, cluster *cluster.Cluster, recorded record.Record) (report.Report, error) {
	stored, err := Stored(recorded)
	if err != nil {
		return report.Report{}, err
	}
	now := cluster.Now()
	stored.Standing = &report.Standing{Time: timestamp(now)}
	if recorded.Phase == record.Running {
		stored.Standing.Holder = recorded.Holder
		return stored, nil
	}
	stored.Standing.Ended = Ended(ctx, recorded, stored, Present{Cluster: snapshot.Of(cluster), Now: now})
	return stored, nil
}

// Stored is the report of a recorded run: the one of its end, or, of a run that
// has not ended or ended without one, what its checks have found so far. Such a
// run is never Ready, since acceptances and built-in checks are known only at its
// end.
func Stored(recorded record.Record) (report.Report, error) {
	if len(recorded.Report) == 0 {
		return Partial(recorded), nil
	}
	stored, err := report.Read(bytes.NewReader(recorded.Report))
	if err != nil {
		return report.Report{}, fmt.Errorf("the recorded report of run %s cannot be read: %w", recorded.ID, err)
	}
	stored.Run.Phase = string(recorded.Phase)
	stored.Run.CompletionTime = cmp.Or(stored.Run.CompletionTime, timestamp(recorded.CompletionTime))
	return stored, nil
}

// Partial is what is known of a run without a report.
func Partial(recorded record.Record) report.Report {
	findings, missing := reportedSoFar(recorded)
	if recorded.Phase != record.Running {
		findings = append(findings, neverReported(recorded.Phase, missing)...)
	}
	expected := verdict.Expectation{Checks: len(recorded.Checks), Reported: len(recorded.Checks) - len(missing), Missing: missing}
	decided, folded := verdict.Fold(findings, expected, verdict.Policy{})
	if decided.Decision == verdict.Ready {
		decided.Decision = verdict.Undecided
	}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: recorded.ID, StartTime: timestamp(recorded.StartTime), CompletionTime: timestamp(recorded.CompletionTime),
			Phase: string(recorded.Phase), ToolVersion: recorded.ToolVersion,
		},
		Cluster: report.Cluster{Version: recorded.From},
		Target:  report.Target{Version: recorded.Target.Version, Image: recorded.Target.Image, UpdateKind: update.KindOf(recorded.From, recorded.Target.Version), Signers: []string{}},
		CVO:     report.CVO{Reason: "NotEvaluated"},
		Verdict: decided, Expected: expected, Findings: folded, Created: []finding.Object{},
	}
}

// reportedSoFar are the findings of a run's checks, and the names of those that
// have not reported.
func reportedSoFar(recorded record.Record) (findings []finding.Finding, missing []string) {
	reported := map[string]bool{}
	for _, result := range recorded.Results {
		reported[result.Check] = true
		findings = append(findings, result.Findings...)
	}
	for _, check := range recorded.Checks {
		if !reported[check] {
			missing = append(missing, check)
		}
	}
	slices.Sort(missing)
	return findings, missing
}

// neverReported are the findings of checks whose run ended before they reported.
func neverReported(phase record.Phase, missing []string) []finding.Finding {
	findings := make([]finding.Finding, 0, len(missing))
	for _, check := range missing {
		findings = append(findings, finding.Unknown(finding.Reason(phase), "the run ended before the check reported").
			Named(check).From(finding.SourceJob).Remedy("Run the preflight again and let it finish."))
	}
	return findings
}

// Present is the cluster and the time at which a verdict is to hold.
type Present struct {
	Cluster *snapshot.Cluster
	Now     time.Time
}

// Ended lists why the verdict of a recorded run no longer holds; none while it
// does.
func Ended(ctx context.Context, recorded record.Record, stored report.Report, present Present) []string {
	var causes []string
	if cause := Expired(stored, present.Now); cause != "" {
		causes = append(causes, cause)
	}
	switch {
	case recorded.Fingerprint != nil:
		return append(causes, fingerprint.Fingerprint(recorded.Fingerprint).Changes(fingerprint.Read(ctx, present.Cluster))...)
	case recorded.Phase == record.Complete:
		return append(causes, "the state of the cluster was not recorded, so unknown whether it has changed")
	}
	return causes
}

// Superseded is why the verdict of a recorded run no longer counts: of runs, another
// one of the same target has a verdict and ended later. It is empty where there is
// none.
func Superseded(recorded record.Record, runs []record.Record) string {
	for _, other := range runs {
		if other.Phase == record.Complete && other.Target.Digest() == recorded.Target.Digest() && other.CompletionTime.After(recorded.CompletionTime) {
			return fmt.Sprintf("run %s of the same target is newer, with the decision %s", other.ID, other.Decision)
		}
	}
	return ""
}

// Expired is why a verdict is too old to hold at that time; empty while it is not.
// Where the report has no end of its validity, it is fingerprint.MaxAge after the
// end of the run.
func Expired(stored report.Report, now time.Time) string {
	until, known := ValidUntil(stored)
	switch {
	case !known:
		return "the report has neither the time of its verdict nor the end of its validity"
	case now.Before(until):
		return ""
	}
	return "it was valid until " + timestamp(until)
}

// ValidUntil is when a stored verdict ends to hold; false for a report without
// times.
func ValidUntil(stored report.Report) (time.Time, bool) {
	if until, err := time.Parse(time.RFC3339, stored.Verdict.ValidUntil); err == nil {
		return until, true
	}
	end, err := time.Parse(time.RFC3339, stored.Run.CompletionTime)
	return end.Add(fingerprint.MaxAge), err == nil
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Needs are the permissions to find out whether a verdict still holds. A
// verdict whose fingerprint cannot be read does not hold.
func Needs() access.Needs {
	return access.Needs{Optional: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
		{Verb: "list", Group: "config.openshift.io", Resource: "clusteroperators"},
		{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "list", Resource: "nodes"},
	}}
}
