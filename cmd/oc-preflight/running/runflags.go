package running

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/signing"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
)

// RunFlags are the flags of "run".
type RunFlags struct {
	flagset.Target
	flagset.Trust
	flagset.Judge
	flagset.Pull
	flagset.Site

	route        pathFlags
	hosted       flagset.Hosted
	only, skip   []string
	parallelism  int
	timeout      time.Duration
	keep, noJobs bool
	rerun        bool
	Images       string
	onInterrupt  string
	Output       flagset.Output
	signing      signing.Flags
	// signed is where the signed verdict is written; nil for none.
	signed *signing.Destination
	// out is where the report is written, once the flags were checked.
	out *flagset.Destination
}

// AddForFleet adds those that may be the same for the runs of many clusters.
func (f *RunFlags) AddForFleet(c *cobra.Command) {
	f.Trust.Add(c)
	f.Judge.AddForFleet(c)
	f.Pull.Add(c)
	c.Flags().IntVar(&f.parallelism, "parallelism", runner.DefaultParallelism, "Limit of Jobs that are unfinished at one time in one cluster.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "parallelism") // a check that starts too late has no result
	f.addSelection(c)
}

// addSelection adds the flags that select checks.
func (f *RunFlags) addSelection(c *cobra.Command) {
	c.Flags().BoolVar(&f.rerun, "rerun", false, "Run all checks again, also those whose earlier results still hold.")
	c.Flags().StringSliceVar(&f.only, "only", nil, "Run only these checks, COMPONENT or COMPONENT.CHECK. The others are Unknown.")
	c.Flags().StringSliceVar(&f.skip, "skip", nil, "Do not run these checks, COMPONENT or COMPONENT.CHECK. They are Unknown unless accepted.")
	c.Flags().BoolVar(&f.noJobs, "no-jobs", false, "Evaluate gates, risks and health only; run no checks of the release.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "rerun", "no-jobs")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer, Values: option.Checks}, "only", "skip")
	f.Site.Add(c)
	f.AddImages(c)
}

// addCommon adds the flags that "run" and "attach" share.
func (f *RunFlags) addCommon(c *cobra.Command) {
	f.Trust.Add(c)
	f.Judge.Add(c)
	f.Pull.Add(c)
	f.hosted.Add(c)
	c.Flags().IntVar(&f.parallelism, "parallelism", runner.DefaultParallelism, "Limit of Jobs that are unfinished at one time.")
	c.Flags().DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "Time limit of the run.")
	c.Flags().BoolVar(&f.keep, "keep", false, "Leave the Jobs in the cluster for inspection.")
	c.Flags().StringVar(&f.onInterrupt, "on-interrupt", Ask, "Effect of Ctrl-C: clean deletes what the run created, detach leaves its checks running, ask prompts on a terminal and cleans otherwise.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "parallelism", "timeout", "keep")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnDisplay, Again: option.Never}, "on-interrupt")
	completion.Fixed(c, "on-interrupt", Ask, string(runner.CleanUp), string(runner.Detach))
	f.Output.AddText(c, reportview.Report{})
}

// AddImages adds --images to the command.
func (f *RunFlags) AddImages(c *cobra.Command) {
	c.Flags().StringVar(&f.Images, "images", string(image.Manifests), "How to check the images of the release: check requests their manifests from where nodes would pull them, check-blobs also their layers; pull has each node pull the images of the checks, pull-all all images; with off, Images is Unknown unless accepted.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "images")
	completion.Fixed(c, "images", imageModes()...)
}

func imageModes() []string {
	var names []string
	for _, mode := range image.Modes() {
		names = append(names, string(mode))
	}
	return names
}

func (f *RunFlags) checkCommon() error {
	return errors.Join(f.Output.Check(f.document()), checkInterrupt(f.onInterrupt))
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
	if err := f.Validate(); err != nil {
		return runner.Options{}, exitcode.BadUsage(err)
	}
	keyrings, stores, err := f.Read(ctx)
	if err != nil {
		return runner.Options{}, err
	}
	kept, err := f.Cache(client)
	if err != nil {
		return runner.Options{}, err
	}
	options, err := f.Judge.Options(ctx, client, reached)
	if err != nil {
		return runner.Options{}, err
	}
	f.Identify(&options.Origin)
	options.Trust.Keyrings, options.Trust.Stores = keyrings, stores
	options.Judgement.Force, options.Judgement.ForceReason = f.Force, f.ForceReason
	options.Trust.Repositories, options.Access.Local, options.Access.Cache = f.Repositories, flagset.Local(), kept
	options.Selection.Only, options.Selection.Skip, options.Selection.NoJobs, options.Limits.Keep = f.only, f.skip, f.noJobs || client.Archived(), f.keep
	if options.Selection.Site, err = f.Sources(); err != nil {
		return runner.Options{}, exitcode.BadUsage(err)
	}
	options.Limits.Rerun, options.Limits.Unrecorded = f.rerun, client.Archived()
	options.Limits.Parallelism, options.Limits.Timeout, options.Selection.Images = f.parallelism, f.timeout, image.Mode(f.Images)
	return options, nil
}
