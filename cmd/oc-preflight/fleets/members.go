package fleets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/results"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/runner/fleet/survey"
)

// Members are the flags that select the clusters of a fleet.
type Members struct {
	// Contexts are patterns of contexts of the kubeconfig.
	Contexts []string
	// Kubeconfigs are paths of kubeconfigs and of directories with them.
	Kubeconfigs []string
	// Archives are paths of archives and of directories with them.
	Archives []string
	// Hive is true for the ClusterDeployments of the current cluster.
	Hive bool
	// Hosted is true for the HostedClusters of the current cluster.
	Hosted bool

	// unread has a cli.LeftOut for the source of each archive that was opened and whose row is not complete.
	unread *sync.Map
}

func (f *Members) add(c *cobra.Command) {
	f.unread = &sync.Map{}
	c.Flags().StringSliceVar(&f.Contexts, "contexts", nil,
		"Contexts of the kubeconfig whose names match the pattern; * matches any text and ? any character.")
	c.Flags().StringArrayVar(&f.Kubeconfigs, "kubeconfigs", nil,
		"Kubeconfig, or directory of kubeconfigs, each the cluster of its current context. May be repeated.")
	c.Flags().StringArrayVar(&f.Archives, "archives", nil,
		"Archive, or directory of archives, each a cluster; see \"targets --archive\". May be repeated.")
	c.Flags().BoolVar(&f.Hive, "hive", false, "Clusters of the ClusterDeployments (Hive) of the current cluster, by their admin kubeconfigs.")
	c.Flags().BoolVar(&f.Hosted, "hosted", false, "Hosted clusters (HyperShift) of the current cluster, which is their management cluster.")
	option.Declare(c.Flags(), option.Option{Group: option.Clusters, Effect: option.OnClusters}, "contexts", "kubeconfigs", "archives", "hive",
		"hosted")
}

// check rejects flags of the connection that would select another cluster than a member.
func (f *Members) check(flags *pflag.FlagSet) error {
	hub := f.Hive || f.Hosted
	switch {
	case len(f.Contexts)+len(f.Kubeconfigs)+len(f.Archives) == 0 && !hub:
		return errors.New("no clusters are named: write --contexts, --kubeconfigs, --archives, --hive or --hosted")
	case len(f.Contexts) > 0 && hub:
		return cli.Several(flags, "kubeconfig", "context")
	case len(f.Contexts) > 0:
		return cli.Several(flags, "kubeconfig")
	case hub:
		return nil
	}
	return cli.Several(flags)
}

// list returns the members, and warnings about them.
func (f *Members) list(ctx context.Context, client *cli.Client) ([]roster.Member, []string, error) {
	var all []roster.Member
	for _, source := range []func(*cli.Client) ([]roster.Member, error){f.ofContexts, f.ofKubeconfigs} {
		members, err := source(client)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, members...)
	}
	archived, others, err := f.ofArchives(client)
	if err != nil {
		return nil, nil, err
	}
	known, notices, err := f.ofObjects(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	members, twice := roster.Distinct(slices.Concat(all, archived, known))
	return members, slices.Concat(others, notices, twice), nil
}

// ofObjects are the clusters that objects of the current cluster name.
func (f *Members) ofObjects(ctx context.Context, client *cli.Client) (members []roster.Member, notices []string, err error) {
	if !f.Hive && !f.Hosted {
		return nil, nil, nil
	}
	hub, err := client.Connect()
	if err != nil {
		return nil, nil, err
	}
	defer client.Waiting("listing the clusters")()
	if f.Hive {
		if members, notices, err = roster.Hive(ctx, hub, cli.ConnectTo); err != nil {
			return nil, nil, err
		}
	}
	if f.Hosted {
		guests, err := roster.Hosted(ctx, hub, cli.ConnectTo)
		if err != nil {
			return nil, nil, err
		}
		members = append(members, guests...)
	}
	return members, notices, nil
}

func (f *Members) ofContexts(client *cli.Client) ([]roster.Member, error) {
	if len(f.Contexts) == 0 {
		return nil, nil
	}
	config, err := cli.Kubeconfig(client)
	if err != nil {
		return nil, err
	}
	return roster.Contexts(config, f.Contexts, func(name string) (*rest.Config, error) { return cli.LoadContext(client, config, name) },
		cli.ConnectTo)
}

func (f *Members) ofKubeconfigs(client *cli.Client) ([]roster.Member, error) {
	return roster.Kubeconfigs(f.Kubeconfigs, func(path string) (*rest.Config, error) { return cli.LoadFile(client, path) }, cli.ConnectTo)
}

func (f *Members) ofArchives(client *cli.Client) ([]roster.Member, []string, error) {
	return roster.Archives(f.Archives, func(ctx context.Context, path string) (*cluster.Cluster, error) {
		reached, left, err := cli.OpenArchive(ctx, client, path)
		if err == nil {
			f.unread.Store("archive "+path, left)
		}
		return reached, err
	})
}

// noted adds to the row of an archive which files of it could not be read: at the end, since some turn out to be
// unreadable when they are first needed.
func (f *Members) noted(complete func(roster.Member, fleet.Row) fleet.Row) func(roster.Member, fleet.Row) fleet.Row {
	return func(member roster.Member, row fleet.Row) fleet.Row {
		stored, _ := f.unread.LoadAndDelete(member.Cluster.Source)
		if left, opened := stored.(cli.LeftOut); opened {
			texts := slices.DeleteFunc([]string{row.Message, left()}, func(text string) bool { return text == "" })
			row.Message = strings.Join(texts, "; ")
		}
		return complete(member, row)
	}
}

// Results are the flags about stored results.
type Results struct {
	// Path is the directory of the results; empty to store none.
	Path string
	// MaxAge is the age of the oldest result that counts.
	MaxAge time.Duration
}

func (f *Results) add(c *cobra.Command) {
	const maxAge = time.Hour
	c.Flags().StringVar(&f.Path, "results", "", "Directory to store the result of each cluster in. A repeated request continues there: "+
		"clusters that have a result are skipped. Default: store none.")
	c.Flags().DurationVar(&f.MaxAge, "max-age", maxAge, "With --results: ignore results that are older than this.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "results", "max-age")
}

// open opens the directory; nil where no results are kept.
func (f *Results) open(c *cobra.Command) (*results.Directory, error) {
	if f.Path == "" {
		return nil, nil //nolint:nilnil // no directory
	}
	asked, err := option.Key(c)
	if err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--results: %w", err))
	}
	opened, err := results.Open(f.Path, program.Version()+" "+asked, f.MaxAge, time.Now)
	if err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--results: %w", err))
	}
	return opened, nil
}

// membersRole is the role of a fleet command in the cluster whose objects list the members. Each member needs the roles
// of the verb for one cluster and, for the judgement after an update, the roles of "history".
func membersRole(verb string) role.Role {
	return role.Role{Flags: []string{"hive", "hosted"}, Members: []role.Members{
		{Flag: "hive", Cluster: "the cluster with the ClusterDeployments", Part: role.Part{Needs: roster.HiveNeeds(), Remarks: []string{
			"In the cluster with the ClusterDeployments, for --hive. The Secrets are named by " +
				"spec.clusterMetadata.adminKubeconfigSecretRef of each ClusterDeployment.",
			"A user who may get these Secrets has the credentials of an administrator of each cluster, so the clusters need no roles. " +
				"Instead of the ClusterRole, the permission may be given by a Role in the namespace of each ClusterDeployment: the others are " +
				"Unreachable.",
		}}},
		{Flag: "hosted", Cluster: "the management cluster", Part: role.Part{Needs: roster.HostedNeeds(), Remarks: []string{
			"In the management cluster, for --hosted.",
			"Each HostedCluster needs roles of its own, in the management cluster and in the guest, which \"auth " + verb +
				" --hosted-cluster NAMESPACE/NAME\" prints.",
		}}},
	}}
}

// TargetsOptions are the flags of "fleet targets".
type TargetsOptions struct {
	// To is the version of the update; empty for the best update of each cluster.
	To string

	Judge   flagset.Judge
	Request Request
}

func newTargets(client *cli.Client) *cobra.Command {
	var flags TargetsOptions
	c := &cobra.Command{
		Use:   "targets",
		Short: "List which clusters can be updated, and what blocks the others",
		Long: `Evaluate the updates of many clusters by gates, risks and health, as "targets" does for one: no release is read and none of its checks is run. Nothing is created in any cluster.

With --to, each cluster is evaluated for that version, even if it does not list the version. A cluster that was already updated to it shows the decision that "after" or the controller has stored there; the roles of "auth history" permit reading it. Without --to, each row is about the best update of the cluster: the newest that is Clear.

For each update that was the last one of some clusters, the table shows how it went there, by the same decisions: from which releases, how many were good, and what got worse in the others. A decision that cannot be read or is not authentic is unknown.

Causes are ranked by the effect of their remedy: "Frees" is the number of clusters that nothing else blocks.
` + exitCodes,
		Example: `  # Which clusters of these contexts can be updated to 4.19.12, and what blocks the others?
  oc preflight fleet targets --contexts 'prod-*' --to 4.19.12

  # The best update of each cluster of a directory of must-gathers
  oc preflight fleet targets --archives ./must-gathers

  # As a page for the change board, and as test cases
  oc preflight fleet targets --kubeconfigs ./clusters --to 4.19.12 --report html=fleet.html --report junit=fleet.xml

  # The names of the clusters that are Clear
  oc preflight fleet targets --contexts '*' --to 4.19.12 -o json | jq -r '.rows[] | select(.state == "Clear").cluster.name'`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return listTargets(c, client, flags) })
		},
	}
	const timeout = 2 * time.Minute
	c.Flags().Var(flagset.UpdateValue(&flags.To), "to", "Version of the update. Default: the best update of each cluster.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	flags.Judge.AddForFleet(c)
	flags.Request.add(c, client, timeout)
	client.Roles.Declare(c, membersRole("targets"))
	return c
}

func listTargets(c *cobra.Command, client *cli.Client, flags TargetsOptions) error {
	if err := errors.Join(flags.Request.check(c.Flags()), flagset.CheckVersion(flags.To)); err != nil {
		return exitcode.BadUsage(err)
	}
	if _, err := flags.Judge.ReadAll(c.Context()); err != nil {
		return err
	}
	asking := survey.Survey{Timeout: flags.Request.Timeout}
	if kept, err := flags.Request.Results.open(c); err != nil {
		return err
	} else if kept != nil {
		asking.Store = kept
	}
	return flags.Request.show(c, client, flags.To, asking,
		func(ctx context.Context, member roster.Member, reached roster.Connection) (fleet.Row, error) {
			return flags.judge(ctx, client, member, reached)
		})
}

func (f TargetsOptions) judge(ctx context.Context, client *cli.Client, member roster.Member, reached roster.Connection) (fleet.Row, error) {
	f.Judge.Member = &flagset.Member{Name: member.Cluster.Name, Labels: member.Cluster.Labels}
	options, err := f.Judge.Options(ctx, client, reached.Cluster)
	if err != nil {
		return fleet.Row{}, err
	}
	options.Limits.Timeout, options.Estate = f.Request.Timeout, reached.Estate
	s, err := scene.OpenSettled(ctx, reached.Cluster, options.Settings())
	if err != nil {
		return fleet.Row{}, err
	}
	judged, err := targets.Judge(ctx, s, f.To)
	if row, is := installed(member, reached, f.To, err); is {
		return row, nil
	}
	if err != nil {
		return fleet.Row{}, err
	}
	return fleet.Offered(member.Cluster, judged), nil
}
