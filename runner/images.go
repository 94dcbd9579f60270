package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/image/pull"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/registry"
)

// images is the check of the release's images, if the release may be read. Where
// nodes are to pull, there may be objects to clean up from here on.
func (s *session) images(ctx context.Context) []collector.Source {
	if s.payload == nil {
		return nil
	}
	check := image.Check{
		Release: s.payload.Image, Version: s.payload.Version, Images: s.payload.Images,
		Mode: s.config.Images, Architectures: s.architectures(ctx), Access: s.nodeAccess,
	}
	if check.Mode.Pulls() {
		if s.launcher == nil {
			s.launcher = launch.New(s.config.Cluster.Kubernetes)
		}
		check.ToPull = s.toPull()
		check.Nodes = pull.Nodes{
			Client: s.config.Cluster.Kubernetes, List: s.snapshot.Nodes, Start: s.launcher, Run: s.run(), Parallelism: s.config.Parallelism,
		}
	}
	return []collector.Source{s.imageProgress(check)}
}

// toPull are the images of the checks that run, unless nodes are to pull all.
func (s *session) toPull() map[string]string {
	if s.config.Images == image.PullAll {
		return s.payload.Images
	}
	run := map[string]bool{}
	for _, check := range s.plan.Checks {
		spec := check.Job.Spec.Template.Spec
		for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
			run[container.Image] = true
		}
	}
	chosen := map[string]string{}
	for component, pullSpec := range s.payload.Images {
		if run[pullSpec] {
			chosen[component] = pullSpec
		}
	}
	return chosen
}

// pullingNeeds is what it takes to have nodes pull images. Where kubelets may
// not be asked, their free space is not known.
func pullingNeeds() access.Needs {
	about := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: pull.Namespace}}
	return launch.Plan{Checks: []launch.Check{{Job: about}}}.Needs().And(access.Needs{
		Required: []access.Request{{Verb: "list", Resource: "nodes"}},
		Optional: []access.Request{{Verb: "get", Resource: "nodes", Subresource: "proxy"}},
	})
}

// nodeAccess is how nodes pull images: the user's own credentials are not
// theirs.
func (s *session) nodeAccess(ctx context.Context) *registry.Access {
	return registry.FromCluster(ctx, registry.Cluster{
		Kubernetes: s.config.Cluster.Kubernetes, OpenShift: s.config.Cluster.OpenShift, Dynamic: s.config.Cluster.Dynamic, Release: s.cluster.Image,
	}, registry.Local{Transport: s.config.Local.Transport})
}

// imageProgress reports the progress of the check of the images.
func (s *session) imageProgress(check image.Check) collector.Source {
	tell := func(status jobs.Status) {
		status.Check, status.Since = image.Name, time.Now()
		s.config.Progress(Event{Status: &status})
	}
	return collector.Source{Name: image.Name, Kind: finding.SourceImage, Collect: func(ctx context.Context) ([]finding.Finding, error) {
		tell(jobs.Status{State: jobs.Running})
		tenth := 0
		check.Progress = func(done, total int) {
			// In a log, each line says something new.
			if done*10/total > tenth {
				tenth = done * 10 / total
				tell(jobs.Status{State: jobs.Running, Detail: fmt.Sprintf("%d of %d images", done, total)})
			}
		}
		findings, err := check.Collect(ctx)
		tell(jobs.Status{State: jobs.Done, Findings: findings})
		return findings, err
	}}
}
