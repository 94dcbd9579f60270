package runner

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/imagefiles"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/site"
	"github.com/openshift/update-preflight/signature"
)

// The defaults of Options.
const (
	DefaultParallelism = 32
	DefaultTimeout     = 10 * time.Minute
)

// Options are what may be chosen about a run. The zero value is a complete
// preflight with the trust and the monitoring of the cluster.
type Options struct {
	// Only and Skip select checks by COMPONENT or COMPONENT.CHECK. A check that is
	// not selected is Unknown.
	Only, Skip []string
	// NoJobs runs none of the release's checks.
	NoJobs bool
	// Site are the administrator's own checks, which are run with those of the release. A
	// run without them is another run.
	Site []site.Source
	// Images is how closely to inspect the release's images; empty means
	// image.Manifests.
	Images image.Mode
	// Rerun runs all checks again, also where those of a complete run still hold.
	Rerun bool
	// Keep leaves the run's objects in the cluster.
	Keep bool
	// Parallelism bounds the Jobs that are unfinished at one time; 0 means
	// DefaultParallelism.
	Parallelism int
	// Timeout bounds the run, from start to verdict; 0 means DefaultTimeout.
	Timeout time.Duration

	// Force reads and runs a release that could not be verified, and bypasses every
	// finding that blocks. The verdict reports it.
	Force bool
	// Accepted are acceptances of files, Accept those of this request. Where a
	// finding is accepted more than once, the report names the file before
	// ClusterVersion's spec.desiredUpdate.acceptRisks, and that before Accept.
	Accepted, Accept []acceptance.Acceptance
	// IgnoredAlerts and IgnoredNamespaces select alerts that only warn, by name and
	// by their label "namespace".
	IgnoredAlerts, IgnoredNamespaces []string
	// Fixed is when the clients of removed APIs were fixed; the zero value states nothing.
	// It is part of what the run covers.
	Fixed gate.FixTime
	// Dependencies are outside the cluster and must respond; nil means none.
	Dependencies *health.Dependencies

	// Keyrings and Stores replace those that the cluster trusts, where there are
	// any. Repositories are what signatures may call the repository of a release;
	// none means OpenShift's own.
	Keyrings     []signature.Keyring
	Stores       []signature.Store
	Repositories []string
	// Local is what this machine adds to pull images with, after what the cluster
	// has. Cache keeps what was read of releases; nil for none.
	Local registry.Local
	Cache imagefiles.Cache
	// Monitoring reads metrics and alerts, each once, so each run needs its own client; nil
	// means the cluster's own monitoring.
	Monitoring *monitoring.Client

	// Observer follows the run; nil for none.
	Observer Observer
	// OnInterrupt decides what becomes of the run when ctx is canceled before its
	// end, given the ID of the run; nil means CleanUp.
	OnInterrupt func(run string) Interruption
	// Logger receives what the run does at debug level; nil for none.
	Logger *slog.Logger
	// Requester is the role that requests the run, for its record; empty means
	// record.ByUser.
	Requester record.Requester
	// ToolVersion is recorded in the report and on the Jobs.
	ToolVersion string
}

// Interruption is what becomes of a run that is interrupted.
type Interruption string

// The ways to end a run early.
const (
	// CleanUp deletes what the run has in the cluster.
	CleanUp Interruption = "clean"
	// Detach leaves the Jobs running: the next Run of the release, from any machine,
	// continues with them.
	Detach Interruption = "detach"
)

// BadInputError is a request that cannot be met: another one may succeed, the
// same one will not.
type BadInputError struct{ Err error }

// Error implements error.
func (e *BadInputError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *BadInputError) Unwrap() error { return e.Err }

func badInput(format string, args ...any) error {
	return &BadInputError{Err: fmt.Errorf(format, args...)}
}

func (o Options) validate() error {
	if o.Parallelism < 0 {
		return badInput("the parallelism %d is negative", o.Parallelism)
	}
	if o.Timeout < 0 {
		return badInput("the timeout %s is negative", o.Timeout)
	}
	if o.Images != "" && !slices.Contains(image.Modes(), o.Images) {
		return badInput("unknown image mode %q; the modes are %q", o.Images, image.Modes())
	}
	if o.NoJobs && o.Images.Pulls() {
		return badInput("the image mode %q needs Jobs, and the run is without Jobs", o.Images)
	}
	if err := site.Validate(o.Site); err != nil {
		return &BadInputError{Err: err}
	}
	for _, accepted := range o.Accept {
		if err := acceptance.CheckName(accepted.Risk); err != nil {
			return &BadInputError{Err: err}
		}
	}
	return nil
}

func (o Options) withDefaults(c *cluster.Cluster) Options {
	o.Parallelism = cmp.Or(o.Parallelism, DefaultParallelism)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Images = cmp.Or(o.Images, image.Manifests)
	o.Requester = cmp.Or(o.Requester, record.ByUser)
	if o.Monitoring == nil {
		own := monitoring.Cluster{Config: c.Config(), Dynamic: c.Dynamic}
		o.Monitoring = monitoring.New(own.Find, monitoring.DefaultTimeout)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnInterrupt == nil {
		o.OnInterrupt = func(string) Interruption { return CleanUp }
	}
	return o
}
