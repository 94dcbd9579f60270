// Package projection answers: what is the status of an UpdatePreflight, given the recorded runs?
//
// It is pure: the input is the object, the verdict of its target and the time, the output is the status. The previous
// status only counts for the times of its conditions and for the history of releases that the target has selected
// before.
package projection

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// Status is the status of an object.
func Status(object *v1alpha1.UpdatePreflight, o Observation) v1alpha1.UpdatePreflightStatus {
	p := projected{object: object, observed: o}
	p.opens, p.closes = Times(object.Spec)
	p.ended = p.whyEnded()
	status := v1alpha1.UpdatePreflightStatus{ObservedGeneration: object.Generation, Phase: p.phase()}
	if o.Target.Image != "" {
		status.Target = p.release()
	}
	if p.valid() {
		p.decide(&status)
	}
	if status.Phase == v1alpha1.Checking {
		status.Run = words.Cut(o.Running.ID, maxID)
	}
	status.History = p.history()
	p.report(&status)
	status.AfterUpdate = p.judgement()
	status.Conditions = p.conditions(status)
	return status
}

func (p projected) phase() v1alpha1.Phase {
	opened, closed := !p.observed.Now.Before(p.opens), !p.closes.IsZero() && !p.observed.Now.Before(p.closes)
	switch {
	case p.observed.Target.Image == "":
		return v1alpha1.New
	case !opened:
		return v1alpha1.Pending
	case p.observed.Running != nil:
		return v1alpha1.Checking
	case p.valid():
		return v1alpha1.Phase(p.observed.Verdict.Verdict.Decision)
	case closed || p.expired():
		return v1alpha1.Expired
	}
	return v1alpha1.Pending
}

// Next is the next time after now at which the status changes without an event; zero for never.
func Next(object *v1alpha1.UpdatePreflight, status v1alpha1.UpdatePreflightStatus, now time.Time) time.Time {
	opens, closes := Times(object.Spec)
	times := []time.Time{opens, closes}
	if status.ValidUntil != nil {
		times = append(times, status.ValidUntil.Time)
	}
	if status.ReportTime != nil {
		times = append(times, status.ReportTime.Add(reportInterval))
	}
	var next time.Time
	for _, at := range times {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// history returns the history of the previous status, with the verdict of the target, valid or not, as the newest
// entry: one per digest. A verdict with other acceptances, or from before the request, does not belong to the object.
func (p projected) history() []v1alpha1.Verdict {
	history := slices.Clone(p.object.Status.History)
	if p.observed.Verdict != nil && terms(*p.observed.Verdict, p.object) == "" && !p.before() {
		completed, _ := time.Parse(time.RFC3339, p.observed.Verdict.Run.CompletionTime) // before has parsed it
		last := v1alpha1.Verdict{
			Release: *p.release(), Run: words.Cut(p.observed.Verdict.Run.ID, maxID), Decision: string(p.observed.Verdict.Verdict.Decision),
			CompletionTime: metav1.Time{Time: completed},
		}
		digest := p.observed.Target.Digest()
		history = slices.DeleteFunc(history, func(v v1alpha1.Verdict) bool { return update.Release{Image: v.Image}.Digest() == digest })
		history = append(history, last)
	}
	slices.SortStableFunc(history, func(a, b v1alpha1.Verdict) int { return b.CompletionTime.Compare(a.CompletionTime.Time) })
	return history[:min(len(history), v1alpha1.MaxHistory)]
}

// documentWindow is how long a window of mode Document without an end is open.
const documentWindow = 30 * time.Minute

// Times are the times at which the preflight may start: from opens until closes, which is zero for no end. opens is
// zero for immediately.
func Times(spec v1alpha1.UpdatePreflightSpec) (opens, closes time.Time) {
	switch {
	case spec.When == nil:
	case spec.When.At != nil:
		opens = spec.When.At.Time
	case spec.When.Window != nil:
		window := spec.When.Window
		opens = window.Start.Time
		switch {
		case window.End != nil:
			closes = window.End.Time
		case window.Mode != v1alpha1.Operator:
			closes = opens.Add(documentWindow)
		}
	}
	return opens, closes
}

// Observation is the state on which a status depends, in addition to the object.
type Observation struct {
	// Now is the time by the clock of the cluster.
	Now time.Time
	// Target is the release that spec.target selects; zero where it selects none, and then
	// Unknown states why.
	Target  update.Release
	Unknown string
	// Outlook is set for the update that is scheduled for the managed-upgrade-operator.
	Outlook *Outlook
	// Running is the run in progress of the target; nil for none.
	Running *Run
	// Verdict is the report of the last complete run of the target that covers the object, with its standing; nil for
	// none. Its record is authentic.
	Verdict *report.Report
	// Failure is why the last run, which ended after the run of the verdict, has no record; empty otherwise.
	Failure string
	// Waiting is why the preflight does not start although it is due; empty otherwise.
	Waiting string
	// Attestation is the signed verdict; empty if it is not signed.
	Attestation string
	// Updated is whether the update to the target is complete, without times; nil while the
	// cluster neither runs the target nor updates to it.
	Updated *metav1.Condition
	// After is the judgement of the update to the target; nil while there is none.
	After *afterupdate.Report
}

// Run is a run in progress.
type Run struct {
	// ID is empty while the run has no record.
	ID string
}

const (
	maxID      = 64
	maxVersion = 128
	maxName    = 256
)

// projected is an object with what its status depends on.
type projected struct {
	observed      Observation
	object        *v1alpha1.UpdatePreflight
	opens, closes time.Time
	// ended is why the verdict does not count; empty where it does, and without one.
	ended string
}

func (p projected) release() *v1alpha1.Release {
	release := v1alpha1.Release{Version: p.observed.Target.Version, Image: p.observed.Target.Image}
	if release.Version == "" && p.observed.Verdict != nil {
		release.Version = p.observed.Verdict.Target.Version
	}
	release.Version = words.Cut(release.Version, maxVersion)
	return &release
}

// reportInterval is how long a time of report is kept.
const reportInterval = 30 * time.Minute

// report sets what readers of a copy of the status need, such as the hub of a fleet, which is asked by
// administrators: scalar values, the signed verdict and the time.
func (p projected) report(status *v1alpha1.UpdatePreflightStatus) {
	if p.object.Owned() {
		return
	}
	names := status.Blocking
	if len(names) == 0 {
		names = status.Undecided
	}
	status.Causes = joined(names)
	if status.Decision != "" && len(p.observed.Attestation) <= v1alpha1.MaxAttestation {
		status.Attestation = p.observed.Attestation
	}
	status.ReportTime = p.object.Status.ReportTime
	if at := status.ReportTime; at == nil || at.After(p.observed.Now) || !p.observed.Now.Before(at.Add(reportInterval)) {
		status.ReportTime = &metav1.Time{Time: p.observed.Now.Truncate(time.Second)}
	}
}

// joined are the first names that fit, separated by commas.
func joined(names []string) string {
	text := ""
	for _, name := range names {
		next := strings.TrimPrefix(text+","+strings.ReplaceAll(words.External(name), ",", "."), ",")
		if len(next) > v1alpha1.MaxCauses {
			break
		}
		text = next
	}
	return text
}

// MeetsTerms reports whether a verdict results from a run with the accepted findings of the
// object. A forced verdict is not.
func MeetsTerms(decided report.Report, object *v1alpha1.UpdatePreflight) bool {
	return terms(decided, object) == ""
}

// terms returns why MeetsTerms is false for a verdict; empty if it is true. An object of the controller accepts the
// findings that its runs and command line runs accepted.
func terms(decided report.Report, object *v1alpha1.UpdatePreflight) string {
	if decided.Verdict.Forced {
		return "its verdict was forced"
	}
	if object.Owned() {
		return ""
	}
	for _, found := range decided.Findings {
		accepted := slices.Contains(object.Spec.AcceptedFindings, found.Name)
		switch {
		case acceptedElsewhere(found) && !accepted:
			return fmt.Sprintf("its verdict accepts %s, but spec.acceptedFindings does not", found.Name)
		case accepted && found.Open() && found.Source.Acceptable():
			return fmt.Sprintf("its verdict does not accept %s, but spec.acceptedFindings does", found.Name)
		}
	}
	return ""
}

// acceptedElsewhere reports whether a finding was accepted by the request of a run:
// every run has the acceptances of ClusterVersion.
func acceptedElsewhere(found finding.Finding) bool {
	return found.Bypass != nil && found.Bypass.By == finding.ByAcceptedRisk && found.Bypass.Detail != acceptance.Origin
}

const maxCauses = 5

// valid reports whether there is a verdict that counts.
func (p projected) valid() bool { return p.observed.Verdict != nil && p.ended == "" }

// before reports whether the verdict is older than the request.
func (p projected) before() bool {
	completed, err := time.Parse(time.RFC3339, p.observed.Verdict.Run.CompletionTime)
	return err != nil || completed.Before(p.opens)
}

// whyEnded returns why the verdict does not belong to the object.
func (p projected) whyEnded() string {
	if p.observed.Verdict == nil {
		return ""
	}
	completed, err := time.Parse(time.RFC3339, p.observed.Verdict.Run.CompletionTime)
	switch {
	case err != nil:
		return "the time of its verdict is unknown"
	case completed.Before(p.opens):
		return "its verdict is older than the time for which the preflight is requested"
	case p.observed.Verdict.Standing == nil:
		return "unknown whether its verdict is valid"
	case len(p.observed.Verdict.Standing.Ended) > 0:
		return words.Clauses(p.observed.Verdict.Standing.Ended, maxCauses)
	}
	if expired := standing.Expired(*p.observed.Verdict, p.observed.Now); expired != "" {
		return expired
	}
	if unmet := terms(*p.observed.Verdict, p.object); unmet != "" || p.observed.Verdict.Verdict.Decision != verdict.Ready {
		return unmet
	}
	return p.observed.Verdict.Refusal()
}

// expired reports whether the object had a verdict that is no longer valid.
func (p projected) expired() bool {
	return p.observed.Verdict != nil && p.ended != "" && terms(*p.observed.Verdict, p.object) == "" && !p.before()
}

// decide sets what a valid verdict states.
func (p projected) decide(status *v1alpha1.UpdatePreflightStatus) {
	decided := p.observed.Verdict.Verdict
	status.Run = words.Cut(p.observed.Verdict.Run.ID, maxID)
	status.Decision = string(decided.Decision)
	status.Blocking, status.BlockingOmitted = bounded(decided.Blocking)
	status.Undecided, status.UndecidedOmitted = bounded(decided.Undecided)
	status.Accepted, status.AcceptedOmitted = bounded(decided.Accepted)
	if until, known := standing.ValidUntil(*p.observed.Verdict); known {
		status.ValidUntil = &metav1.Time{Time: until}
	}
}

// bounded returns the first names in order, and how many it omits.
func bounded(names []string) (kept []string, omitted int32) {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range sorted[:min(len(sorted), v1alpha1.MaxNames)] {
		kept = append(kept, words.Cut(name, maxName))
	}
	return kept, int32(len(sorted) - len(kept)) //nolint:gosec // a report has far fewer names
}
