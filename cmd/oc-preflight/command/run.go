package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/jobs"
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

func newRun(client *client) *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "run (--to VERSION | --to-latest | --to-image PULLSPEC | --path | --hop RELEASE...)",
		Short: "Run the preflight checks of a release and give the verdict",
		Long: `Run the preflight checks that the target release ships, as read-only Jobs in this
cluster, evaluate the gates, risks and health of the cluster, and give one verdict: Ready,
Blocked or Undecided. Nothing is updated, and the Jobs are deleted at the end.

With --path or --hop, the updates of a path are checked one after the other, each with the
checks of its release, and there is a decision for each and for the path: Blocked or
Undecided if that of an update is, else that of the first update. A later update is
provisional and never Ready: it is judged from the present cluster, and the checks that can
only be asked before it are listed. Each update is a run of its own, and a check that
several releases have with the same image is run once.

The run is recorded in the cluster. Where a run of the same release is in progress,
also from another machine, this command waits for its result, and continues it when
its process is gone. Checks that passed in an earlier run are not run again while their
results hold, unless --rerun is given. See also history, status and diff.

Ctrl-C either deletes what the run has created or detaches from it and leaves its
checks running; on a terminal you are asked. A second Ctrl-C stops the program at once.

The report is written to standard output, progress to standard error. The report lists
the objects that the run created; the exit code is 1 if they could not be deleted.
` + exitHelp,
		Example: `  # Is it safe to update to the newest available release?
  oc preflight run --to-latest

  # Accept one finding by its name, and keep the report
  oc preflight run --to 4.19.3 --accept ClusterIngressOperator.DefaultCertificate -o json > report.json

  # For people on the terminal, and for a CI system and an approver in files
  oc preflight run --to 4.19.3 --report junit=junit_preflight.xml --report html=report.html

  # Accept the risks of a file, each with its reason
  oc preflight run --to 4.19.3 --accept-file accepted-risks.yaml

  # Each update of the best path to 4.18, or of the path that is named
  oc preflight run --path --to-minor 4.18 --channel eus-4.18
  oc preflight run --hop 4.17.33 --hop 4.18.17 --channel eus-4.18

  # Checks of your own besides those of the release; see "oc preflight init --site"
  oc preflight run --to 4.19.3 --checks ./site-checks --checks registry.example.com/checks@sha256:...

  # A release that ClusterVersion does not list
  oc preflight run --to-image quay.io/openshift-release-dev/ocp-release@sha256:...`,
		Args: flags.noArgument,
		RunE: func(c *cobra.Command, _ []string) error { return run(c, client, flags) },
	}
	flags.targetFlags.add(c)
	flags.route.add(c)
	flags.conductFlags(c)
	flags.selectionFlags(c)
	flags.addImages(c)
	client.quietFlag(c)
	return c
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
	f.output.addText(c, report.Report{})
}

func (f *runFlags) addImages(c *cobra.Command) {
	c.Flags().StringVar(&f.images, "images", string(image.Manifests), "How to check the images of the release: check requests their manifests from where nodes would pull them, check-blobs also their layers; pull has each node pull the images of the checks, pull-all all images; with off, Images is Unknown unless accepted.")
}

// noArguments refuses arguments as wrong usage.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Errorf("%q takes no argument, but got %q; see %q", c.CommandPath(), args[0], c.CommandPath()+" --help"))
	}
	return nil
}

func run(c *cobra.Command, client *client, flags runFlags) error {
	if err := errors.Join(flags.checkConduct(), flags.route.check(flags.targetFlags, flags.pullFlags)); err != nil {
		return usageError(err)
	}
	out, err := flags.output.open(client.streams.Out, flags.document())
	if err != nil {
		return err
	}
	defer out.close()
	flags.out = out
	reached, err := client.connect()
	if err != nil {
		return err
	}
	options, err := flags.options(c.Context(), client, reached)
	if err != nil {
		return err
	}
	if flags.route.requested() {
		return runPath(c, client, flags, reached, options)
	}
	return conduct(c, client, flags, options, func(ctx context.Context, options runner.Options) (report.Report, error) {
		return runner.Run(ctx, reached, flags.target, options)
	})
}

func (f *runFlags) checkConduct() error {
	return errors.Join(f.output.check(f.document()), checkInterrupt(f.onInterrupt))
}

// document is an empty one of the kind that the run makes.
func (f *runFlags) document() any {
	if f.route.requested() {
		return report.Path{}
	}
	return report.Report{}
}

// conduct runs a preflight, and shows it while it runs and when it ends.
func conduct(c *cobra.Command, client *client, flags runFlags, options runner.Options, start func(context.Context, runner.Options) (report.Report, error)) error {
	display := client.display(flags.about(c, client))
	prompt := &interruptPrompt{streams: client.streams, quiet: client.quiet, how: flags.onInterrupt, display: display, program: c.Root().CommandPath()}
	defer prompt.watch(c.Context())()
	follower := &observer{display: display, prompt: prompt, write: func(decided report.Report) error {
		return flags.out.write(withGraph(flags.route.graph, decided, c.Root().CommandPath()))
	}}
	options.Observer, options.OnInterrupt = follower, prompt.choose
	decided, err := start(c.Context(), options)
	display.close()
	prompt.reportRemoval(decided)
	if err := errors.Join(flags.late(err), follower.failure); err != nil {
		return err
	}
	return exitOf(decided)
}

// about is the run for its display.
func (f *runFlags) about(c *cobra.Command, client *client) about {
	return about{
		decides: true, target: f.target.Version, limit: f.timeout, interrupt: f.interruption(client.streams.In), program: c.Root().CommandPath(),
	}
}

// interruption is the effect of Ctrl-C, where the answers are read from in.
func (f *runFlags) interruption(in io.Reader) string {
	switch {
	case f.onInterrupt == string(runner.Detach):
		return "detach"
	case f.onInterrupt == ask:
		if _, ok := terminal(in); ok {
			return "detach or clean up"
		}
	}
	return "clean up"
}

// late adds the time limit to the error of a run that exceeded it.
func (f *runFlags) late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the run did not reach a verdict within --timeout %s: %w", f.timeout, err)
	}
	return err
}

// observer shows a run on the display and writes its report.
type observer struct {
	display display
	prompt  *interruptPrompt
	write   func(report.Report) error
	// failure is the error of writing the report.
	failure error
}

// Started implements runner.Observer.
func (o *observer) Started(run string) {
	o.prompt.started(run)
	o.display.started(run)
}

// Step implements runner.Observer.
func (o *observer) Step(step string) { o.display.step(step) }

// Status implements runner.Observer.
func (o *observer) Status(status jobs.Status) { o.display.status(status) }

// Reported implements runner.Observer.
func (o *observer) Reported(findings []finding.Finding) { o.display.reported(findings) }

// Decided implements runner.Observer.
func (o *observer) Decided(decided report.Report) {
	o.display.clear()
	o.failure = o.write(decided)
}

// progressOnly is the observer of a command that writes no report of a run.
func progressOnly(display display) *observer {
	return &observer{display: display, prompt: &interruptPrompt{}, write: func(report.Report) error { return nil }}
}

// reportRemoval writes what became of the objects of a run, after the report,
// which lists them. On a terminal, success is not written: the report would scroll.
func (p *interruptPrompt) reportRemoval(removed report.Report) {
	w := p.streams.ErrOut
	_, scrolls := terminal(p.streams.Out)
	if removed.Removal != nil {
		reportForeign(w, removed.Removal.Foreign, removed.Run.ID)
	}
	switch {
	case p.detached:
		fmt.Fprintf(w, "the checks of run %s continue in the cluster; come back with: %s attach %[1]s\n", removed.Run.ID, p.program)
	case removed.Removal == nil && len(removed.Created) > 0:
		fmt.Fprintf(w, "%d objects of the run are left in the cluster for inspection; delete them with: %s cleanup %s\n", len(removed.Created), p.program, removed.Run.ID)
	case removed.Removal == nil:
	case len(removed.Removal.Left) == 0 && (p.quiet || scrolls || len(removed.Removal.Deleted) == 0):
	case len(removed.Removal.Left) == 0:
		fmt.Fprintf(w, "%d objects of the run were deleted; a final list found none left\n", len(removed.Removal.Deleted))
	default:
		for _, object := range removed.Removal.Left {
			fmt.Fprintf(w, "not deleted: %s\n", objectName(object))
		}
	}
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
