package judgement

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// The words beside the decisions of package afterupdate.
const (
	// Unverified stands for a record, or a judgement, that is not authentic or was replaced.
	Unverified = "Unverified"
	// NotJudged stands for an update that was made and whose judgement is not stored.
	NotJudged = "NotJudged"
)

// Runs are the judgements of the updates after the recorded runs.
type Runs struct {
	judged  map[string]baselinestore.Judgement
	taken   map[string]baselinestore.Candidate
	version *configv1.ClusterVersion
}

// OfRuns reads the judgements after all runs. version is the ClusterVersion of the cluster; nil where it could not be read.
func OfRuns(ctx context.Context, client kubernetes.Interface, version *configv1.ClusterVersion) (Runs, error) {
	store := baselinestore.New(client)
	stored, err := store.Judgements(ctx)
	if err != nil || len(stored) == 0 {
		return RunsOf(nil, nil, version), err
	}
	taken, err := store.Taken(ctx)
	return RunsOf(stored, taken, version), err
}

// RunsOf are the judgements that are stored, with the baselines by which they were made.
func RunsOf(stored []baselinestore.Judgement, taken []baselinestore.Candidate, version *configv1.ClusterVersion) Runs {
	made := Runs{judged: map[string]baselinestore.Judgement{}, taken: map[string]baselinestore.Candidate{}, version: version}
	for _, each := range stored {
		made.judged[each.Run] = each
	}
	for _, each := range taken {
		made.taken[each.Run] = each
	}
	return made
}

// After is how the update after a run was: Unverified where what is stored does not count, NotJudged where the cluster
// runs the release and nothing is stored, and nil where the update was not made.
func (r Runs) After(run record.Record) *report.AfterUpdate {
	judged, exists := r.judged[run.ID]
	switch {
	case exists && judged.Authentication.State != record.Authentic:
		return &report.AfterUpdate{Decision: Unverified, Message: unverifiedOf("the stored judgement", judged)}
	case exists && judged.Precedes(r.taken[run.ID]):
		return &report.AfterUpdate{Decision: Unverified, Message: putBack(judged)}
	case exists:
		return &report.AfterUpdate{Decision: string(judged.Report.Decision), Message: words.External(judged.Report.Message), Time: judged.Report.Samples.Last}
	case r.version != nil && scene.Installed(r.version, run.Target) != nil:
		return &report.AfterUpdate{Decision: NotJudged, Message: "the cluster runs the release"}
	}
	return nil
}
