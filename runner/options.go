package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/site"
)

// The defaults of Limits.
const (
	DefaultParallelism = 32
	DefaultTimeout     = scene.DefaultTimeout
)

// Options configure a run. The zero value is a complete preflight with the trust and the monitoring of the cluster.
type Options struct {
	Selection selection.Selection
	Trust     proof.Trust
	Access    Access
	Judgement scene.Judgement
	Origin    Origin
	// Estate has the management cluster of the hosted cluster whose guest is the target; the zero value is a standalone
	// cluster.
	Estate hosted.Estate
	Limits Limits
	// Baseline is how the run stores the baseline for "after"; empty means baselinestore.Plain.
	Baseline baselinestore.Names
	Hooks    Hooks
}

// Origin identifies values of other options that cannot be compared themselves, by digests of their sources. Runs with
// another origin are different runs.
type Origin struct {
	// Keyrings and Stores identify the keyrings and stores of Trust. They are required if Trust has any.
	Keyrings, Stores string
	// Monitoring is of Judgement.Monitoring; empty for the cluster's own monitoring.
	Monitoring string
	// Dependencies identifies the dependencies of Judgement; empty for none.
	Dependencies string
}

// Access adds this machine's access to images to the cluster's.
type Access struct {
	// Local comes after the cluster's configuration. Cache keeps content of releases; nil for none.
	Local registry.Local
	Cache imagefiles.Cache
	// Partial turns a release that is not listed or cannot be read into a finding instead of an error.
	Partial bool
}

// Limits are about the Jobs and the time of a run.
type Limits struct {
	// Parallelism bounds the Jobs that are unfinished at one time; 0 means
	// DefaultParallelism.
	Parallelism int
	// Timeout bounds the run, from start to verdict; 0 means DefaultTimeout.
	Timeout time.Duration
	// Rerun runs all checks again, even if the results of a complete run are still valid.
	Rerun bool
	// Keep leaves the run's objects in the cluster.
	Keep bool
}

// Hooks connect a program to a run.
type Hooks struct {
	// Observer follows the run; nil for none.
	Observer progress.Observer
	// OnInterrupt decides what becomes of the run when ctx is canceled before its
	// end, given the ID of the run; nil means CleanUp.
	OnInterrupt func(run string) Interruption
	// Sampler reads the state of the cluster for the baseline; nil means sample.Take.
	Sampler Sampler
	// Logger receives the steps of the run at debug level; nil for none.
	Logger *slog.Logger
	// Requester is the role that requests the run, for its record; empty means
	// record.ByUser.
	Requester record.Requester
	// ToolVersion is recorded in the report and on the Jobs.
	ToolVersion string
}

// Interruption is how an interrupted run continues.
type Interruption string

// The ways to end a run early.
const (
	// CleanUp deletes the objects of the run in the cluster.
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

// Settings returns the settings of a scene from the options. The observer and the logger of the hooks receive its
// steps.
func (o Options) Settings() scene.Settings {
	o = o.withDefaults()
	return o.settings(progress.New(o.Hooks.Observer, o.Hooks.Logger))
}

func (o Options) settings(observer *progress.Serial) scene.Settings {
	return scene.Settings{
		Judgement: o.Judgement, Estate: o.Estate, Timeout: o.Limits.Timeout, ToolVersion: o.Hooks.ToolVersion,
		Step: observer.Step,
	}
}

// Effect is the effect of changing an option.
type Effect string

// The effects.
const (
	// OnAnswer means that a run with another value may have other findings. It is part of [Options.Coverage], so
	// results of one run are not used for the other.
	OnAnswer Effect = "answer"
	// OnJudgement means that the same findings are evaluated differently. A process that uses the findings of another
	// run evaluates them with its own value.
	OnJudgement Effect = "judgement"
	// OnIntent means that the value is compared as a field of record.Intent.
	OnIntent Effect = "intent"
	// OnExecution means that the findings are the same, or inconclusive: the run is only executed, kept or shown
	// differently.
	OnExecution Effect = "execution"
)

// option describes an option.
type option struct {
	effect Effect
	// cover adds the value to a coverage; nil for an option whose value another one identifies, and
	// for effects other than OnAnswer.
	cover func(*selection.Coverage, Options)
}

// covered declares an option that is part of what a run covers.
func covered(cover func(*selection.Coverage, Options)) option {
	return option{effect: OnAnswer, cover: cover}
}

// identified declares an option that cannot be compared, and that a field of Origin identifies.
func identified() option { return option{effect: OnAnswer} }

// declared are the options by their path in Options. Options that are declared as covered determine what a run covers.
func declared() map[string]option {
	return map[string]option{
		"Selection.Only":      covered(func(c *selection.Coverage, o Options) { c.Only = names(o.Selection.Only) }),
		"Selection.Skip":      covered(func(c *selection.Coverage, o Options) { c.Skip = names(o.Selection.Skip) }),
		"Selection.NoJobs":    covered(func(c *selection.Coverage, o Options) { c.NoJobs = o.Selection.NoJobs }),
		"Selection.Site":      covered(func(c *selection.Coverage, o Options) { c.Site = site.IDs(o.Selection.Site) }),
		"Selection.Images":    covered(func(c *selection.Coverage, o Options) { c.Images = string(cmp.Or(o.Selection.Images, image.Manifests)) }),
		"Selection.Rehearsal": covered(func(c *selection.Coverage, o Options) { c.Rehearsal = string(o.Selection.Rehearsal) }),

		"Trust.Keyrings":      identified(),
		"Trust.Stores":        identified(),
		"Trust.Repositories":  covered(func(c *selection.Coverage, o Options) { c.Repositories = names(o.Trust.Repositories) }),
		"Origin.Keyrings":     covered(func(c *selection.Coverage, o Options) { c.Keyrings = o.Origin.Keyrings }),
		"Origin.Stores":       covered(func(c *selection.Coverage, o Options) { c.Stores = o.Origin.Stores }),
		"Origin.Monitoring":   covered(func(c *selection.Coverage, o Options) { c.Monitoring = o.Origin.Monitoring }),
		"Origin.Dependencies": covered(func(c *selection.Coverage, o Options) { c.Dependencies = o.Origin.Dependencies }),

		"Judgement.Force":         {effect: OnJudgement},
		"Judgement.ForceReason":   {effect: OnJudgement},
		"Judgement.ForcedBy":      {effect: OnJudgement},
		"Judgement.Accepted":      {effect: OnJudgement},
		"Judgement.Accept":        {effect: OnJudgement},
		"Judgement.IgnoredAlerts": covered(func(c *selection.Coverage, o Options) { c.IgnoredAlerts = names(o.Judgement.IgnoredAlerts) }),
		"Judgement.IgnoredNamespaces": covered(func(c *selection.Coverage,
			o Options,
		) {
			c.IgnoredNamespaces = names(o.Judgement.IgnoredNamespaces)
		}),
		"Judgement.Fixed":        covered(func(c *selection.Coverage, o Options) { c.Fixed = o.Judgement.Fixed.String() }),
		"Judgement.Dependencies": identified(),
		"Judgement.Monitoring":   identified(),

		"Estate": covered(func(c *selection.Coverage, o Options) { c.HostedCluster, c.NodePools = o.Estate.Selected() }),

		// What is read is identified by digests, and what cannot be read is inconclusive.
		"Access.Local.AuthFiles": {effect: OnExecution},
		"Access.Local.Transport": {effect: OnExecution},
		"Access.Cache":           {effect: OnExecution},
		// A run of a release that could not be read is not recorded.
		"Access.Partial": {effect: OnExecution},

		// A check that had too little time is inconclusive, and such a result is not used again.
		"Limits.Parallelism": {effect: OnExecution},
		"Limits.Timeout":     {effect: OnExecution},
		"Limits.Keep":        {effect: OnExecution},
		// It excludes the results of earlier runs, whatever they cover.
		"Limits.Rerun": {effect: OnExecution},

		// What is stored beside the record is none of its findings.
		"Baseline":      {effect: OnExecution},
		"Hooks.Sampler": {effect: OnExecution},

		"Hooks.Observer":    {effect: OnExecution},
		"Hooks.OnInterrupt": {effect: OnExecution},
		"Hooks.Logger":      {effect: OnExecution},
		"Hooks.Requester":   {effect: OnExecution},
		"Hooks.ToolVersion": {effect: OnIntent},
	}
}

// Effects are the effects of all options, by their path in Options, such as "Selection.Only".
func Effects() map[string]Effect {
	effects := map[string]Effect{}
	for path, each := range declared() {
		effects[path] = each.effect
	}
	return effects
}

// Asked returns the requirements for a verdict of a program that runs preflights with these options. by names it, such
// as "the controller".
func (o Options) Asked(by string) selection.Asked {
	return selection.Asked{
		By: by, ToolVersion: o.Hooks.ToolVersion, Covers: o.covers(departure.Present(), ""),
		Narrowed: selection.Narrowed(o.Selection, o.Judgement),
	}
}

// Coverage returns the form in which the record of a run from the present release describes its coverage. It is equal
// for options that select the same.
func (o Options) Coverage() string { return o.covers(departure.Present(), "").String() }

// covers returns the coverage of an update from that release. graph identifies where the risks of a later update of a
// path are read from.
func (o Options) covers(from departure.Departure, graph string) selection.Coverage {
	var made selection.Coverage
	for _, each := range declared() {
		if each.cover != nil {
			each.cover(&made, o)
		}
	}
	for _, each := range from.Path() {
		made.Path = append(made.Path, selection.Release{Version: each.Version, Image: each.Image})
		made.Graph = graph
	}
	return made
}

// Identity identifies values in any order, for an Origin, without stating them: they may have secrets. It is
// empty for none.
func Identity(values ...string) string {
	if len(values) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, value := range names(values) {
		fmt.Fprintf(sum, "%x\n", sha256.Sum256([]byte(value)))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// names are names, sorted, each once.
func names(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }

// GraphIdentity identifies where a graph is read from, by the content of files; empty for the update service of the
// cluster and its channel. Stored copies belong to the same services.
func GraphIdentity(source graphsource.Request) string {
	if len(source.Channels)+len(source.Files)+len(source.Services) == 0 && source.Architecture == "" {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", names(source.Channels), names(source.Services), source.Architecture)
	for _, file := range source.Files {
		fmt.Fprintf(sum, "%q %x\n", file.Name, sha256.Sum256(file.Content))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Attach waits for a recorded run that is in progress, and continues it when the process that held it is gone, with its
// release and its selection. Options that select checks are taken from the run. Values that the record only identifies,
// such as keyrings, must be the same as in the run; otherwise Attach returns an *input.Error. It returns a
// *lease.NotRunningError for a run that has ended, and a *record.UnauthenticError for a record that is not authentic.
// id may be a prefix of an ID.
//
// The risks of a later update of a path are not recorded: they are read again from the graph of source. If that graph
// lacks the update, its risks are Unknown.
func Attach(ctx context.Context, cluster *cluster.Cluster, id string, source graphsource.Request, options Options) (report.Report, error) {
	run, err := recordstore.New(cluster.Kubernetes).Get(ctx, id)
	if err != nil {
		return report.Report{}, err
	}
	if run.Phase != record.Running {
		return report.Report{}, &lease.NotRunningError{ID: run.ID, Phase: run.Phase}
	}
	if err := run.Verified(); err != nil {
		return report.Report{}, err // what it covers may have been edited
	}
	covered, err := selection.Recorded(run)
	if err != nil {
		return report.Report{}, err
	}
	if options.Selection, err = covered.Selection(run); err != nil {
		return report.Report{}, err
	}
	if options.Judgement, err = covered.Judgement(options.Settings(), run); err != nil {
		return report.Report{}, err
	}
	if err := covered.ConfirmOrigin(options.covers(departure.Present(), ""), run); err != nil {
		return report.Report{}, err
	}
	if len(covered.Path) > 0 {
		return attachToLater(ctx, cluster, laterRun{releases: covered.Path, target: run.Target, source: source, graph: covered.Graph}, options)
	}
	return Run(ctx, cluster, Target{Image: run.Target.Image}, options)
}

// PathOf returns the versions on the path of a recorded run of a later update, from the cluster's to the target. It is
// nil for any other run, and for a record that is not authentic.
func PathOf(run record.Record) []string {
	covered, err := selection.Recorded(run)
	if err != nil || len(covered.Path) == 0 || len(covered.Path) > maxHops || run.Verified() != nil {
		return nil
	}
	var versions []string
	for _, each := range covered.Path {
		versions = append(versions, each.Version)
	}
	return append(versions, run.Target.Version)
}
