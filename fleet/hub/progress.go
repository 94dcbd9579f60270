package hub

import (
	"cmp"
	"time"

	"github.com/openshift/update-preflight/fleet/wave"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// update is how far the update of a cluster is.
func (q Query) update(of managedCluster, all []reported, now time.Time) wave.Cluster {
	made := wave.Cluster{Name: of.name, Stage: wave.Silent}
	report, found := q.about(all)
	switch {
	case of.absent+of.silent != "":
		made.Message = cmp.Or(of.absent, of.silent)
		return made
	case !found:
		made.Message = "the hub has no report of this cluster on the update"
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
	switch {
	case values.updated == "":
		made.Stage, made.Message, made.Since = wave.Outstanding, values.message, time.Time{}
	case values.updated == "True":
		made.Stage = wave.Updated
	case values.updated == "False" && v1alpha1.UpdateFailed(values.updatedReason):
		made.Stage, made.Message = wave.Broken, values.updatedMessage
	case values.updated == "False":
		made.Stage, made.Message = wave.Updating, values.updatedMessage
	default:
		made.Message = values.updatedMessage
	}
	return made
}
