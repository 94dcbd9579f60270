package running

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/signing"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// RunFlags are the flags of "run".
type RunFlags struct {
	Source Source
	Judge  flagset.Judge

	route        pathFlags
	hosted       flagset.Hosted
	only, skip   []string
	parallelism  int
	timeout      time.Duration
	keep, noJobs bool
	rerun        bool
	// noBaseline and redactBaseline exclude each other.
	noBaseline, redactBaseline bool

	dryRun      flagset.DryRun
	onInterrupt string
	output      flagset.Output
	signing     signing.Flags
	// signed is where the signed verdict is written; nil for none.
	signed *signing.Destination
	// out is where the report is written, once the flags were checked.
	out *flagset.Destination
}

// AddForFleet adds the flags that may be the same for the runs of many clusters.
func (f *RunFlags) AddForFleet(c *cobra.Command) {
	f.Judge.AddForFleet(c)
	f.addJobs(c, " in one cluster")
	f.addBaseline(c)
	f.addSelection(c)
}

// addJobs adds the flags about how a release is read and its Jobs are run, where of is where the limit of Jobs applies.
func (f *RunFlags) addJobs(c *cobra.Command, of string) {
	f.Source.Trust.Add(c)
	f.Source.Pull.Add(c)
	c.Flags().IntVar(&f.parallelism, "parallelism", runner.DefaultParallelism, "Limit of unfinished Jobs"+of+".")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "parallelism") // a check that starts too late has no result
}

// addBaseline adds the flags about the state of the cluster that a run stores.
func (f *RunFlags) addBaseline(c *cobra.Command) {
	c.Flags().BoolVar(&f.noBaseline, "no-baseline", false, "Do not store a baseline for \"after\".")
	c.Flags().BoolVar(&f.redactBaseline, "redact-baseline", false, "Store digests of names in the baseline: of users' namespaces and of what is in them.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "no-baseline", "redact-baseline")
}

func (f *RunFlags) baseline() baselinestore.Names {
	switch {
	case f.noBaseline:
		return baselinestore.None
	case f.redactBaseline:
		return baselinestore.Digests
	}
	return baselinestore.Plain
}

// addSelection adds the flags that select checks.
func (f *RunFlags) addSelection(c *cobra.Command) {
	c.Flags().BoolVar(&f.rerun, "rerun", false, "Run all checks again: also those whose earlier results still hold.")
	c.Flags().StringSliceVar(&f.only, "only", nil, "Run only these checks, COMPONENT or COMPONENT.CHECK. The others are Unknown.")
	c.Flags().StringSliceVar(&f.skip, "skip", nil, "Do not run these checks, COMPONENT or COMPONENT.CHECK. They are Unknown unless accepted.")
	c.Flags().BoolVar(&f.noJobs, "no-jobs", false, "Evaluate gates, risks and health only; run no checks of the release.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "rerun", "no-jobs")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer, Values: option.Checks}, "only", "skip")
	f.Source.Site.Add(c)
	f.Source.AddImages(c)
	f.Source.Rehearse.Add(c, "Ask the API server about every write of the update, by dry runs with the identity of the cluster-version operator.")
	f.dryRun.Add(c, "State that a run changes nothing of the cluster, then run.")
}

// ExplainDryRun states what a run changes, for who asks for a dry run and expects that it would change something.
func (f *RunFlags) ExplainDryRun(w io.Writer) {
	if len(f.dryRun) > 0 {
		fmt.Fprintln(w, "--dry-run: a run starts no update, and changes nothing but its own Jobs, their temporary identities, its record and the key of the records")
	}
}

// addCommon adds the flags that "run" and "attach" share.
func (f *RunFlags) addCommon(c *cobra.Command) {
	f.Judge.Add(c)
	f.addJobs(c, "")
	f.addBaseline(c)
	f.hosted.Add(c)
	c.Flags().DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "Time limit of the run.")
	c.Flags().BoolVar(&f.keep, "keep", false, "Leave the Jobs in the cluster for inspection.")
	c.Flags().StringVar(&f.onInterrupt, "on-interrupt", Ask, "Effect of Ctrl-C: clean deletes what the run created, detach leaves its checks running, ask prompts on a terminal and cleans otherwise.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "timeout", "keep")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnDisplay, Again: option.Never}, "on-interrupt")
	completion.Fixed(c, "on-interrupt", Ask, string(runner.CleanUp), string(runner.Detach))
	f.output.AddText(c, reportview.Report{})
}

func (f *RunFlags) checkCommon() error {
	return errors.Join(f.output.Check(f.document()), checkInterrupt(f.onInterrupt), f.Judge.Check())
}

// document is an empty document of the kind that the run makes.
func (f *RunFlags) document() any {
	if f.route.requested() {
		return reportview.Path{}
	}
	return reportview.Report{}
}

// Options validates the flags, reads their files, and returns the options of a run on the cluster.
func (f RunFlags) Options(ctx context.Context, client *cli.Client, reached *cluster.Cluster) (runner.Options, error) {
	options, err := f.Source.Options(ctx, client, reached, f.Judge)
	if err != nil {
		return runner.Options{}, err
	}
	options.Selection.Only, options.Selection.Skip, options.Selection.NoJobs = f.only, f.skip, f.noJobs
	options.Baseline = f.baseline()
	options.Limits = runner.Limits{Parallelism: f.parallelism, Timeout: f.timeout, Rerun: f.rerun, Keep: f.keep}
	return options, nil
}

// Source are the flags that select a release, and how it is read.
type Source struct {
	Target   flagset.Target
	Trust    flagset.Trust
	Pull     flagset.Pull
	Site     flagset.Site
	Images   string
	Rehearse flagset.Rehearse
}

// Add adds the flags of a command that reads one release, and runs none of its checks.
func (f *Source) Add(c *cobra.Command) {
	f.Target.Add(c)
	f.Trust.Add(c)
	f.Pull.Add(c)
	f.Site.Add(c)
}

// AddImages adds --images to the command.
func (f *Source) AddImages(c *cobra.Command) {
	c.Flags().StringVar(&f.Images, "images", string(image.Manifests), "How to check the images: check requests their manifests from where nodes would pull them, check-blobs also their layers; pull has each node pull the images of the checks, pull-all all images; with off, Images is Unknown unless accepted.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "images")
	var modes []string
	for _, mode := range image.Modes() {
		modes = append(modes, string(mode))
	}
	completion.Fixed(c, "images", modes...)
}

// Options validates the flags, reads their files and those of the judgement, and returns the options of a run on the
// cluster.
func (f *Source) Options(ctx context.Context, client *cli.Client, reached *cluster.Cluster, judge flagset.Judge) (runner.Options, error) {
	if err := errors.Join(f.Target.Validate(), f.Rehearse.Check()); err != nil {
		return runner.Options{}, exitcode.BadUsage(err)
	}
	keyrings, stores, err := f.Trust.Read(ctx)
	if err != nil {
		return runner.Options{}, err
	}
	kept, err := f.Pull.Cache(client)
	if err != nil {
		return runner.Options{}, err
	}
	options, err := judge.Options(ctx, client, reached)
	if err != nil {
		return runner.Options{}, err
	}
	f.Trust.Identify(&options.Origin)
	options.Trust = proof.Trust{Keyrings: keyrings, Stores: stores, Repositories: f.Trust.Repositories}
	if f.Target.Force {
		options.Judgement.Force, options.Judgement.ForceReason, options.Judgement.ForcedBy = true, f.Target.ForceReason, access.User(ctx, reached.Kubernetes)
	}
	options.Access.Local, options.Access.Cache = flagset.Local(), kept
	options.Selection.Images, options.Selection.Rehearsal = image.Mode(f.Images), f.Rehearse.Mode()
	if options.Selection.Site, err = f.Site.Sources(); err != nil {
		return runner.Options{}, exitcode.BadUsage(err)
	}
	return options, nil
}
