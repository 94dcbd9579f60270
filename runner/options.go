package runner

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/sampling"
	"github.com/openshift/update-preflight/runner/selection"
)

// The defaults of Limits.
const (
	DefaultParallelism = 32
	DefaultTimeout     = scene.DefaultTimeout
)

// Options are what may be chosen about a run. The zero value is a complete
// preflight with the trust and the monitoring of the cluster.
type Options struct {
	Selection selection.Selection
	Trust     proof.Trust
	Access    Access
	Judgement scene.Judgement
	Origin    Origin
	// Estate has the management cluster of the hosted cluster whose guest is judged; the zero value is a cluster
	// that is judged by itself.
	Estate hosted.Estate
	Limits Limits
	// Baseline is how the run stores the state of the cluster, with which the state after the update is compared;
	// empty means baselinestore.Plain.
	Baseline baselinestore.Names
	Hooks    Hooks
}

// Origin identifies values of other options that cannot be compared themselves, by digests of what they
// were made from. Runs of another origin are other runs.
type Origin struct {
	// Keyrings and Stores are of those of Trust. They are required where Trust has any.
	Keyrings, Stores string
	// Monitoring is of Judgement.Monitoring; empty for the cluster's own monitoring.
	Monitoring string
	// Dependencies is of those of Judgement; empty for none.
	Dependencies string
}

// Access is what this machine adds to how the cluster pulls images.
type Access struct {
	// Local comes after what the cluster has. Cache keeps what was read of releases; nil
	// for none.
	Local registry.Local
	Cache imagefiles.Cache
	// Partial makes a release that is not listed or cannot be read a finding, and not an error.
	Partial bool
}

// Limits are about the Jobs and the time of a run.
type Limits struct {
	// Parallelism bounds the Jobs that are unfinished at one time; 0 means
	// DefaultParallelism.
	Parallelism int
	// Timeout bounds the run, from start to verdict; 0 means DefaultTimeout.
	Timeout time.Duration
	// Rerun runs all checks again, also where those of a complete run still hold.
	Rerun bool
	// Keep leaves the run's objects in the cluster.
	Keep bool
}

// Hooks are what a program adds to a run.
type Hooks struct {
	// Observer follows the run; nil for none.
	Observer progress.Observer
	// OnInterrupt decides what becomes of the run when ctx is canceled before its
	// end, given the ID of the run; nil means CleanUp.
	OnInterrupt func(run string) Interruption
	// Sampler reads the state of the cluster for the baseline; nil means sample.Take.
	Sampler sampling.Sampler
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

func (o Options) validate() error {
	if o.Limits.Parallelism < 0 {
		return input.Errorf("the parallelism %d is negative", o.Limits.Parallelism)
	}
	if len(o.Trust.Keyrings) > 0 && o.Origin.Keyrings == "" || len(o.Trust.Stores) > 0 && o.Origin.Stores == "" {
		return errors.New("the keyrings and signature stores of the options have no origin")
	}
	if o.Baseline != "" && !o.Baseline.Known() {
		return input.Errorf("unknown value %.64q about the baseline", string(o.Baseline))
	}
	return o.Selection.Validate()
}

func (o Options) withDefaults() Options {
	o.Limits.Parallelism = cmp.Or(o.Limits.Parallelism, DefaultParallelism)
	o.Limits.Timeout = cmp.Or(o.Limits.Timeout, DefaultTimeout)
	o.Selection.Images = cmp.Or(o.Selection.Images, image.Manifests)
	o.Baseline = cmp.Or(o.Baseline, baselinestore.Plain)
	o.Hooks.Requester = cmp.Or(o.Hooks.Requester, record.ByUser)
	o.Hooks.Logger = cmp.Or(o.Hooks.Logger, slog.New(slog.DiscardHandler))
	if o.Hooks.Sampler == nil {
		o.Hooks.Sampler = sample.Take
	}
	if o.Hooks.OnInterrupt == nil {
		o.Hooks.OnInterrupt = func(string) Interruption { return CleanUp }
	}
	return o
}

// on are the options of a run on a cluster. Where its checks cannot be run, there are no Jobs; an *input.Error
// is about options that need them in an archive. Whether the nodes of a guest that cannot be reached pull images is
// unknown.
func (o Options) on(judged *cluster.Cluster) (Options, error) {
	o.Selection.NoJobs = o.Selection.NoJobs || judged.Fixed()
	if err := o.validate(); err != nil {
		return Options{}, err
	}
	o = o.withDefaults()
	if !estate.RunsJobs(judged, o.Estate) {
		o.Selection.NoJobs = true
		if o.Selection.Images.Pulls() {
			o.Selection.Images = image.Off
		}
	}
	return o, nil
}

// Settings are what a scene needs of the options. The observer and the logger of the hooks
// receive its steps.
func (o Options) Settings() scene.Settings {
	o = o.withDefaults()
	return o.settings(progress.New(o.Hooks.Observer, o.Hooks.Logger))
}

func (o Options) settings(observer *progress.Serial) scene.Settings {
	return scene.Settings{Judgement: o.Judgement, Estate: o.Estate, Timeout: o.Limits.Timeout, ToolVersion: o.Hooks.ToolVersion, Step: observer.Step}
}
