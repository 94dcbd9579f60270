package runner

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/contents"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/execution"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
)

// followed is a run that another process has brought to its end.
type followed struct {
	preparation preparation
	// contents are the contents of the release as this process has read them.
	contents contents.Contents
	finished record.Record
}

func (f followed) execute(context.Context) (execution.Found, error) {
	return execution.Found{}, nil // the other process has executed it
}

// conclude evaluates the findings of the other process with the acceptances of this user.
func (f followed) conclude(context.Context, execution.Found, error) (report.Report, error) {
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
		f.preparation.request.shared.put(result.Check, f.finished.Target.Version, result.Findings)
	}
	f.preparation.progress.Decided(stored)
	return stored, nil
}

// refold evaluates the findings of another user's run with the acceptances of this user.
func (f followed) refold(stored report.Report) report.Report {
	findings := slices.Clone(stored.Findings)
	for i := range findings {
		if bypass := findings[i].Bypass; bypass != nil && bypass.By != finding.ByAdminAck {
			findings[i].Bypass = nil
		}
	}
	p, before := f.preparation, stored.Verdict
	policy := departure.Policy(p.scene, p.request.from, stored.Target.Version)
	policy.Provisional = before.Provisional
	stored.Verdict, stored.Findings = departure.Fold(findings, stored.Expected, policy)
	stored.Verdict.ValidUntil, stored.Verdict.Narrowed = before.ValidUntil, before.Narrowed
	until, known := standing.ValidUntil(stored)
	if ends := p.scene.Account(stored.Target.Version).Until(stored.Verdict.Accepted); known && !ends.IsZero() && ends.Before(until) {
		stored.Verdict.ValidUntil = words.Time(ends)
	}
	stored.CVO = p.predict(f.contents, policy, stored.Findings)
	return stored
}

// unheld is a run without Jobs: nothing of it can be continued by another
// process, so it is recorded when it has ended.
type unheld struct {
	draft draft
	id    string
}

func (u unheld) execute(ctx context.Context) (execution.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, u.draft.preparation.scene.Remaining())
	defer cancel()
	return u.draft.execution(nil).Run(ctx)
}

func (u unheld) conclude(ctx context.Context, found execution.Found, failure error) (report.Report, error) {
	if failure != nil {
		return report.Report{}, failure
	}
	u.draft.preparation.scene = found.Scene
	p := u.draft.preparation
	decided := p.reportOf(ctx, u.draft.contents, found, reported{id: u.id, started: p.scene.Start})
	if u.draft.contents.Unread || !estate.RunsJobs(p.scene.Cluster, p.options.Estate) { // a record would end the verdict of a complete run
		decided.Run.ID = ""
	} else {
		decided = u.record(ctx, decided)
	}
	p.progress.Decided(decided)
	return decided, nil
}

// recordTimeout bounds the writing of the record, and the reading and writing of its baseline before its end.
const recordTimeout = 3 * hold.Timeout

// record writes the record of the run. A run that the user may not record has no
// ID: every ID that is shown names a record.
func (u unheld) record(ctx context.Context, decided report.Report) report.Report {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	p := u.draft.preparation
	err := recordstore.New(p.scene.Cluster.Kubernetes).Add(bound, u.draft.intent(u.id), func(bound context.Context) (record.Ending, error) {
		decided = p.withBaseline(ctx, decided)
		ending, err := hold.EndingOf(decided)
		ending.Fingerprint = fingerprint.Read(bound, p.scene.Snapshot)
		return ending, err
	})
	switch {
	case err == nil:
		p.progress.Started(u.id)
		return decided
	case apierrors.IsForbidden(err):
		p.progress.Step("the run is not recorded because a permission is missing")
	default:
		p.progress.Stepf("the run is not recorded: %v", err)
	}
	decided.Run.ID = ""
	return decided
}

// sharedResults are the results of the checks of a path. A check that several releases
// have with the same image runs once. The updates of a path run one after the other; a nil
// value shares nothing.
type sharedResults struct {
	// identities maps the names of the checks of the present update to their identities.
	identities map[string]string
	// results are settled, by identity.
	results map[string]sharedResult
}

// sharedResult is the result of a check of the release of that version.
type sharedResult struct {
	version  string
	findings []finding.Finding
}

func newSharedResults() *sharedResults {
	return &sharedResults{identities: map[string]string{}, results: map[string]sharedResult{}}
}

// known returns the result that an earlier update of the path had of the same check, by the
// checks of a draft.
func (s *sharedResults) known(draft jobplan.Draft) func(jobplan.Check) ([]finding.Finding, bool) {
	return func(check jobplan.Check) ([]finding.Finding, bool) {
		if s == nil {
			return nil, false
		}
		identity, comparable := draft.Identity(check)
		if !comparable {
			delete(s.identities, check.Name)
			return nil, false
		}
		s.identities[check.Name] = identity
		result, known := s.results[identity]
		if !known {
			return nil, false
		}
		findings := slices.Clone(result.findings)
		for i := range findings {
			findings[i] = findings[i].Noted("The check is identical to %s, and ran once.", result.version)
		}
		return findings, true
	}
}

// put keeps the result of a check of the present update, if it is settled.
func (s *sharedResults) put(check, version string, findings []finding.Finding) {
	if s == nil || !hold.IsSettled(findings) || s.identities[check] == "" {
		return
	}
	if _, known := s.results[s.identities[check]]; !known {
		s.results[s.identities[check]] = sharedResult{version: version, findings: slices.Clone(findings)}
	}
}
