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
	preflight "github.com/openshift/update-preflight/preflight-sdk"
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
			s.launcher = launch.New(s.config.Kubernetes)
		}
		check.ToPull = s.toPull()
		check.Nodes = pull.Nodes{
			Client: s.config.Kubernetes, List: s.snapshot.Nodes, Start: s.launcher, Run: s.run(), Parallelism: s.config.Parallelism,
		}
	}
	return []collector.Source{imageProgress{session: s, Check: check}}
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
		Kubernetes: s.config.Kubernetes, OpenShift: s.config.OpenShift, Dynamic: s.config.Dynamic, Release: s.cluster.Image,
	}, registry.Local{Transport: s.config.Local.Transport})
}

// imageProgress tells of the check of the images as it goes on.
type imageProgress struct {
	image.Check
	session *session
}

// Collect implements collector.Source.
func (p imageProgress) Collect(ctx context.Context) ([]preflight.Finding, error) {
	p.tell(jobs.Status{State: jobs.Running})
	tenth := 0
	p.Progress = func(done, total int) {
		// In a log, each line says something new.
		if done*10/total > tenth {
			tenth = done * 10 / total
			p.tell(jobs.Status{State: jobs.Running, Detail: fmt.Sprintf("%d of %d images", done, total)})
		}
	}
	findings, err := p.Check.Collect(ctx)
	p.tell(jobs.Status{State: jobs.Done, Findings: findings})
	return findings, err
}

func (p imageProgress) tell(status jobs.Status) {
	status.Check, status.Since = image.Name, time.Now()
	p.session.config.Progress(Event{Status: &status})
}
