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
	c.Flags().StringVar(&h.cluster, "hosted-cluster", "", "NAMESPACE/NAME of a HostedCluster (HyperShift) to judge; the kubeconfig is that of its management cluster.")
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

// Open opens the cluster whose updates are judged: the guest of the hosted cluster with the side of its
// management cluster, or the cluster of the client without one. A guest that cannot be reached is
// no error.
func (h *Hosted) Open(ctx context.Context, client *cli.Client) (*cluster.Cluster, *hosted.ControlPlane, error) {
	if h.cluster == "" {
		reached, err := client.Open(ctx)
		return reached, nil, err
	}
	of, err := NamespacedName("--hosted-cluster", h.cluster)
	if err != nil {
		return nil, nil, exitcode.BadUsage(err)
	}
	namespace, name := of.Namespace, of.Name
	if client.Archived() {
		return h.openArchive(ctx, client, namespace, name)
	}
	management, err := client.Connect()
	if err != nil {
		return nil, nil, err
	}
	if err := client.Review(ctx, management, hosted.Reads(namespace, name)); err != nil {
		return nil, nil, err
	}
	defer client.Waiting("reading the hosted cluster")()
	side, err := hosted.Open(ctx, management, namespace, name, h.pools...)
	if err != nil {
		return nil, nil, err
	}
	return h.reach(ctx, side)
}

// openArchive opens both sides of a dump of HyperShift.
func (h *Hosted) openArchive(ctx context.Context, client *cli.Client, namespace, name string) (*cluster.Cluster, *hosted.ControlPlane, error) {
	management, guest, err := client.OpenHosted(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	side, err := hosted.Open(ctx, management, namespace, name, h.pools...)
	if err != nil {
		return nil, nil, err
	}
	err = fmt.Errorf("the archive has no directory hostedcluster-%s", name)
	if guest != nil {
		err = side.Confirm(ctx, guest)
	}
	return hosted.Reached(side, guest, err, cli.ConnectTo)
}

// reach connects the guest.
func (h *Hosted) reach(ctx context.Context, side *hosted.ControlPlane) (*cluster.Cluster, *hosted.ControlPlane, error) {
	if h.guestKubeconfig == "" {
		return hosted.Reach(ctx, side, cli.ConnectTo)
	}
	guest, err := cli.ConnectFile(h.guestKubeconfig)
	if err != nil {
		return nil, nil, exitcode.BadUsage(fmt.Errorf("--guest-kubeconfig: %w", err))
	}
	return hosted.Reached(side, guest, side.Confirm(ctx, guest), cli.ConnectTo)
}
