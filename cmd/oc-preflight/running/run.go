// Package running answers: how does a preflight run, from the command line to its exit code?
//
// [NewRun] starts a run, [NewAttach] continues one.
package running

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner"
)

const runExamples = `  # Is it safe to update to the newest available release?
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

  # The update of a hosted cluster and of one of its NodePools
  oc preflight run --hosted-cluster clusters/example --nodepool workers --to 4.19.3

  # A signed verdict for those who approve the update
  oc preflight run --to 4.19.3 --sign cosign.key --signed-verdict verdict.dsse.json

  # A release that ClusterVersion does not list
  oc preflight run --to-image quay.io/openshift-release-dev/ocp-release@sha256:...`

// NewRun makes "run", which runs the checks of a release and gives the verdict.
func NewRun(client *cli.Client) *cobra.Command {
	var flags RunFlags
	c := &cobra.Command{
		Use:   "run (--to VERSION | --to-latest | --to-image PULLSPEC | --path | --hop RELEASE...)",
		Short: "Run the preflight checks of a release and give the verdict",
		Long: `Run the preflight checks that the target release ships, as read-only Jobs in this cluster, evaluate the gates, risks and health of the cluster, and give one verdict: Ready, Blocked or Undecided. Nothing is updated, and the Jobs are deleted at the end.

The page RUN.md has the paths of several updates, attaching and interrupting, hosted clusters, archives and signed verdicts.
` + exitcode.Help,
		Example: runExamples,
		Args:    flags.Source.Target.NoArgument,
		RunE:    func(c *cobra.Command, _ []string) error { return run(c, client, flags) },
	}
	flags.Source.Target.Add(c)
	flags.route.add(c)
	flags.addCommon(c)
	flags.addSelection(c)
	flags.signing.Add(c)
	client.QuietFlag(c)
	client.ArchiveFlag(c)
	client.Roles.Declare(c, runRole())
	return c
}

func run(c *cobra.Command, client *cli.Client, flags RunFlags) error {
	if err := errors.Join(flags.Source.Target.CheckForce(), flags.checkCommon(), flags.route.check()); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.output.Open(client.Streams.Out, flags.document())
	if err != nil {
		return err
	}
	defer out.Close()
	flags.out, out.Style.Cluster = out, flags.hosted.Subject(client)
	if flags.signed, err = flags.signing.Open(c.Context(), client); err != nil {
		return err
	}
	defer flags.signed.Close()
	flags.ExplainDryRun(client.Streams.ErrOut)
	reached, estate, err := flags.hosted.Open(c.Context(), client)
	if err != nil {
		return err
	}
	options, err := flags.Options(c.Context(), client, reached)
	if err != nil {
		return err
	}
	options.Access.Partial, options.Estate = true, estate
	if flags.route.requested() {
		return runPath(c, client, flags, reached, options)
	}
	return runAndShow(c, client, flags, options, func(ctx context.Context, options runner.Options) (report.Report, error) {
		return runner.Run(ctx, reached, flags.Source.Target.Release, options)
	})
}
