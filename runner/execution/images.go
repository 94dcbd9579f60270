package execution

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/registry"
)

// images is the check of the release's images; none for a release that may
// not be read.
func (e Execution) images(ctx context.Context) []collector.Source {
	if !e.Contents.Readable() {
		return nil
	}
	check := image.Check{
		Release: e.Target, Images: e.Contents.Images(), Mode: e.Images, Architectures: e.Scene.Architectures(ctx),
		// Nodes do not have the user's own credentials.
		Access: func(context.Context) *registry.Access { return e.Pulling.Nodes.OfNodes() },
	}
	if check.Mode.Pulls() {
		check.ToPull = e.imagesToPull()
		check.Nodes = pull.Nodes{
			Client: e.Scene.Cluster.Kubernetes, List: e.Scene.Snapshot.Nodes, Start: e.Jobs.Parts[0].Launcher, Run: e.Jobs.Run, Parallelism: e.Jobs.Parallelism,
		}
	}
	return []collector.Source{{Name: image.Name, Kind: finding.SourceImage, Collect: func(ctx context.Context) ([]finding.Finding, error) {
		findings, err := withProgress(check, e.Progress).Collect(ctx)
		e.Progress.Status(jobs.Status{Check: image.Name, State: diagnosis.Done, Since: time.Now(), Findings: findings})
		return findings, err
	}}}
}

// imagesToPull are the images of the checks that run in the cluster that is judged, unless nodes are to pull
// all images.
func (e Execution) imagesToPull() map[string]string {
	if e.Images == image.PullAll {
		return e.Contents.Images()
	}
	used := map[string]bool{}
	for _, check := range e.Jobs.Parts[0].Planned.Checks {
		spec := check.Job.Spec.Template.Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			used[container.Image] = true
		}
	}
	chosen := map[string]string{}
	for component, pullSpec := range e.Contents.Images() {
		if used[pullSpec] {
			chosen[component] = pullSpec
		}
	}
	return chosen
}

// withProgress reports the progress of the check, each tenth once.
func withProgress(check image.Check, observer *progress.Serial) image.Check {
	report := func(detail string) {
		observer.Status(jobs.Status{Check: image.Name, State: diagnosis.Running, Detail: detail, Since: time.Now()})
	}
	report("")
	tenth := 0
	check.Progress = func(done, total int) {
		if done*10/total > tenth {
			tenth = done * 10 / total
			report(fmt.Sprintf("%d of %s", done, words.Count(total, "image")))
		}
	}
	return check
}
