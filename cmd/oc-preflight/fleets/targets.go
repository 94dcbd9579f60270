package fleets

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/runner/fleet/survey"
)

// targetsFlags are the flags of "fleet targets".
type targetsFlags struct {
	judging flagset.Judge
	request request
	to      string
}

func newTargets(client *cli.Client) *cobra.Command {
	var flags targetsFlags
	c := &cobra.Command{
		Use:   "targets",
		Short: "List which clusters may be updated, and what keeps the others from it",
		Long: `Judge the updates of many clusters by gates, risks and health, as "targets" does for one: no release is read and none of its checks is run. Nothing is created in any cluster.

With --to, each cluster is judged for that version, also where it does not list it, and one that was updated to it has the judgement that "after" or the controller has stored there; the roles of "auth history" permit reading it. Without, the row of a cluster is about the best of its updates: the newest that is Clear.

For each update, the table shows how it was in the clusters of which it is the last one, by the same judgements: from which releases, how many were good, and what is worse in the others. A judgement that cannot be read or is not authentic is unknown.

The causes are ranked by what their remedy achieves: "Frees" is the number of clusters that have no other cause.
` + exitCodes,
		Example: `  # Which clusters of these contexts can go to 4.19.12, and what keeps the others from it?
  oc preflight fleet targets --contexts 'prod-*' --to 4.19.12

  # The best update of each cluster of a directory of must-gathers
  oc preflight fleet targets --archives ./must-gathers

  # As a page for the change board, and as test cases
  oc preflight fleet targets --kubeconfigs ./clusters --to 4.19.12 --report html=fleet.html --report junit=fleet.xml

  # The names of the clusters that are Clear
  oc preflight fleet targets --contexts '*' --to 4.19.12 -o json | jq -r '.rows[] | select(.state == "Clear").cluster.name'`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return listTargets(c, client, flags) },
	}
	const timeout = 2 * time.Minute
	c.Flags().Var(flagset.UpdateValue(&flags.to), "to", "Version of the update. Default: the best update of each cluster.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates}, "to")
	flags.judging.AddForFleet(c)
	flags.request.add(c, client, timeout)
	client.Roles.Declare(c, membersRole("targets"))
	return c
}

func listTargets(c *cobra.Command, client *cli.Client, flags targetsFlags) error {
	if err := errors.Join(flags.request.check(c.Flags()), flagset.CheckVersion(flags.to)); err != nil {
		return exitcode.BadUsage(err)
	}
	if _, err := flags.judging.ReadAll(c.Context()); err != nil {
		return err
	}
	asking := survey.Survey{Timeout: flags.request.timeout}
	if kept, err := flags.request.results.open(c); err != nil {
		return err
	} else if kept != nil {
		asking.Store = kept
	}
	return flags.request.show(c, client, flags.to, asking, func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
		return flags.judge(ctx, client, member, reached)
	})
}

func (f targetsFlags) judge(ctx context.Context, client *cli.Client, member roster.Member, reached roster.Connection) (fleet.Row, error) {
	f.judging.Member = &flagset.Member{Name: member.Cluster.Name, Labels: member.Cluster.Labels}
	options, err := f.judging.Options(ctx, client, reached.Cluster)
	if err != nil {
		return fleet.Row{}, err
	}
	options.Limits.Timeout, options.Estate = f.request.timeout, reached.Estate
	s, err := scene.OpenSettled(ctx, reached.Cluster, options.Settings())
	if err != nil {
		return fleet.Row{}, err
	}
	judged, err := targets.Judge(ctx, s, f.to)
	if row, is := installed(member, reached, f.to, err); is {
		return row, nil
	}
	if err != nil {
		return fleet.Row{}, err
	}
	return fleet.Offered(member.Cluster, judged), nil
}
