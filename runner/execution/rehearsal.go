package execution

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

// rehearse is the rehearsal of the writes of the release; none of a later update of a path: the cluster that it starts from does
// not exist yet.
func rehearse(e Execution) []collector.Source {
	switch {
	case e.Rehearsal == rehearsal.Off, departure.Provisional(e.From):
		return nil
	case len(e.Contents.Manifests()) == 0 && !e.Scene.Cluster.Fixed(): // not read, or more than the limit
		return []collector.Source{collector.Known(rehearsal.Name, finding.SourceRehearsal, rehearsal.WithoutRelease())}
	}
	rehearsed := rehearsal.Rehearsal{
		Cluster: e.Scene.Cluster, Mode: e.Rehearsal, Hosted: e.Scene.Settings.Estate.Namespace() != "", Run: uuid.NewString(),
		Owner: e.Scene.Version.UID, Manifests: e.Contents.Manifests(), Progress: eachTenth(e.Progress),
	}
	if e.Jobs != nil { // whose cleanup then deletes the guard, too
		rehearsed.Run = e.Jobs.Run.ID
	}
	return []collector.Source{{Name: rehearsal.Name, Kind: finding.SourceRehearsal, Collect: func(ctx context.Context) ([]finding.Finding, error) {
		findings, err := rehearsed.Findings(ctx)
		for i := range findings {
			if findings[i].Blocks && e.Target.Version != "" {
				findings[i].BlockedTargets = []string{e.Target.Version}
			}
		}
		e.Progress.Status(jobs.Status{Check: rehearsal.Name, State: diagnosis.Done, Since: time.Now(), Findings: findings})
		return findings, err
	}}}
}

// eachTenth reports the progress of the rehearsal, each tenth once.
func eachTenth(observer *progress.Serial) func(done, total int) {
	const parts = 10
	return func(done, total int) {
		if done*parts/total > (done-1)*parts/total {
			observer.Status(jobs.Status{
				Check: rehearsal.Name, State: diagnosis.Running, Detail: fmt.Sprintf("%d of %d manifests", done, total), Since: time.Now(),
			})
		}
	}
}
