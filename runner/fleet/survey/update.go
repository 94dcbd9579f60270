package survey

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/runner/trigger/completion"
)

// UpdateOf is how far the update of a cluster to a version is, with the judgement that is stored in the cluster about it.
// What could not be read is Silent, with the cause.
func UpdateOf(ctx context.Context, reached *cluster.Cluster, estate hosted.Estate, to string) *fleet.Update {
	present := snapshot.Of(reached)
	version, err := present.ClusterVersion(ctx)
	if err != nil {
		return silent(fmt.Errorf("could not read ClusterVersion: %w", err))
	}
	judgement := judgementOf(ctx, reached, version, to)
	if version.Status.Desired.Version != to {
		return &fleet.Update{Stage: string(wave.Outstanding), Message: "the cluster runs or installs " + words.External(version.Status.Desired.Version), Judgement: judgement}
	}
	controlPlane, _ := estate.ControlPlane()
	of := completion.Read(ctx, present, controlPlane.State(), version, reached.Now())
	condition := completion.Of(of)
	made := &fleet.Update{Stage: string(wave.StageOf(string(condition.Status), condition.Reason)), Message: condition.Message, Judgement: judgement}
	switch wave.Stage(made.Stage) {
	case wave.Updated:
		made.Since, made.Message = words.Time(completion.Since(of)), ""
	case wave.Updating:
		made.Since = started(version.Status.History)
	case wave.Outstanding, wave.Broken, wave.Silent:
	}
	return made
}

// started is when the newest update began; empty where it is unknown.
func started(history []configv1.UpdateHistory) string {
	if len(history) == 0 || history[0].StartedTime.IsZero() {
		return ""
	}
	return words.Time(history[0].StartedTime.Time)
}

func silent(cause error) *fleet.Update {
	return &fleet.Update{Stage: string(wave.Silent), Message: words.External(cause.Error())}
}
