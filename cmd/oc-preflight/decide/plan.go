package decide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/document/planview"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/signature/localfile"
)

// PlanOptions are the flags of "plan".
type PlanOptions struct {
	// Target is the release to plan for; the zero value for the newest one.
	Target updateplan.Target
	// Latest is true for --to-latest, which is the default.
	Latest bool
	// From is the version to start from without a cluster; empty for the release of the cluster.
	From string
	// Follow is the path of a stored plan to check again.
	Follow string
	// Prometheus is the URL of a querier; empty for the monitoring of the cluster.
	Prometheus string
	// ImageSet is the version of the ImageSetConfigurations.
	ImageSet string
	// Directory is where the ImageSetConfigurations are written; empty for standard output.
	Directory string

	Accepted flagset.Accepted
	Graph    flagset.Graph
	Stored   flagset.Pull
	Hosted   flagset.Hosted
	Output   flagset.Output
}

const planExamples = `  # The newest release that can be reached
  oc preflight plan --channel eus-4.18

  # Store the plan, and check it again after each update
  oc preflight plan --to 4.18.17 --channel eus-4.18 -o json > plan.json
  oc preflight plan --follow plan.json --channel eus-4.18

  # For a change ticket
  oc preflight plan --to 4.18.17 --channel eus-4.18 -o markdown > plan.md

  # For approvers: one page with pictures of the path and of the durations
  oc preflight plan --to 4.18.17 --channel eus-4.18 -o html > plan.html

  # Without a cluster: what to mirror with oc-mirror
  oc preflight plan --from 4.16.27 --to 4.18.17 --graph eus-4.18.json -o imageset > imageset.yaml

  # Again, without access to the update service
  oc preflight plan --from 4.16.27 --to 4.18.17 --channel eus-4.18 --offline

  # The graph of an EUS channel, on a machine with access to the update service
  curl -H 'Accept: application/json' -o eus-4.18.json \
      'https://api.openshift.com/api/upgrades_info/v1/graph?channel=eus-4.18&arch=amd64'`

// NewPlan returns the command "plan", which plans the updates to a release and changes nothing.
func NewPlan(client *cli.Client) *cobra.Command {
	var flags PlanOptions
	c := &cobra.Command{
		Use:   "plan [--to VERSION | --to-minor X.Y | --to-latest | --follow FILE]",
		Short: "Plan the updates to a release: risks, pauses, durations, images",
		Long: `Find the best path of updates from the release of this cluster to a target: the fewest open risks, then the fewest updates, then the newest releases. A risk is open if it applies to this cluster, or might, and is not accepted. For each update, the plan shows the channel, the risks, the gates that can be evaluated in advance, and when to unpause which pool; for the path, the duration and the images. Nothing is created.

The graph comes from the update service of the cluster; --graph selects files or other services, and --channel the channels, whose union is searched. Name a file after its channel, such as eus-4.18.json. A graph is advice: "run" decides on each update. Risks and gates of later updates are provisional, since the cluster will have changed.

Graphs of update services are cached for ten minutes in the user's cache directory. --offline uses the cached graph however old it is; the plan shows its age.

With --hosted-cluster, the plan covers a hosted cluster (HyperShift): the updates of its control plane and, between them, the updates of its NodePools, with the commands for the management cluster.

With --from, no cluster is used: no risk is evaluated, and durations are taken from the documentation.

The decision is about the first update: a gate that blocks it makes the plan Blocked, an inconclusive one Undecided. Admin acknowledgements, removed APIs and OLM operators that block a later update do not change the exit code. Alerts and health are evaluated by "targets" and "run".

A target without a path is an error. With -o json, yaml, markdown or html, the plan is written as well, with the decision NoPath and its reason.

Exit codes: 0 a path without open risks whose first update nothing blocks, 1 the tool failed, 2 wrong usage or bad input, such as a target without a path, 3 the first update is Blocked, every path has open risks and one applies, or the plan of --follow no longer holds, 4 a finding about the first update is inconclusive, or every path has open risks and it is unknown whether they apply, 130 interrupted.`,
		Example: planExamples,
		Args:    flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return planUpdates(c, client, flags) })
		},
	}
	flags.register(c)
	flags.Hosted.Add(c)
	client.ArchiveFlag(c)
	client.Roles.Declare(c, role.Role{Needs: role.Always(planner.Needs), Flags: []string{"hosted-cluster"}, Management: role.NoMore})
	return c
}

func (f *PlanOptions) register(c *cobra.Command) {
	c.Flags().StringVar(&f.Target.Version, "to", "", "Version of the target.")
	c.Flags().StringVar(&f.Target.Minor, "to-minor", "",
		"Minor version of the target, such as 4.18; its newest reachable release is the target.")
	c.Flags().BoolVar(&f.Latest, "to-latest", false,
		"Plan for the newest release of the highest minor version that can be reached. This is the default.")
	c.Flags().StringVar(&f.Follow, "follow", "",
		"File with a plan that was stored with \"-o json\": check whether the rest of it still holds. The file has the target.")
	c.Flags().StringVar(&f.From, "from", "", "Version to start from. No cluster is used.")
	f.Graph.Add(c)
	c.Flags().StringVar(&f.Stored.CacheDirectory, "cache-dir", "",
		"Directory to cache the graphs of update services in. Default: oc-preflight in the user's cache directory.")
	c.Flags().BoolVar(&f.Stored.NoCache, "no-cache", false, "Store no graph.")
	f.Accepted.Add(c)
	c.Flags().StringVar(&f.Prometheus, "prometheus", "",
		"URL of a Prometheus or Thanos querier with the metrics of the cluster. Default: the monitoring of the cluster.")
	c.Flags().StringVar(&f.ImageSet, "imageset-version", string(imageset.V2),
		"Version of the ImageSetConfigurations of \"-o imageset\": "+string(imageset.V2)+", or "+string(imageset.V1)+" for oc-mirror v1.")
	c.Flags().StringVar(&f.Directory, "dir", "", "Directory to write the files of \"-o imageset\" to, instead of standard output.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting}, "to-minor", "to-latest")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnDisplay}, "follow")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "from")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Again: option.Reaching}, "prometheus")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "dir")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "imageset-version")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnDisplay}, "cache-dir", "no-cache")
	f.Output.Add(c, planview.Plan{})
}

func (f PlanOptions) validate() error {
	if err := f.Output.Check(planview.Plan{}); err != nil {
		return err
	}
	if f.ImageSet != string(imageset.V2) && f.ImageSet != string(imageset.V1) {
		return fmt.Errorf("--imageset-version: %q is not one of %s, %s", f.ImageSet, imageset.V2, imageset.V1)
	}
	if f.Directory != "" && f.Output.Format != "imageset" {
		return errors.New("--dir needs -o imageset")
	}
	return f.validateNames()
}

// validateNames rejects channels and versions that are none.
func (f PlanOptions) validateNames() error {
	if err := errors.Join(f.Graph.Validate(), flagset.CheckMinor(f.Target.Minor)); err != nil {
		return err
	}
	for flag, version := range map[string]string{"--to": f.Target.Version, "--from": f.From} {
		if version != "" && !flagset.SemverLike(version) {
			return fmt.Errorf("%s: %q is not a version, such as 4.18.17", flag, version)
		}
	}
	return nil
}

func planUpdates(c *cobra.Command, client *cli.Client, flags PlanOptions) error {
	if err := flags.validate(); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, planview.Plan{})
	if err != nil {
		return err
	}
	defer out.Close()
	if flags.From == "" {
		out.Style.Cluster = flags.Hosted.Subject(client)
	}
	request, err := flags.request(c.Context(), client)
	if err != nil {
		return err
	}
	made, err := flags.make(c.Context(), client, request)
	if err != nil {
		return errors.Join(err, flags.writeNoPath(client.Streams.Out, made))
	}
	p := phrase.Of(c)
	for i := range made.Updates {
		p.Target = phrase.FlagsOf("--to", made.Updates[i].To)
		made.Updates[i].Findings = p.Findings(made.Updates[i].Findings)
	}
	for i, step := range made.Steps {
		made.Steps[i].Command = p.Management(step.Action)
	}
	if err := flags.write(out, made); err != nil {
		return err
	}
	return exitcode.OfPlan(made)
}

// request names the target and the graphs that the flags select. It reads their files.
func (f PlanOptions) request(ctx context.Context, client *cli.Client) (planner.Request, error) {
	source, err := f.Graph.Request(ctx, client, f.Stored)
	if err != nil {
		return planner.Request{}, err
	}
	request := planner.Request{From: f.From, Target: f.Target, Graph: source, ImageSet: imageset.Format(f.ImageSet), Logger: client.Log}
	if f.Follow != "" {
		stored, err := readPlan(ctx, f.Follow)
		if err != nil {
			return planner.Request{}, exitcode.BadUsage(fmt.Errorf("--follow: %w", err))
		}
		request.Stored = &stored
	}
	return request, nil
}

func readPlan(ctx context.Context, name string) (updateplan.Plan, error) {
	file, err := localfile.Open(ctx, name)
	if err != nil {
		return updateplan.Plan{}, err
	}
	defer file.Close()
	stored, err := updateplan.Read(file)
	if err != nil {
		return updateplan.Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	if stored.NoPath != nil {
		return updateplan.Plan{}, fmt.Errorf("%s: the plan has no path to its target", name)
	}
	return stored, nil
}

func (f PlanOptions) make(ctx context.Context, client *cli.Client, request planner.Request) (updateplan.Plan, error) {
	accepted, err := f.Accepted.Read(ctx)
	if err != nil {
		return updateplan.Plan{}, err
	}
	options := runner.Options{
		Judgement: scene.Judgement{Accepted: accepted, Accept: acceptance.Named("--accept", f.Accepted.Accept...)},
		Hooks:     runner.Hooks{Logger: client.Log, ToolVersion: program.Version()},
	}
	if f.From != "" {
		request.Transport = registry.OwnOutbound()
		return planner.PlanWithout(ctx, request, options.Settings())
	}
	reached, estate, err := f.Hosted.Open(ctx, client)
	if err != nil {
		return updateplan.Plan{}, err
	}
	options.Estate = estate
	find, err := monitoring.Querier{Config: reached.Config(), Dynamic: reached.Dynamic}.Locate(f.Prometheus)
	if err != nil {
		return updateplan.Plan{}, exitcode.BadUsage(fmt.Errorf("--prometheus: %w", err))
	}
	options.Judgement.Monitoring = monitoring.New(find, monitoring.DefaultTimeout)
	display := client.Display(terminal.About{})
	defer display.Close()
	options.Hooks.Observer = terminal.ProgressOnly(display)
	s, err := scene.OpenSettled(ctx, reached, options.Settings())
	if err != nil {
		return updateplan.Plan{}, err
	}
	request.Transport = registry.Outbound(ctx, s.Management())
	return planner.Plan(ctx, s, request)
}

// write writes the plan, or its files to the directory instead of standard output.
func (f PlanOptions) write(out *flagset.Destination, made updateplan.Plan) error {
	if f.Directory == "" {
		return out.Write(planview.Plan{Plan: made})
	}
	if err := os.MkdirAll(f.Directory, 0o755); err != nil { //nolint:gosec // not secret
		return fmt.Errorf("--dir: %w", err)
	}
	for _, file := range made.Mirror() {
		name := filepath.Join(f.Directory, file.Name)
		if err := os.WriteFile(name, file.Content, 0o644); err != nil { //nolint:gosec // not secret
			return fmt.Errorf("--dir: %w", err)
		}
		if _, err := fmt.Fprintln(out.Stdout, name); err != nil {
			return err
		}
	}
	return out.WriteFiles(planview.Plan{Plan: made})
}

// writeNoPath writes the document of a plan without a path. In formats that are not for
// documents, the error is all.
func (f PlanOptions) writeNoPath(out io.Writer, made updateplan.Plan) error {
	if made.Decision != updateplan.NoPath || !strings.Contains(f.Output.Format, "=") &&
		!slices.Contains([]string{"json", "yaml", "markdown", "html"}, f.Output.Format) {
		return nil
	}
	return expression.Write(out, f.Output.Format, planview.Plan{Plan: made}, format.Style{})
}
