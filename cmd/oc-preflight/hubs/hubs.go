// Package hubs answers: what do the clusters of a hub report, from the command line to the exit
// code?
//
// [NewHub] makes "fleet hub", [NewGate] "fleet gate" and [NewRequest] "fleet request". They
// read the hub alone (package fleet/hub), and no cluster of it.
package hubs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/fleet/hub"
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
	c.Flags().StringVar(&s.keys, "keys", "", "Public keys of the clusters, each named ID.pub, where ID is spec.clusterID of ClusterVersion: a directory of files, or configmap://NAMESPACE/NAME for a ConfigMap of the hub. With them, a verdict counts only if the key of its cluster signed it.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates}, "to")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "placement", "wave")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswer}, "keys")
}

// open checks the flags, and reaches the hub.
func (s *selection) open(ctx context.Context, client *cli.Client) (*cluster.Cluster, error) {
	if s.placement != "" {
		placement, err := PlacementOf(s.placement)
		if err != nil {
			return nil, exitcode.BadUsage(err)
		}
		s.query.Placement = placement
	}
	reached, err := client.Connect()
	if err != nil {
		return nil, err
	}
	if err := client.Review(ctx, reached, s.query.Needs()); err != nil {
		return nil, err
	}
	return reached, s.readKeys(ctx, client, reached)
}

// onHub begins the name of a ConfigMap of the hub that has the keys.
const onHub = "configmap://"

// readKeys reads the keys of the flag.
func (s *selection) readKeys(ctx context.Context, client *cli.Client, reached *cluster.Cluster) (err error) {
	switch {
	case s.keys == "":
		return nil
	case s.keysOnHub():
		name, err := KeysOf(s.keys)
		if err != nil {
			return exitcode.BadUsage(err)
		}
		if err := client.Review(ctx, reached, hub.KeyNeeds(name)); err != nil {
			return err
		}
		s.query.Keys, err = hub.KeysOfHub(ctx, reached, name)
		return err
	}
	if s.query.Keys, err = hub.ReadKeys(ctx, s.keys); err != nil {
		return exitcode.BadUsage(fmt.Errorf("--keys %s: %w", s.keys, err))
	}
	return nil
}

// keysOnHub reports whether the keys are in a ConfigMap of the hub.
func (s *selection) keysOnHub() bool { return strings.HasPrefix(s.keys, onHub) }

// KeysOf reads configmap://NAMESPACE/NAME, the value of --keys for a ConfigMap of the hub.
func KeysOf(text string) (types.NamespacedName, error) {
	rest, ok := strings.CutPrefix(text, onHub)
	name, err := flagset.NamespacedName("--keys", rest)
	if !ok || err != nil {
		return types.NamespacedName{}, fmt.Errorf("--keys=%s: a ConfigMap of the hub is %sNAMESPACE/NAME", text, onHub)
	}
	return name, nil
}

// NewRequest makes "fleet request", which prints the object by which a hub asks its clusters.
func NewRequest(client *cli.Client) *cobra.Command {
	var version, placement string
	var accepted []string
	c := &cobra.Command{
		Use:   "request --to VERSION --placement NAMESPACE/NAME",
		Short: "Print the object by which a hub asks its clusters about an update",
		Long: `Print the ManifestWorkReplicaSet by which a hub of Open Cluster Management asks the clusters of a Placement about an update: it brings an UpdatePreflight to each, whose preflight the controller runs there, and its verdict back to the hub. Nothing is created, and no cluster is used. The controller has to be installed in the clusters: manifests/open-cluster-management. Who applies the object needs the roles that "auth fleet-request" prints.

Delete the object when the update is done: oc delete manifestworkreplicaset.`,
		Example: `  # Ask the clusters of a Placement, and show what they report
  oc preflight fleet request --to 4.19.12 --placement fleets/production | oc apply -f -
  oc preflight fleet hub --to 4.19.12 --placement fleets/production`,
		Args: flagset.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			return printRequest(client.Streams.Out, version, placement, accepted)
		},
	}
	c.Flags().StringVar(&version, "to", "", "Version of the update. Required.")
	c.Flags().StringVar(&placement, "placement", "", "NAMESPACE/NAME of the Placement that selects the clusters. Required.")
	c.Flags().StringSliceVar(&accepted, "accept", nil, "Names of findings that the clusters accept for this update.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates}, "to")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "placement")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Values: option.Findings}, "accept")
	client.Roles.Declare(c, requestRole())
	return c
}

func printRequest(out io.Writer, version, placement string, accepted []string) error {
	if version == "" || placement == "" {
		return exitcode.BadUsage(errors.New("--to and --placement are required"))
	}
	named, err := PlacementOf(placement)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	made, err := hub.Request(version, named, accepted)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	text, err := manifest(&made)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// manifest is the object without what a hub adds.
func manifest(made *workv1alpha1.ManifestWorkReplicaSet) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	return yaml.Marshal(object)
}

// PlacementOf reads NAMESPACE/NAME, the value of --placement.
func PlacementOf(text string) (types.NamespacedName, error) {
	return flagset.NamespacedName("--placement", text)
}
