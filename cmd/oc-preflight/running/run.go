// Package running answers: how does a preflight run, from the command line to its exit code?
//
// [NewRun] starts a run, [NewAttach] continues one.
package running

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/signing"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/rehearsal"
)

const runExamples = `  # Is it safe to update to the newest available release?
  oc preflight run --to-latest

  # Accept one finding by its name, and keep the report
  oc preflight run --to 4.19.3 --accept ClusterIngressOperator.DefaultCertificate -o json > report.json

  # Text on the terminal, and files for a CI system and an approver
  oc preflight run --to 4.19.3 --report junit=junit_preflight.xml --report html=report.html

  # Accept the risks of a file, each with its reason
  oc preflight run --to 4.19.3 --accept-file accepted-risks.yaml

  # Each update of the best path to 4.18, or of a path that you name
  oc preflight run --path --to-minor 4.18 --channel eus-4.18
  oc preflight run --hop 4.17.33 --hop 4.18.17 --channel eus-4.18

  # With your own checks, in addition to the release's; see "oc preflight init --site"
  oc preflight run --to 4.19.3 --checks ./site-checks --checks registry.example.com/checks@sha256:...

  # The update of a hosted cluster and of one of its NodePools
  oc preflight run --hosted-cluster clusters/example --nodepool workers --to 4.19.3

  # A signed verdict for the approvers of the update
  oc preflight run --to 4.19.3 --sign cosign.key --signed-verdict verdict.dsse.json

  # A release that ClusterVersion does not list
  oc preflight run --to-image quay.io/openshift-release-dev/ocp-release@sha256:...`

// NewRun returns the command "run", which runs the checks of a release and gives the verdict.
func NewRun(client *cli.Client) *cobra.Command {
	var flags RunOptions
	c := &cobra.Command{
		Use:   "run (--to VERSION | --to-latest | --to-image PULLSPEC | --path | --hop RELEASE...)",
		Short: "Run the preflight checks of a release and give the verdict",
		Long: `Run the preflight checks that the target release ships, as read-only Jobs in this cluster, evaluate the gates, risks and health of the cluster, and give one verdict: Ready, Blocked or Undecided. Nothing is updated, and the Jobs are deleted at the end.

RUN.md describes paths of several updates, attaching and interrupting, hosted clusters, archives and signed verdicts.
` + exitcode.Help,
		Example: runExamples,
		Args:    flags.Source.Target.NoArgument,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return run(c, client, flags) })
		},
	}
	flags.Source.Target.Add(c)
	flags.Route.add(c)
	flags.addCommon(c)
	flags.addSelection(c)
	flags.Signing.Add(c)
	client.QuietFlag(c)
	client.ArchiveFlag(c)
	client.Roles.Declare(c, runRole())
	return c
}

func run(c *cobra.Command, client *cli.Client, flags RunOptions) error {
	if err := errors.Join(flags.Source.Target.CheckForce(), flags.checkCommon(), flags.Route.check()); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, flags.document())
	if err != nil {
		return err
	}
	defer out.Close()
	flags.out, out.Style.Cluster = out, flags.Hosted.Subject(client)
	if flags.signed, err = flags.Signing.Open(c.Context(), client); err != nil {
		return err
	}
	defer flags.signed.Close()
	flags.ExplainDryRun(client.Streams.ErrOut)
	reached, estate, err := flags.Hosted.Open(c.Context(), client)
	if err != nil {
		return err
	}
	options, err := flags.Options(c.Context(), client, reached)
	if err != nil {
		return err
	}
	options.Access.Partial, options.Estate = true, estate
	if flags.Route.requested() {
		return runPath(c, client, flags, reached, options)
	}
	return runAndShow(c, client, flags, options, func(ctx context.Context, options runner.Options) (report.Report, error) {
		return runner.Run(ctx, reached, flags.Source.Target.Release, options)
	})
}

// runAndShow runs a preflight, and shows it while it runs and when it ends.
func runAndShow(c *cobra.Command, client *cli.Client, flags RunOptions, options runner.Options,
	start func(context.Context, runner.Options) (report.Report, error),
) error {
	display := client.Display(flags.about(c, client))
	prompt := &interruptPrompt{streams: client.Streams, quiet: client.Quiet, how: flags.OnInterrupt, display: display, again: phrase.Of(c)}
	defer prompt.watch(c.Context())()
	follower := &observer{Observer: terminal.ProgressOnly(display), prompt: prompt, write: func(decided report.Report) error {
		request := phrase.Of(c)
		request.Target = phrase.FlagsOf(flags.Source.Target.Selected()...)
		return errors.Join(flags.out.Write(request.WithCommands(decided)), flags.signed.Write(decided))
	}}
	options.Hooks.Observer, options.Hooks.OnInterrupt = follower, prompt.choose
	decided, err := start(c.Context(), options)
	display.Close()
	prompt.reportRemoval(decided)
	if err := errors.Join(flags.withTimeLimit(err), follower.failure); err != nil {
		return err
	}
	return exitcode.Of(decided)
}

func (f *RunOptions) about(c *cobra.Command, client *cli.Client) terminal.About {
	return terminal.About{
		Decides: true, Target: f.Source.Target.Release.Version, Limit: f.Timeout, Interrupt: f.interruption(client.Streams.In),
		Program: c.Root().CommandPath(),
	}
}

// interruption is the effect of Ctrl-C, where the answers are read from in.
func (f *RunOptions) interruption(in io.Reader) string {
	switch {
	case f.OnInterrupt == string(runner.Detach):
		return "detach"
	case f.OnInterrupt == Ask:
		if _, ok := terminal.Of(in); ok {
			return "detach or clean up"
		}
	}
	return "clean up"
}

// withTimeLimit adds the time limit to the error of a run that exceeded it.
func (f *RunOptions) withTimeLimit(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the run did not reach a verdict within --timeout %s: %w", f.Timeout, err)
	}
	return err
}

// observer shows a run, and writes its report.
type observer struct {
	progress.Observer

	prompt *interruptPrompt
	write  func(report.Report) error
	// failure is the error of writing the report.
	failure error
}

func (o *observer) Started(run string) {
	o.prompt.started(run)
	o.Observer.Started(run)
}

func (o *observer) Decided(decided report.Report) {
	o.Observer.Decided(decided)
	o.failure = o.write(decided)
}

// createsSecrets is the consequence of the optional permission to create the key of records.
const createsSecrets = "A user who may create Secrets in the namespace openshift-cluster-version, and get the one with the key of " +
	"the records, can get a token of any of its ServiceAccounts. After the first run, the role needs no permission to create Secrets."

// impersonates is the consequence of the permissions of a rehearsal.
const impersonates = "A user who may impersonate the cluster-version operator can do what it can: the roles of --rehearse are " +
	"worth as much as cluster-admin."

// runRole is the role of "run" and of "attach".
func runRole() role.Role {
	return role.Role{
		Flags: []string{"to", "to-image", "to-latest", "images", "rehearse", "checks", "hosted-cluster"},
		Needs: func(r role.Request) access.Needs {
			if r.Release != nil {
				return *r.Release
			}
			return runner.RunNeeds(r.Images, r.Rehearsal)
		},
		Remarks: func(r role.Request) []string {
			remarks := []string{role.CopiesGrant, role.JobsRunAs, createsSecrets}
			if r.Rehearsal != rehearsal.Off {
				remarks = append(remarks, impersonates)
			}
			if r.Release != nil {
				return append([]string{fmt.Sprintf("For runs of one release, with --images=%s.", r.Images)}, remarks...)
			}
			return append([]string{
				fmt.Sprintf("For runs with --images=%s.", r.Images),
				fmt.Sprintf(role.Given, "the release") +
					" With --to, --to-latest or --to-image they are, and creation is allowed in the namespaces of the release only.",
			}, remarks...)
		},
		Management: inManagement,
	}
}

// inManagement has what only some releases need as optional: without it, their checks are inconclusive.
func inManagement(of types.NamespacedName) role.Part {
	needs := estate.ManagementNeeds()
	inControlPlane := place.ControlPlaneNeeds(hypershift.ControlPlaneNamespace(of.Namespace, of.Name))
	needs = needs.And(access.Needs{Optional: append(inControlPlane.Required, inControlPlane.Optional...), Given: inControlPlane.Given})
	needs.Optional = append(needs.Optional, check.Get("", "secrets", of.Namespace, of.Name+"-pull-secret"))
	return role.Part{Needs: needs, Remarks: []string{"The other Secret is named by spec.pullSecret, by default NAME-pull-secret."}}
}

// RunOptions are the flags of "run", and the argument and flags of "attach".
type RunOptions struct {
	// Run is the ID of the run to attach to, or a prefix of it; empty for the run in progress.
	Run string
	// Only are the checks to run, COMPONENT or COMPONENT.CHECK; empty for all.
	Only []string
	// Skip are the checks not to run.
	Skip []string
	// NoJobs is true to run no checks of the release.
	NoJobs bool
	// Rerun is true to run checks whose earlier results still hold.
	Rerun bool
	// Parallelism is the limit of unfinished Jobs.
	Parallelism int
	// Timeout is the time limit of the run.
	Timeout time.Duration
	// Keep is true to leave the Jobs in the cluster.
	Keep bool
	// NoBaseline is true to store no baseline, and RedactBaseline to store one without names.
	NoBaseline, RedactBaseline bool
	// DryRun is set to print that a run changes nothing.
	DryRun flagset.DryRun
	// OnInterrupt is the effect of Ctrl-C: "ask", "clean" or "detach".
	OnInterrupt string

	Source  Source
	Judge   flagset.Judge
	Route   Route
	Hosted  flagset.Hosted
	Output  flagset.Output
	Signing signing.Flags

	// signed is where the signed verdict is written; nil for none.
	signed *signing.Destination
	// out is where the report is written, once the flags were checked.
	out *flagset.Destination
}

// AddForFleet adds the flags that may be the same for the runs of many clusters.
func (f *RunOptions) AddForFleet(c *cobra.Command) {
	f.Judge.AddForFleet(c)
	f.addJobs(c, " in one cluster")
	f.addBaseline(c)
	f.addSelection(c)
}

// addJobs adds the flags about how a release is read and its Jobs are run, where of is where the limit of Jobs applies.
func (f *RunOptions) addJobs(c *cobra.Command, of string) {
	f.Source.Trust.Add(c)
	f.Source.Pull.Add(c)
	c.Flags().IntVar(&f.Parallelism, "parallelism", runner.DefaultParallelism, "Limit of unfinished Jobs"+of+".")
	// a check that starts too late has no result
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "parallelism")
}

// addBaseline adds the flags about the state of the cluster that a run stores.
func (f *RunOptions) addBaseline(c *cobra.Command) {
	c.Flags().BoolVar(&f.NoBaseline, "no-baseline", false, "Do not store a baseline for \"after\".")
	c.Flags().BoolVar(&f.RedactBaseline, "redact-baseline", false,
		"Store digests instead of names in the baseline: of users' namespaces and the objects in them.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "no-baseline", "redact-baseline")
}

func (f *RunOptions) baseline() baselinestore.Names {
	switch {
	case f.NoBaseline:
		return baselinestore.None
	case f.RedactBaseline:
		return baselinestore.Digests
	}
	return baselinestore.Plain
}

// addSelection adds the flags that select checks.
func (f *RunOptions) addSelection(c *cobra.Command) {
	c.Flags().BoolVar(&f.Rerun, "rerun", false, "Run all checks again: also checks whose earlier results still hold.")
	c.Flags().StringSliceVar(&f.Only, "only", nil, "Run only these checks, COMPONENT or COMPONENT.CHECK. The others are Unknown.")
	c.Flags().StringSliceVar(&f.Skip, "skip", nil, "Do not run these checks, COMPONENT or COMPONENT.CHECK. They are Unknown unless accepted.")
	c.Flags().BoolVar(&f.NoJobs, "no-jobs", false, "Evaluate gates, risks and health only; run no checks of the release.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "rerun", "no-jobs")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer, Values: option.Checks}, "only", "skip")
	f.Source.Site.Add(c)
	f.Source.AddImages(c)
	f.Source.Rehearse.Add(c, "Ask the API server about every write of the update: by dry runs with the identity of the "+
		"cluster-version operator.")
	f.DryRun.Add(c, "Print that a run changes nothing in the cluster, then run.")
}

// ExplainDryRun states what a run changes, for who asks for a dry run and expects that it would change something.
func (f *RunOptions) ExplainDryRun(w io.Writer) {
	if len(f.DryRun) > 0 {
		fmt.Fprintln(w, "--dry-run: a run starts no update, and changes nothing but its own Jobs, their temporary identities, its "+
			"record and the key of the records")
	}
}

// addCommon adds the flags that "run" and "attach" share.
func (f *RunOptions) addCommon(c *cobra.Command) {
	f.Judge.Add(c)
	f.addJobs(c, "")
	f.addBaseline(c)
	f.Hosted.Add(c)
	c.Flags().DurationVar(&f.Timeout, "timeout", runner.DefaultTimeout, "Time limit of the run.")
	c.Flags().BoolVar(&f.Keep, "keep", false, "Leave the Jobs in the cluster for inspection.")
	c.Flags().StringVar(&f.OnInterrupt, "on-interrupt", Ask,
		"Effect of Ctrl-C: clean deletes what the run created, detach leaves its checks running, ask prompts on a terminal and cleans otherwise.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "timeout", "keep")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnDisplay, Again: option.Never}, "on-interrupt")
	completion.Fixed(c, "on-interrupt", Ask, string(runner.CleanUp), string(runner.Detach))
	f.Output.AddText(c, reportview.Report{})
}

func (f *RunOptions) checkCommon() error {
	return errors.Join(f.Output.Check(f.document()), checkInterrupt(f.OnInterrupt), f.Judge.Check())
}

// document is an empty document of the kind that the run makes.
func (f *RunOptions) document() any {
	if f.Route.requested() {
		return reportview.Path{}
	}
	return reportview.Report{}
}

// Options validates the flags, reads their files, and returns the options of a run on the cluster.
func (f RunOptions) Options(ctx context.Context, client *cli.Client, reached *cluster.Cluster) (runner.Options, error) {
	options, err := f.Source.Options(ctx, client, reached, f.Judge)
	if err != nil {
		return runner.Options{}, err
	}
	options.Selection.Only, options.Selection.Skip, options.Selection.NoJobs = f.Only, f.Skip, f.NoJobs
	options.Baseline = f.baseline()
	options.Limits = runner.Limits{Parallelism: f.Parallelism, Timeout: f.Timeout, Rerun: f.Rerun, Keep: f.Keep}
	return options, nil
}

// Source are the flags that select a release, and how it is read.
type Source struct {
	// Images is how the images are checked; see [image.Mode].
	Images string

	Target   flagset.Target
	Trust    flagset.Trust
	Pull     flagset.Pull
	Site     flagset.Site
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
	c.Flags().StringVar(&f.Images, "images", string(image.Manifests),
		"How to check the images: check requests their manifests from where nodes would pull them, check-blobs also their layers; "+
			"pull has each node pull the images of the checks, pull-all all images; with off, Images is Unknown unless accepted.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "images")
	var modes []string
	for _, mode := range image.Modes() {
		modes = append(modes, string(mode))
	}
	completion.Fixed(c, "images", modes...)
}

// Options validates the flags, reads the files that they name, and returns the options of a run on the
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
		options.Judgement.Force, options.Judgement.ForceReason, options.Judgement.ForcedBy = true, f.Target.ForceReason,
			access.User(ctx, reached.Kubernetes)
	}
	options.Access.Local, options.Access.Cache = flagset.Local(), kept
	options.Selection.Images, options.Selection.Rehearsal = image.Mode(f.Images), f.Rehearse.Mode()
	if options.Selection.Site, err = f.Site.Sources(); err != nil {
		return runner.Options{}, exitcode.BadUsage(err)
	}
	return options, nil
}
