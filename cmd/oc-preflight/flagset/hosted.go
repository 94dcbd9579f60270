package flagset

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
)

// Hosted are the flags that select a hosted cluster of the management cluster.
type Hosted struct {
	cluster, guestKubeconfig string
	pools                    []string
}

// Add adds the flags to a command that judges.
func (h *Hosted) Add(c *cobra.Command) {
	h.AddCluster(c)
	c.Flags().StringSliceVar(&h.pools, "nodepool", nil, "Name of a NodePool that is to be updated as well; only these pools are judged. Repeatable. Default: all pools, none of which is to be updated.")
	option.Declare(c.Flags(), option.Option{Group: option.Hosted, Effect: option.OnAnswer, Again: option.Reaching}, "nodepool")
}

// AddCluster adds the flags that select a hosted cluster, without those that select its NodePools.
func (h *Hosted) AddCluster(c *cobra.Command) {
	c.Flags().StringVar(&h.cluster, "hosted-cluster", "", "HostedCluster (HyperShift) to judge: NAMESPACE/NAME; the kubeconfig is that of its management cluster.")
	c.Flags().StringVar(&h.guestKubeconfig, "guest-kubeconfig", "", "Kubeconfig of the guest of --hosted-cluster. Default: the Secret that the status of the HostedCluster names.")
	option.Declare(c.Flags(), option.Option{Group: option.Hosted, Effect: option.OnClusters, Again: option.Reaching}, "hosted-cluster", "guest-kubeconfig")
}

// Named reports whether a hosted cluster is selected.
func (h *Hosted) Named() bool { return h.cluster != "" }

// Subject names what is judged: as [cli.Subject] does, or the hosted cluster there.
func (h *Hosted) Subject(client *cli.Client) string {
	if !h.Named() {
		return cli.Subject(client)
	}
	return "hosted cluster " + h.cluster + " of " + cli.Subject(client)
}

// Opened is a cluster whose updates are judged, with the estate that it belongs to.
type Opened struct {
	Cluster *cluster.Cluster
	Estate  hosted.Estate
}

// Open opens the cluster whose updates are judged: the guest of the hosted cluster with the estate that it belongs
// to, or the cluster of the client. A guest that cannot be reached is
// no error.
func (h *Hosted) Open(ctx context.Context, client *cli.Client) (*cluster.Cluster, hosted.Estate, error) {
	if h.cluster == "" {
		reached, err := client.Open(ctx)
		return reached, hosted.Estate{}, err
	}
	opened, err := h.reach(ctx, client, cli.Archives(client))
	return opened.Cluster, opened.Estate, err
}

// OpenArchives opens each archive of the client by itself, in the order of the flags. An archive without the guest is an
// error.
func (h *Hosted) OpenArchives(ctx context.Context, client *cli.Client) ([]Opened, error) {
	var all []Opened
	if h.cluster == "" {
		clusters, err := cli.OpenArchives(ctx, client)
		for _, each := range clusters {
			all = append(all, Opened{Cluster: each})
		}
		return all, err
	}
	for _, path := range cli.Archives(client) {
		opened, err := h.reach(ctx, client, []string{path})
		if err != nil {
			return nil, err
		}
		if err := opened.Estate.GuestError(); err != nil {
			return nil, fmt.Errorf("--archive %s: %w", path, err)
		}
		all = append(all, opened)
	}
	return all, nil
}

// reach opens the guest of the hosted cluster: that of archives, if there are any.
func (h *Hosted) reach(ctx context.Context, client *cli.Client, archives []string) (Opened, error) {
	name, err := NamespacedName("--hosted-cluster", h.cluster)
	if err != nil {
		return Opened{}, exitcode.BadUsage(err)
	}
	selected := hosted.Selection{Namespace: name.Namespace, Name: name.Name, Pools: h.pools}
	management, err := h.management(ctx, client, &selected, archives)
	if err != nil {
		return Opened{}, err
	}
	defer client.Waiting("reading the hosted cluster")()
	guest, estate, err := hosted.Reach(ctx, management, selected, cli.ConnectTo)
	return Opened{Cluster: guest, Estate: estate}, err
}

// management connects the management cluster, and selects the guest that the flags name.
func (h *Hosted) management(ctx context.Context, client *cli.Client, selected *hosted.Selection, archives []string) (*cluster.Cluster, error) {
	if len(archives) > 0 {
		management, guest, err := client.OpenHosted(ctx, selected.Name, archives...)
		selected.Guest = func() (*cluster.Cluster, error) {
			if guest == nil {
				return nil, fmt.Errorf("the archive has no directory hostedcluster-%s", selected.Name)
			}
			return guest, nil
		}
		return management, err
	}
	if h.guestKubeconfig != "" {
		guest, err := cli.ConnectFile(h.guestKubeconfig)
		if err != nil {
			return nil, exitcode.BadUsage(fmt.Errorf("--guest-kubeconfig: %w", err))
		}
		selected.Guest = func() (*cluster.Cluster, error) { return guest, nil }
	}
	management, err := client.Connect()
	if err != nil {
		return nil, err
	}
	return management, client.Review(ctx, management, hosted.Reads(selected.Namespace, selected.Name))
}
