// Package hubs answers: what do the clusters of a hub report, from the command line to the exit
// code?
//
// [NewHub] makes "fleet hub", [NewGate] "fleet gate" and [NewRequest] "fleet request". They read the
// hub alone (package fleet/hub), and no cluster of it.
package hubs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/fleet/hub"
)

// selection are the flags of what is read of a hub.
type selection struct {
	query     hub.Query
	placement string
	keys      string
}

func (s *selection) add(c *cobra.Command) {
	c.Flags().Var(flagset.UpdateValue(&s.query.To), "to", "Version of the update.")
	c.Flags().StringVar(&s.placement, "placement", "", "NAMESPACE/NAME of the Placement that selects the clusters.")
	c.Flags().StringVar(&s.query.Group, "wave", "", "Name of the decision group of the Placement. Default: all of its clusters.")
	c.Flags().StringVar(&s.keys, "keys", "", "Directory with the public keys of the clusters, each in the file ID.pub, where ID is spec.clusterID of ClusterVersion. With it, a verdict counts only if the key of its cluster signed it.")
}

// open checks the flags, and reaches the hub.
func (s *selection) open(ctx context.Context, client *cli.Client) (*cluster.Cluster, error) {
	if s.placement != "" {
		placement, err := placementOf(s.placement)
		if err != nil {
			return nil, exitcode.BadUsage(err)
		}
		s.query.Placement = placement
	}
	if s.query.Group != "" && s.placement == "" {
		return nil, exitcode.BadUsage(errors.New("--wave needs --placement, whose decision group it is"))
	}
	if s.keys != "" {
		keys, err := hub.ReadKeys(ctx, s.keys)
		if err != nil {
			return nil, exitcode.BadUsage(fmt.Errorf("--keys %s: %w", s.keys, err))
		}
		s.query.Keys = keys
	}
	reached, err := client.Connect()
	if err != nil {
		return nil, err
	}
	return reached, client.Review(ctx, reached, s.query.Needs())
}
