package fleets

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/fleet/roster"
)

// memberFlags select the clusters of a fleet.
type memberFlags struct {
	contexts, kubeconfigs, archives []string
}

func (f *memberFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.contexts, "contexts", nil, "Contexts of the kubeconfig whose names match; * is any text and ? any character.")
	c.Flags().StringArrayVar(&f.kubeconfigs, "kubeconfigs", nil, "Kubeconfig, or directory of kubeconfigs, each the cluster of its current context. May be repeated.")
	c.Flags().StringArrayVar(&f.archives, "archives", nil, "Archive, or directory of archives, each a cluster; see \"targets --archive\". May be repeated.")
}

// list are the members, and what is to be said about them.
func (f *memberFlags) list(_ context.Context, client *cli.Client) ([]roster.Member, []string, error) {
	if len(f.contexts)+len(f.kubeconfigs)+len(f.archives) == 0 {
		return nil, nil, exitcode.BadUsage(errors.New("no clusters are named: write --contexts, --kubeconfigs or --archives"))
	}
	var all []roster.Member
	for _, source := range []func(*cli.Client) ([]roster.Member, error){f.ofContexts, f.ofKubeconfigs, f.ofArchives} {
		members, err := source(client)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, members...)
	}
	members, notices := roster.Distinct(all)
	return members, notices, nil
}

func (f *memberFlags) ofContexts(client *cli.Client) ([]roster.Member, error) {
	if len(f.contexts) == 0 {
		return nil, nil
	}
	config, err := cli.Kubeconfig(client)
	if err != nil {
		return nil, err
	}
	return roster.Contexts(config, f.contexts, func(name string) (*rest.Config, error) { return cli.LoadContext(client, config, name) }, cli.ConnectTo)
}

func (f *memberFlags) ofKubeconfigs(*cli.Client) ([]roster.Member, error) {
	return roster.Kubeconfigs(f.kubeconfigs, cli.LoadFile, cli.ConnectTo)
}

func (f *memberFlags) ofArchives(client *cli.Client) ([]roster.Member, error) {
	return roster.Archives(f.archives, func(ctx context.Context, path string) (*cluster.Cluster, error) {
		return cli.OpenArchive(ctx, client, path)
	})
}
