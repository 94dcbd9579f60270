package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/reportview"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
)

// runFlags are the flags of "run".
type runFlags struct {
	targetFlags
	trustFlags
	judgeFlags
	pullFlags
	siteFlags

	route        pathFlags
	only, skip   []string
	parallelism  int
	timeout      time.Duration
	keep, noJobs bool
	rerun        bool
	images       string
	onInterrupt  string
	output       outputFlags
	// out is where the report is written, once the flags were checked.
	out *output
}

// selectionFlags are the flags that select checks.
func (f *runFlags) selectionFlags(c *cobra.Command) {
	c.Flags().BoolVar(&f.rerun, "rerun", false, "Run all checks again, also those whose earlier results still hold.")
	c.Flags().StringSliceVar(&f.only, "only", nil, "Run only these checks, COMPONENT or COMPONENT.CHECK. The others are Unknown.")
	c.Flags().StringSliceVar(&f.skip, "skip", nil, "Do not run these checks, COMPONENT or COMPONENT.CHECK. They are Unknown unless accepted.")
	c.Flags().BoolVar(&f.noJobs, "no-jobs", false, "Evaluate gates, risks and health only; run no checks of the release.")
	f.siteFlags.add(c)
}

// conductFlags are the flags of "run" and "attach".
func (f *runFlags) conductFlags(c *cobra.Command) {
	f.trustFlags.add(c)
	f.judgeFlags.add(c)
	f.pullFlags.add(c)
	c.Flags().IntVar(&f.parallelism, "parallelism", runner.DefaultParallelism, "Limit of Jobs that are unfinished at one time.")
	c.Flags().DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "Time limit of the run.")
	c.Flags().BoolVar(&f.keep, "keep", false, "Leave the Jobs in the cluster for inspection.")
	c.Flags().StringVar(&f.onInterrupt, "on-interrupt", ask, "Effect of Ctrl-C: clean deletes what the run created, detach leaves its checks running, ask prompts on a terminal and cleans otherwise.")
	f.output.addText(c, reportview.Report{})
}

func (f *runFlags) addImages(c *cobra.Command) {
	c.Flags().StringVar(&f.images, "images", string(image.Manifests), "How to check the images of the release: check requests their manifests from where nodes would pull them, check-blobs also their layers; pull has each node pull the images of the checks, pull-all all images; with off, Images is Unknown unless accepted.")
}

func (f *runFlags) checkConduct() error {
	return errors.Join(f.output.check(f.document()), checkInterrupt(f.onInterrupt))
}

// document is an empty one of the kind that the run makes.
func (f *runFlags) document() any {
	if f.route.requested() {
		return reportview.Path{}
	}
	return reportview.Report{}
}

// options are those of the flags, for a cluster.
func (f runFlags) options(ctx context.Context, client *client, reached *cluster.Cluster) (runner.Options, error) {
	if err := errors.Join(f.targetFlags.validate(), f.pullFlags.validate()); err != nil {
		return runner.Options{}, usageError(err)
	}
	keyrings, stores, err := f.read(ctx)
	if err != nil {
		return runner.Options{}, err
	}
	kept, err := f.cache(client)
	if err != nil {
		return runner.Options{}, err
	}
	options, err := f.judgeFlags.options(ctx, client, reached)
	if err != nil {
		return runner.Options{}, err
	}
	options.Keyrings, options.Stores, options.Force = keyrings, stores, f.force
	options.Repositories, options.Local, options.Cache = f.repositories, local(), kept
	options.Only, options.Skip, options.NoJobs, options.Keep = f.only, f.skip, f.noJobs, f.keep
	if options.Site, err = f.sources(); err != nil {
		return runner.Options{}, usageError(err)
	}
	options.Rerun = f.rerun
	options.Parallelism, options.Timeout, options.Images = f.parallelism, f.timeout, image.Mode(f.images)
	return options, nil
}
