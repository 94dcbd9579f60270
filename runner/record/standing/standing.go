// Package standing answers: which findings does a recorded run have, and is its verdict still valid?
//
// A reader that acts on a stored verdict, or shows it, asks a [Question]: [Question.Newest] selects the run of a target
// whose verdict counts, and [Question.Of] returns the standing of a verdict, with the reason.
package standing

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/selection"
)

var (
	nameRecord = finding.NewName("RunRecord", "The finding that replaces the findings of a record that is not authentic.")

	reasonCanceled = finding.NewReason("Canceled", finding.Explanation{
		Meaning: "The run was canceled before the check had reported.",
		Cause:   "A user requested the cancellation of the run.",
		Remedy:  "Run the preflight again, and let it finish.",
	})
	reasonUnauthenticRecord = finding.NewReason("UnauthenticRecord", finding.Explanation{
		Meaning: "The record of the run may differ from what the run recorded.",
		Cause: "The record was edited, copied, or written by a version of the tool that does not authenticate " +
			"records. Or the key of the records has been deleted or replaced since (Secret preflight-record-key in " +
			"the namespace openshift-cluster-version).",
		Remedy: "Run the preflight again. If the record was edited, find out who may write ConfigMaps in that namespace: " +
			"`oc adm policy who-can update configmaps -n openshift-cluster-version`.",
	})
	reasonUnverifiableRecord = finding.NewReason("UnverifiableRecord", finding.Explanation{
		Meaning: "The record of the run cannot be authenticated, because the user may not read the key.",
		Cause:   "The user may not get the Secret preflight-record-key in the namespace openshift-cluster-version.",
		Remedy:  "Ask an administrator to bind the role that `oc preflight auth` prints.",
	})
)

// Question is the question about a stored verdict: may the present cluster be updated to the target of a run?
type Question struct {
	Present

	// Asked is the coverage that the verdict must have.
	Asked selection.Asked
	// Runs are all recorded runs, as they are listed: another run of the target may supersede one.
	Runs []record.Record
}

// Of returns the report of a recorded run with its standing: what its verdict is worth for the question, or the holder
// of a run in progress. [report.Report.Refusal] is why it does not permit the update.
func (q Question) Of(ctx context.Context, recorded record.Record) (report.Report, error) {
	stored, err := Stored(recorded)
	if err != nil {
		return report.Report{}, err
	}
	stored.Standing = &report.Standing{Time: words.Time(q.Now)}
	if recorded.Phase == record.Running {
		if !recorded.Abandoned(q.Now) {
			stored.Standing.Holder = recorded.Holder
		}
		return stored, nil
	}
	if recorded.Authentication.State != record.Authentic {
		return stored, nil // it has no verdict that could end
	}
	stored.Standing.Ended = q.ended(ctx, recorded, stored)
	stored.Standing.Lacks, stored.Standing.Remarks = q.Asked.Lacks(recorded), q.Asked.Remarks(recorded)
	return stored, nil
}

// ended is why the verdict of a recorded run no longer holds. What supersedes it says more about the newer run than its
// record does.
func (q Question) ended(ctx context.Context, recorded record.Record, stored report.Report) []string {
	causes := Changed(ctx, recorded, stored, q.Present)
	switch superseded := q.Superseded(recorded); {
	case superseded != "":
		causes = append([]string{superseded}, causes...)
	case recorded.Ended != "" && !slices.Contains(causes, recorded.Ended):
		causes = append([]string{recorded.Ended}, causes...)
	}
	return causes
}

// Stored returns the report of a recorded run. Without a report it is composed of the
// recorded findings, and never Ready, since acceptances and built-in checks are
// evaluated at the end of a run. The error names the run whose report is unreadable.
//
// Of a record that is not authentic it has one finding, which is inconclusive.
func Stored(recorded record.Record) (report.Report, error) {
	if err := recorded.Verified(); err != nil {
		return unverified(recorded, err), nil
	}
	if len(recorded.Report) == 0 {
		return Partial(recorded), nil
	}
	stored, err := report.Read(bytes.NewReader(recorded.Report))
	if err != nil {
		return report.Report{}, fmt.Errorf("the recorded report of run %s cannot be read: %w", recorded.ID, err)
	}
	stored.Run.Phase = string(recorded.Phase)
	return boundTimes(stored, recorded.CompletionTime), nil
}

// boundTimes bounds the times of a report by the end of its run.
func boundTimes(stored report.Report, end time.Time) report.Report {
	if end.IsZero() {
		return stored
	}
	if at, err := time.Parse(time.RFC3339, stored.Run.CompletionTime); err != nil || at.After(end) {
		stored.Run.CompletionTime = words.Time(end)
	}
	return BoundValidity(stored)
}

// BoundValidity bounds the stated end of the validity of a verdict as ValidUntil does.
func BoundValidity(stored report.Report) report.Report {
	if until, known := ValidUntil(stored); known && stored.Verdict.ValidUntil != "" {
		stored.Verdict.ValidUntil = words.Time(until)
	}
	return stored
}

func unverified(recorded record.Record, cause error) report.Report {
	found := finding.Unknown(reasonUnauthenticRecord, "%v; its verdict and its findings are not used",
		cause).Remedy("Run the preflight again.").Do(finding.Retry(""))
	if recorded.Authentication.State == record.Unverifiable {
		found = finding.Unknown(reasonUnverifiableRecord, "%v; its verdict and its findings are not used", cause).
			Remedy("Ask an administrator to grant the permission to read the key of the records, or run the " +
				"preflight again.").Do(finding.Roles())
	}
	recorded.Checks, recorded.Results = nil, nil
	if recorded.Target.Digest() == "" || !plain(recorded.Target.Image) || !plain(recorded.Target.Version) || !plain(recorded.From) {
		recorded.Target, recorded.From = update.Release{}, ""
	}
	return compose(recorded, []finding.Finding{found.Named(nameRecord).From(finding.SourceGate)}, verdict.Expectation{})
}

// plain is true for a text that a shell passes as one word.
func plain(text string) bool {
	return regexp.MustCompile("^[0-9A-Za-z.:/@+_-]*$").MatchString(text)
}

// Partial returns the report of a run without a recorded one.
func Partial(recorded record.Record) report.Report {
	findings, missing := reportedSoFar(recorded)
	if recorded.Phase != record.Running {
		findings = append(findings, unreported(recorded.Phase, missing)...)
	}
	return compose(recorded, findings, verdict.Expectation{
		Checks: len(recorded.Checks), Reported: len(recorded.Checks) - len(missing),
		Missing: missing,
	})
}

// compose returns the report of these findings. It is never Ready.
func compose(recorded record.Record, findings []finding.Finding, expected verdict.Expectation) report.Report {
	decided, folded := verdict.Fold(findings, expected, verdict.Policy{})
	if decided.Decision == verdict.Ready {
		decided.Decision = verdict.Undecided
	}
	decided.Narrowed = recorded.Narrowed
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: recorded.ID, StartTime: words.Time(recorded.StartTime), CompletionTime: words.Time(recorded.CompletionTime),
			Phase: string(recorded.Phase), ToolVersion: recorded.ToolVersion,
		},
		Cluster: report.Cluster{Version: recorded.From},
		Target: report.Target{
			Version: recorded.Target.Version, Image: recorded.Target.Image,
			UpdateKind: update.KindOf(recorded.From, recorded.Target.Version), Signers: []string{},
		},
		CVO:     report.CVO{Reason: "NotEvaluated"},
		Verdict: decided, Expected: expected, Findings: folded, Created: []report.Object{},
	}
}

// reportedSoFar returns the recorded findings, and the names of the checks that have not reported.
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

func unreported(phase record.Phase, missing []string) []finding.Finding {
	reason := collector.ReasonInterrupted
	if phase == record.Canceled {
		reason = reasonCanceled
	}
	findings := make([]finding.Finding, 0, len(missing))
	for _, check := range missing {
		findings = append(findings, finding.Unknown(reason, "the run ended before the check reported").
			Named(check).From(finding.SourceJob).Remedy("Run the preflight again, and let it finish."))
	}
	return findings
}

// Present is the cluster and the time for which the validity of a verdict is evaluated.
type Present struct {
	Cluster *snapshot.Cluster
	Now     time.Time
}

// Changed returns why the results of the checks of a recorded run are no longer valid, even if a newer verdict counts:
// they are too old, or the cluster has changed. It is empty while they are valid.
func Changed(ctx context.Context, recorded record.Record, stored report.Report, present Present) []string {
	var causes []string
	if cause := Expired(stored, present.Now); cause != "" {
		causes = append(causes, cause)
	}
	switch {
	case recorded.Fingerprint != nil:
		return append(causes, fingerprint.Fingerprint(recorded.Fingerprint).Changes(fingerprint.Read(ctx, present.Cluster))...)
	case recorded.Phase == record.Complete:
		return append(causes, "unknown whether the cluster has changed: its state was not recorded")
	}
	return causes
}

// Superseded returns why the verdict of a recorded run no longer counts: another run of the same update has a verdict
// and ended later. It is empty if there is none. A later update of a path is not the same update as the cluster's
// update to its target. A Ready that lacks some of the requested coverage does not supersede a verdict that has it: the
// decision would then rest on less.
func (q Question) Superseded(recorded record.Record) string {
	for _, other := range q.Runs {
		if !sameUpdate(other, recorded) || !after(other, recorded) || q.isLess(other, recorded) {
			continue
		}
		if err := other.Verified(); err != nil {
			return fmt.Sprintf("run %s of the same target is newer: %v", other.ID, err)
		}
		return fmt.Sprintf("run %s of the same target is newer, with the decision %s", other.ID, other.Decision)
	}
	return ""
}

// Newest returns the run whose verdict on a target counts, by the digest of its release: the complete run that no other
// supersedes, and between two of them the one with the requested coverage. Its verdict may have expired, and its record
// may not be authentic. It returns false if no complete run of the target is recorded.
func (q Question) Newest(digest string) (record.Record, bool) {
	var newest record.Record
	for _, each := range q.Runs {
		if each.Phase != record.Complete || each.Provisional || each.Target.Digest() != digest || q.Superseded(each) != "" {
			continue
		}
		if newest.ID == "" || q.isLess(newest, each) {
			newest = each
		}
	}
	return newest, newest.ID != ""
}

func sameUpdate(a, b record.Record) bool {
	return a.ID != b.ID && a.Phase == record.Complete && a.Provisional == b.Provisional && a.Target.Digest() == b.Target.Digest()
}

// after reports whether a run ended after another; of two that ended in the same second, one that is not Ready did.
func after(a, b record.Record) bool {
	if by := a.CompletionTime.Compare(b.CompletionTime); by != 0 {
		return by > 0
	}
	return a.Decision != string(verdict.Ready) && b.Decision == string(verdict.Ready)
}

// isLess reports whether a run is Ready without what is asked, and the other one covers it.
func (q Question) isLess(run, other record.Record) bool {
	return run.Verified() == nil && run.Decision == string(verdict.Ready) && len(q.Asked.Lacks(run)) > 0 &&
		other.Verified() == nil && len(q.Asked.Lacks(other)) == 0
}

// Expired returns why a verdict is too old at that time; empty if it is not. A report
// without the end of its validity is valid until fingerprint.MaxAge after the end of
// the run.
func Expired(stored report.Report, now time.Time) string {
	until, known := ValidUntil(stored)
	switch {
	case !known:
		return "the report contains neither the time of its verdict nor the end of its validity"
	case now.Before(until):
		return ""
	}
	return "it was valid until " + words.Time(until)
}

// ValidUntil returns the end of the validity of a stored verdict, at most
// fingerprint.MaxAge after the end of the run; false for a report without times.
func ValidUntil(stored report.Report) (time.Time, bool) {
	if end, err := time.Parse(time.RFC3339, stored.Run.CompletionTime); err == nil {
		return record.ValidUntil(stored.Verdict, end), true
	}
	until, err := time.Parse(time.RFC3339, stored.Verdict.ValidUntil)
	return until, err == nil
}

// Needs are the permissions to evaluate the validity of a verdict. A verdict whose
// fingerprint cannot be read is not valid.
func Needs() access.Needs {
	return access.Needs{Optional: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
		{Verb: "list", Group: "config.openshift.io", Resource: "clusteroperators"},
		{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "list", Resource: "nodes"},
	}}
}

// Verdicts are the recorded verdicts with their standing for a question.
type Verdicts struct {
	Question

	reports map[string]report.Report
}

// Read reads the reports of the complete runs whose verdicts no other run supersedes, with their standing. get reads
// one record, whose report must be included. A record that was edited since it was listed has no verdict. A record that
// could not be read has none either, and failed receives the error; a record that cannot be decoded, such as a later
// version's, is Undecided. The error comes from ctx.
func (q Question) Read(ctx context.Context, get func(ctx context.Context, id string) (record.Record, error),
	failed func(id string, err error),
) (Verdicts, error) {
	made := Verdicts{Question: q, reports: map[string]report.Report{}}
	for _, listed := range q.Runs {
		if listed.Phase != record.Complete || listed.Provisional || listed.Verified() != nil || q.Superseded(listed) != "" {
			continue
		}
		recorded, err := get(ctx, listed.ID)
		if err == nil {
			err = recorded.Verified()
		}
		switch {
		case ctx.Err() != nil:
			return made, ctx.Err()
		case errors.As(err, new(*record.UnauthenticError)):
			continue
		case err != nil:
			failed(listed.ID, err)
			continue
		}
		stored, err := q.Of(ctx, recorded)
		if err != nil {
			failed(listed.ID, err)
			stored = report.Report{
				Run: report.Run{ID: listed.ID, Phase: report.PhaseComplete}, Verdict: verdict.Verdict{Decision: verdict.Undecided},
				Standing: &report.Standing{Ended: []string{"its report cannot be used"}},
			}
		}
		made.reports[listed.ID] = stored
	}
	return made, nil
}

// Report returns the report of a run, by its ID; false if another run supersedes its verdict, or it could not be read.
func (v Verdicts) Report(id string) (report.Report, bool) {
	stored, found := v.reports[id]
	return stored, found
}

// On returns the report of the run whose verdict on a target counts, by the digest of its release, for the requested
// coverage; false if there is none.
func (v Verdicts) On(digest string, asked selection.Asked) (report.Report, bool) {
	question := v.Question
	question.Asked = asked
	recorded, found := question.Newest(digest)
	stored, read := v.reports[recorded.ID]
	if !found || !read {
		return report.Report{}, false
	}
	worth := *stored.Standing
	worth.Lacks, worth.Remarks = asked.Lacks(recorded), asked.Remarks(recorded)
	stored.Standing = &worth
	return stored, true
}

// Published returns the records for readers without reports, such as the cluster-version operator: if a Ready verdict
// permits no update, Ended contains the cause; records whose verdict does not count are omitted.
func (v Verdicts) Published() []record.Record {
	var published []record.Record
	for _, recorded := range v.Runs {
		if recorded.Phase == record.Complete && !recorded.Provisional && recorded.Verified() == nil {
			newest, _ := v.Newest(recorded.Target.Digest())
			if newest.ID != recorded.ID {
				continue
			}
			stored, read := v.reports[recorded.ID]
			switch {
			case !read:
				recorded.Ended = cmp.Or(recorded.Ended, "its report cannot be read")
			case stored.Verdict.Decision == verdict.Ready || !stored.Holds():
				recorded.Ended = cmp.Or(recorded.Ended, stored.Refusal())
			}
		}
		published = append(published, recorded)
	}
	return published
}
