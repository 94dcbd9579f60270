package runner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/imagepolicy"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
)

// session is one run on its way.
type session struct {
	*look

	id string
	// deadline is when the time of the run is up.
	deadline time.Time
	target   release

	// registries is how the cluster pulls images.
	registries *registry.Access
	// proof is what the verification of the signature left, payload what was
	// read with it; nil when the release may not be read.
	proof   *signature.Release
	payload *payload.Release
	// acceptedByCVO says whether CVO accepts the signatures; nil when that is
	// not known.
	acceptedByCVO *bool
	// policies are the image policies of the cluster.
	policies imagepolicy.Policies
	// told are the findings of what has been looked at already.
	told []collector.Source
	// launcher is set from when objects may exist in the cluster.
	launcher *launch.Launcher
	plan     launch.Plan

	records *record.Store
	// held is the run as this process holds it; nil when nothing is launched.
	held *record.Held
	// answers are the results of checks that are in already; those of another run
	// where earlier is set, which hold until earlierUntil.
	answers      map[string][]finding.Finding
	earlier      *record.Record
	earlierUntil time.Time
	// awaited has the names of the checks that are launched.
	awaited map[string]bool
}

// begin reads the cluster and finds the target. It creates nothing, and names
// all permissions that are missing of what is needed from here on.
func begin(ctx context.Context, config Config, needs access.Needs) (*session, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if err := config.Target.validate(); err != nil {
		return nil, err
	}
	seen := config.look()
	if err := seen.reach(); err != nil {
		return nil, err
	}
	if err := needs.Check(ctx, config.Cluster.Kubernetes.AuthorizationV1()); err != nil {
		return nil, err
	}
	if err := seen.read(ctx); err != nil {
		return nil, err
	}
	target, err := config.Target.resolve(seen.clusterVersion)
	if err != nil {
		return nil, err
	}
	run := &session{look: seen, id: uuid.NewString(), deadline: seen.start.Add(seen.config.Timeout), target: target}
	run.readRegistries(ctx)
	return run, nil
}

func (c Config) validate() error {
	if c.Parallelism < 0 {
		return badInput("the parallelism %d is negative", c.Parallelism)
	}
	if c.Timeout < 0 {
		return badInput("the timeout %s is negative", c.Timeout)
	}
	if c.Images != "" && !slices.Contains(image.Modes(), c.Images) {
		return badInput("there is no way %q to look at images; there are: %q", c.Images, image.Modes())
	}
	if c.NoJobs && c.Images.Pulls() {
		return badInput("nodes cannot pull images without Jobs: leave out --no-jobs or --images=%s", c.Images)
	}
	for _, name := range c.Accept {
		if err := acceptance.CheckName(name); err != nil {
			return &BadInputError{Err: err}
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Parallelism == 0 {
		c.Parallelism = DefaultParallelism
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	c.Images = cmp.Or(c.Images, image.Manifests)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Progress = oneAtATime(c.Progress)
	return c
}

// tell records the findings of one check that has been made.
func (s *session) tell(name string, source finding.Source, findings ...finding.Finding) {
	s.told = append(s.told, collector.Known(name, source, findings...))
}
