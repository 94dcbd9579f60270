package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/diagnosis"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/registry"
)

// imageCheck is the check of the release's images; none for a release that may
// not be read.
func (e execution) imageCheck(ctx context.Context) []collector.Source {
	if !e.contents.readable() {
		return nil
	}
	check := image.Check{
		Release: e.target, Images: e.contents.images(), Mode: e.options.Images, Architectures: e.architectures(ctx),
		// Nodes do not have the user's own credentials.
		Access: func(context.Context) *registry.Access { return e.registries.OfNodes() },
	}
	if check.Mode.Pulls() {
		check.ToPull = e.imagesToPull()
		check.Nodes = pull.Nodes{
			Client: e.cluster.Kubernetes, List: e.snapshot.Nodes, Start: e.launcher, Run: e.launchRun(), Parallelism: e.options.Parallelism,
		}
	}
	return []collector.Source{{Name: image.Name, Kind: finding.SourceImage, Collect: func(ctx context.Context) ([]finding.Finding, error) {
		findings, err := withProgress(check, e.progress).Collect(ctx)
		e.progress.Status(jobs.Status{Check: image.Name, State: diagnosis.Done, Since: time.Now(), Findings: findings})
		return findings, err
	}}}
}

// imagesToPull are the images of the checks that run, unless nodes are to pull all
// images.
func (e execution) imagesToPull() map[string]string {
	if e.options.Images == image.PullAll {
		return e.contents.images()
	}
	used := map[string]bool{}
	for _, check := range e.planned.Checks {
		spec := check.Job.Spec.Template.Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			used[container.Image] = true
		}
	}
	chosen := map[string]string{}
	for component, pullSpec := range e.contents.images() {
		if used[pullSpec] {
			chosen[component] = pullSpec
		}
	}
	return chosen
}

// withProgress reports the progress of the check, each tenth once.
func withProgress(check image.Check, progress *serial) image.Check {
	report := func(detail string) {
		progress.Status(jobs.Status{Check: image.Name, State: diagnosis.Running, Detail: detail, Since: time.Now()})
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
