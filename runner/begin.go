package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/image"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/access"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/imagepolicy"
)

// session is one run on its way.
type session struct {
	config   Config
	id       string
	start    time.Time
	deadline time.Time
	snapshot *snapshot.Cluster
	cluster  report.Cluster
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
}

// begin reads the cluster and finds the target. It creates nothing, and names
// all permissions that are missing of what is needed from here on.
func begin(ctx context.Context, config Config, needs access.Needs) (*session, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	start := time.Now().UTC()
	run := &session{
		config: config, id: uuid.NewString(), start: start, deadline: start.Add(config.Timeout),
		snapshot: snapshot.Of(snapshot.Clients{Kubernetes: config.Kubernetes, OpenShift: config.OpenShift, Dynamic: config.Dynamic}),
	}
	run.step("reading the cluster")
	kubernetes, err := config.Kubernetes.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("could not reach the API server: %w", err)
	}
	if err := needs.Check(ctx, config.Kubernetes.AuthorizationV1()); err != nil {
		return nil, err
	}
	clusterVersion, err := readClusterVersion(ctx, run.snapshot)
	if err != nil {
		return nil, err
	}
	current, err := currentVersion(clusterVersion)
	if err != nil {
		return nil, err
	}
	run.cluster = report.Cluster{
		ID: string(clusterVersion.Spec.ClusterID), Version: current.version, Image: current.image, Kubernetes: kubernetes.GitVersion,
	}
	run.readRegistries(ctx)
	run.target, err = config.Target.resolve(clusterVersion)
	return run, err
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
		if strings.TrimSpace(name) == "" {
			return badInput("an empty name cannot be accepted")
		}
	}
	return c.Target.validate()
}

func (c Config) withDefaults() Config {
	if c.Parallelism == 0 {
		c.Parallelism = DefaultParallelism
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	c.Images = cmp.Or(c.Images, image.Manifests)
	c.Progress = oneAtATime(c.Progress)
	return c
}

// oneAtATime makes what any check may call at any time into what a caller can
// handle without locks.
func oneAtATime(progress func(Event)) func(Event) {
	var mutex sync.Mutex
	return func(event Event) {
		mutex.Lock()
		defer mutex.Unlock()
		if progress != nil {
			progress(event)
		}
	}
}

func readClusterVersion(ctx context.Context, cluster *snapshot.Cluster) (*configv1.ClusterVersion, error) {
	clusterVersion, err := cluster.ClusterVersion(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("this cluster has no ClusterVersion \"version\", so it is not updated by a cluster-version operator: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	return clusterVersion, nil
}

func (s *session) step(format string, args ...any) {
	s.config.Progress(Event{Step: fmt.Sprintf(format, args...)})
}

// answered passes on what one source said.
func (s *session) answered(_ collector.Source, findings []preflight.Finding) {
	s.config.Progress(Event{Answered: findings})
}

// tell records the findings of one check that has been made.
func (s *session) tell(name string, source preflight.Source, findings ...preflight.Finding) {
	s.told = append(s.told, answer{name: name, source: source, findings: findings})
}

// answer is a Source that has been asked before.
type answer struct {
	name     string
	source   preflight.Source
	findings []preflight.Finding
}

// Name implements collector.Source.
func (a answer) Name() string { return a.name }

// Source implements collector.Source.
func (a answer) Source() preflight.Source { return a.source }

// Collect implements collector.Source.
func (a answer) Collect(context.Context) ([]preflight.Finding, error) {
	return a.findings, nil
}
