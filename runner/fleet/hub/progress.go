package hub

import (
	"cmp"
	"time"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/wave"
)

func (q Query) update(of managedCluster, report reported, now time.Time) wave.Progress {
	made := wave.Progress{Name: of.name, Stage: wave.Silent}
	switch {
	case of.absent+of.silent != "":
		made.Message = cmp.Or(of.absent, of.silent)
		return made
	case report.problem != nil:
		made.Message = report.problem.message
		return made
	case report.signedOnly:
		made.Message = "a signed verdict does not state whether the cluster was updated: the controller does"
		return made
	}
	if problem := q.current(of, report, now); problem != nil {
		made.Message = problem.message
		return made
	}
	values := report.values
	made.Since, _ = time.Parse(time.RFC3339, values.updatedSince)
	made.Stage, made.Message = wave.StageOf(values.updated, values.updatedReason), values.updatedMessage
	made.Judgement = &wave.Judgement{Status: values.after, Message: cmp.Or(values.afterMessage, values.afterReason)}
	made.Judgement.Since, _ = time.Parse(time.RFC3339, values.afterSince)
	switch made.Stage {
	case wave.Outstanding:
		made.Message, made.Since = values.message, time.Time{}
	case wave.Updated:
		made.Message = ""
	case wave.Updating, wave.Broken, wave.Silent:
	}
	return made
}

func stated(of wave.Progress) *fleet.Update {
	made := &fleet.Update{Stage: string(of.Stage), Message: of.Message}
	if !of.Since.IsZero() {
		made.Since = words.Time(of.Since)
	}
	if of.Judgement != nil {
		made.Judgement = &fleet.Judgement{Status: of.Judgement.Status, Since: words.Time(of.Judgement.Since), Message: of.Judgement.Message}
	}
	return made
}
