package runner

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/fingerprint"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
)

// Stored makes a report of a recorded run: the one that it told when it ended,
// or, of one that has not ended or could not tell, what its checks have found so
// far. What the run accepts, and the checks that are built in, are known at its
// end only, so that a run which has not told its report is never Ready.
func Stored(rec record.Record) (report.Report, error) {
	if len(rec.Report) == 0 {
		return soFar(rec), nil
	}
	told, err := report.Read(bytes.NewReader(rec.Report))
	if err != nil {
		return report.Report{}, fmt.Errorf("the report of run %s is recorded, but cannot be read: %w", rec.ID, err)
	}
	told.Run.Phase = string(rec.Phase)
	told.Run.CompletionTime = cmp.Or(told.Run.CompletionTime, timestamp(rec.CompletionTime))
	return told, nil
}

// soFar is what is known of a run that has told no report.
func soFar(rec record.Record) report.Report {
	findings, missing := heard(rec)
	if rec.Phase != record.Running {
		findings = append(findings, unheard(rec.Phase, missing)...)
	}
	expected := verdict.Expectation{Checks: len(rec.Checks), Reported: len(rec.Checks) - len(missing), Missing: missing}
	decided, folded := verdict.Fold(findings, expected, verdict.Policy{})
	if decided.Decision == verdict.Ready {
		decided.Decision = verdict.Undecided
	}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: rec.ID, StartTime: timestamp(rec.StartTime), CompletionTime: timestamp(rec.CompletionTime),
			Phase: string(rec.Phase), ToolVersion: rec.ToolVersion,
		},
		Cluster: report.Cluster{Version: rec.From},
		Target:  report.Target{Version: rec.To, Image: rec.Image, UpdateKind: kindOf(rec), Signers: []string{}},
		CVO:     report.CVO{Reason: "NotEvaluated"},
		Verdict: decided, Expected: expected, Findings: folded, Created: []preflight.Object{},
	}
}

// heard is what the checks of a run have found, and the names of those that have
// not answered.
func heard(rec record.Record) (findings []finding.Finding, missing []string) {
	answered := map[string]bool{}
	for _, result := range rec.Results {
		answered[result.Check] = true
		findings = append(findings, result.Findings...)
	}
	for _, check := range rec.Checks {
		if !answered[check] {
			missing = append(missing, check)
		}
	}
	slices.Sort(missing)
	return findings, missing
}

// unheard says of checks that nobody waits for them any more.
func unheard(phase record.Phase, missing []string) []finding.Finding {
	findings := make([]finding.Finding, 0, len(missing))
	for _, check := range missing {
		findings = append(findings, finding.Unknown(finding.Reason(string(phase)), "the run ended before the check had answered").
			Named(check).
			From(finding.SourceJob).
			Remedy("Run the preflight again and let it finish."))
	}
	return findings
}

// kindOf is empty for versions that cannot be compared.
func kindOf(rec record.Record) string {
	asked, err := update.Parse(rec.From, rec.To)
	if err != nil {
		return ""
	}
	return string(asked.Kind())
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Recall is Stored, with what has become of the run since: who holds it, or what
// has ended the validity of its verdict. now is by the clock of the cluster.
func Recall(ctx context.Context, rec record.Record, cluster *snapshot.Cluster, now time.Time) (report.Report, error) {
	told, err := Stored(rec)
	if err != nil {
		return report.Report{}, err
	}
	told.Standing = &report.Standing{Time: timestamp(now), Holder: rec.Holder}
	if rec.Phase != record.Running {
		told.Standing.Holder, told.Standing.Ended = "", ended(ctx, rec, told, cluster, now)
	}
	return told, nil
}

// RecallNeeds is what Recall asks of the API server. A verdict of which it may
// not be seen what it rests on does not hold.
func RecallNeeds() access.Needs {
	return access.Needs{Optional: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
		{Verb: "list", Group: "config.openshift.io", Resource: "clusteroperators"},
		{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "list", Resource: "nodes"},
	}}
}

// ended says what has ended the validity of a verdict.
func ended(ctx context.Context, rec record.Record, told report.Report, cluster *snapshot.Cluster, now time.Time) []string {
	var causes []string
	if cause := Expired(told, now); cause != "" {
		causes = append(causes, cause)
	}
	switch {
	case rec.Basis != nil:
		return append(causes, fingerprint.Fingerprint(rec.Basis).Changes(fingerprint.Read(ctx, cluster))...)
	case rec.Phase == record.Complete:
		return append(causes, "what it rests on was not recorded, so whether that has changed is not known")
	}
	return causes
}

// Expired says why a verdict is too old to hold at that time; it is empty while
// the verdict is not. Where the report does not say how long its verdict holds,
// it is fingerprint.MaxAge from its end.
func Expired(told report.Report, now time.Time) string {
	until, known := holdsUntil(told)
	switch {
	case !known:
		return "it does not say when it was made, and how long it holds"
	case now.Before(until):
		return ""
	}
	return "it was valid until " + timestamp(until)
}

// holdsUntil is false for a report that has no times.
func holdsUntil(told report.Report) (time.Time, bool) {
	if until, err := time.Parse(time.RFC3339, told.Verdict.ValidUntil); err == nil {
		return until, true
	}
	end, err := time.Parse(time.RFC3339, told.Run.CompletionTime)
	return end.Add(fingerprint.MaxAge), err == nil
}
