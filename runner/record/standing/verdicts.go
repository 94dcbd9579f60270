package standing

import (
	"cmp"
	"context"
	"errors"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/selection"
)

// Verdicts are what the recorded verdicts are worth for a question.
type Verdicts struct {
	Question

	reports map[string]report.Report
}

// Read reads the reports of the complete runs whose verdicts no other run supersedes, with their standing. get reads one
// record, whose report must be included. A record that was edited since it was listed has no verdict. What could not be
// read has none either, and failed gets the error; one that cannot be decoded, such as that of a later version, is
// Undecided. The error is that of ctx.
func (q Question) Read(ctx context.Context, get func(ctx context.Context, id string) (record.Record, error), failed func(id string, err error)) (Verdicts, error) {
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

// Report is the report of a run, by its ID; false for one whose verdict another run supersedes, or could not be read.
func (v Verdicts) Report(id string) (report.Report, bool) {
	stored, found := v.reports[id]
	return stored, found
}

// On is the report of the run whose verdict on a target counts, by the digest of its release, for those who ask that;
// false where there is none.
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

// Published are the records for those who read no report, such as the cluster-version operator: one whose verdict is Ready
// and permits no update states why in Ended, and one whose verdict does not count is left out.
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
