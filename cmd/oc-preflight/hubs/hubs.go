// Package hubs answers: what do the clusters of a hub report, from the command line to the exit
// code?
//
// [NewHub] returns the command "fleet hub", [NewGate] "fleet gate" and [NewRequest] "fleet request". They
// read the hub alone (package fleet/hub), and no cluster of it.
package hubs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/hub"
	"github.com/openshift/update-preflight/runner/fleet/tableview"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/signature/localfile"
)

// Selection are the flags that select the reports of a hub.
type Selection struct {
	// To is the version of the update; empty for any.
	To string
	// Placement is the NAMESPACE/NAME of the Placement that selects the clusters; empty for all clusters.
	Placement string
	// Wave is the name of a decision group of the Placement; empty for all its clusters.
	Wave string
	// Keys is where the public keys of the clusters are: a directory, or configmap://NAMESPACE/NAME.
	Keys string

	query hub.Query
}

func (s *Selection) add(c *cobra.Command) {
	c.Flags().Var(flagset.UpdateValue(&s.To), "to", "Version of the update.")
	c.Flags().StringVar(&s.Placement, "placement", "", "NAMESPACE/NAME of the Placement that selects the clusters.")
	c.Flags().StringVar(&s.Wave, "wave", "", "Name of the decision group of the Placement. Default: all of its clusters.")
	c.Flags().StringVar(&s.Keys, "keys", "", "Public keys of the clusters, each named ID.pub, where ID is spec.clusterID of "+
		"ClusterVersion: a directory of files, or configmap://NAMESPACE/NAME for a ConfigMap of the hub. With them, a verdict counts "+
		"only if the key of its cluster signed it.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "placement", "wave")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswer}, "keys")
}

// open checks the flags, and reaches the hub.
func (s *Selection) open(ctx context.Context, client *cli.Client) (*cluster.Cluster, error) {
	s.query.To, s.query.Group = s.To, s.Wave
	if s.Placement != "" {
		placement, err := PlacementOf(s.Placement)
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
func (s *Selection) readKeys(ctx context.Context, client *cli.Client, reached *cluster.Cluster) (err error) {
	switch {
	case s.Keys == "":
		return nil
	case s.keysOnHub():
		name, err := KeysOf(s.Keys)
		if err != nil {
			return exitcode.BadUsage(err)
		}
		if err := client.Review(ctx, reached, hub.KeyNeeds(name)); err != nil {
			return err
		}
		s.query.Keys, err = hub.KeysOfHub(ctx, reached, name)
		return err
	}
	if s.query.Keys, err = hub.ReadKeys(ctx, s.Keys); err != nil {
		return exitcode.BadUsage(fmt.Errorf("--keys %s: %w", s.Keys, err))
	}
	return nil
}

// keysOnHub reports whether the keys are in a ConfigMap of the hub.
func (s *Selection) keysOnHub() bool { return strings.HasPrefix(s.Keys, onHub) }

// KeysOf reads configmap://NAMESPACE/NAME, the value of --keys for a ConfigMap of the hub.
func KeysOf(text string) (types.NamespacedName, error) {
	rest, ok := strings.CutPrefix(text, onHub)
	name, err := flagset.NamespacedName("--keys", rest)
	if !ok || err != nil {
		return types.NamespacedName{}, fmt.Errorf("--keys=%s: a ConfigMap of the hub is %sNAMESPACE/NAME", text, onHub)
	}
	return name, nil
}

// RequestOptions are the flags of "fleet request".
type RequestOptions struct {
	// To is the version of the update.
	To string
	// Placement is the NAMESPACE/NAME of the Placement that selects the clusters.
	Placement string
	// Accept are names of findings that the clusters accept.
	Accept []string
}

// NewRequest returns the command "fleet request", which prints the object by which a hub asks its clusters.
func NewRequest(client *cli.Client) *cobra.Command {
	var flags RequestOptions
	c := &cobra.Command{
		Use:   "request --to VERSION --placement NAMESPACE/NAME",
		Short: "Print the object with which a hub asks its clusters about an update",
		Long: `Print the ManifestWorkReplicaSet with which a hub of Open Cluster Management asks the clusters of a Placement about an update. It creates an UpdatePreflight in each cluster, where the controller runs the preflight, and returns the verdict to the hub. Nothing is created by this command, and no cluster is used. The controller must be installed in the clusters: manifests/open-cluster-management. To apply the object, you need the roles that "auth fleet-request" prints.

Delete the object when the update is done: oc delete manifestworkreplicaset.`,
		Example: `  # Ask the clusters of a Placement, and show what they report
  oc preflight fleet request --to 4.19.12 --placement fleets/production | oc apply -f -
  oc preflight fleet hub --to 4.19.12 --placement fleets/production`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return printRequest(client.Streams.Out, flags) })
		},
	}
	c.Flags().StringVar(&flags.To, "to", "", "Version of the update. Required.")
	c.Flags().StringVar(&flags.Placement, "placement", "", "NAMESPACE/NAME of the Placement that selects the clusters. Required.")
	c.Flags().StringSliceVar(&flags.Accept, "accept", nil, "Names of findings that the clusters accept for this update.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "placement")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Values: option.Findings}, "accept")
	client.Roles.Declare(c, requestRole())
	return c
}

func printRequest(out io.Writer, flags RequestOptions) error {
	if flags.To == "" || flags.Placement == "" {
		return exitcode.BadUsage(errors.New("--to and --placement are required"))
	}
	named, err := PlacementOf(flags.Placement)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	made, err := hub.Request(flags.To, named, flags.Accept)
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

// HubOptions are the flags of "fleet hub".
type HubOptions struct {
	// Limit is the number of rows to show; 0 for all.
	Limit int

	Selection Selection
	Watching  flagset.Watching
	Output    flagset.Output
}

// NewHub returns the command "fleet hub", which shows the verdicts that the clusters of a hub report.
func NewHub(client *cli.Client) *cobra.Command {
	var flags HubOptions
	c := &cobra.Command{
		Use:   "hub [--placement NAMESPACE/NAME] [--to VERSION]",
		Short: "Show the verdicts that the clusters of a hub report, in one table",
		Long: `Show the verdicts that the clusters of a hub of Open Cluster Management report, in one table. The controller runs the preflights in the clusters, and ManifestWorks return the verdicts to the hub: manifests/open-cluster-management has both. Only the hub is read: no other cluster, no credentials, no Secret.

A hub keeps the last values of a cluster that does not answer. Such a cluster is Unreachable; a cluster whose report is older than 90 minutes is Undecided. Without a ManifestWork, a cluster can report through a ManagedClusterView with the label preflight.openshift.io/fleet, either of its UpdatePreflight or of a ConfigMap whose verdict.dsse.json is a signed verdict.

With --keys, a verdict counts only if the key of its cluster signed it. That a cluster already runs the release is not signed, so such a cluster is Undecided. Without --keys, any user who may write the status of ManifestWorks on the hub can write any verdict.

The worst cluster determines the exit code: 0 all are Ready, 3 one is Blocked, 4 one is Undecided or Unreachable, or there is none. 1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`,
		Example: `  # Which clusters of a Placement can be updated, and what blocks the others?
  oc preflight fleet hub --placement fleets/production --to 4.19.12

  # Only verdicts that the clusters have signed
  oc preflight fleet hub --placement fleets/production --to 4.19.12 --keys ./cluster-keys`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return show(c, client, flags) })
		},
	}
	flags.Selection.add(c)
	flags.Output.AddText(c, tableview.Table{})
	const limit, interval = 50, time.Minute
	flagset.LimitFlag(c, &flags.Limit, limit)
	flags.Watching.Add(c, interval, "Ctrl-C")
	client.Roles.Declare(c, readRole())
	return c
}

func show(c *cobra.Command, client *cli.Client, flags HubOptions) error {
	if err := errors.Join(flagset.CheckVersion(flags.Selection.To), flagset.CheckLimit(flags.Limit)); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, tableview.Table{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Limit, out.Style.AllHint = flagset.LimitOf(flags.Limit), "--limit 0"
	out.Style.Cluster = "hub " + cli.Subject(client)
	reached, err := flags.Selection.open(c.Context(), client)
	if err != nil {
		return err
	}
	shown := flags.Watching.Watched(out, client)
	return flags.Watching.Repeat(c.Context(), shown, flagset.Unwatched, func() (bool, error) {
		found, err := hub.Read(c.Context(), reached, flags.Selection.query)
		if err != nil {
			return false, err
		}
		name, rows := c.Root().CommandPath(), found.Rows()
		for i := range rows {
			rows[i] = phrase.Named(rows[i], name)
		}
		for i := range found.Notices {
			found.Notices[i] = called.Text(found.Notices[i], name)
		}
		table := fleet.Of(flags.Selection.To, rows)
		table.Time, table.ToolVersion = words.Time(reached.Now()), program.Version()
		table.Notices = slices.Concat(found.Notices, table.Notices)
		key := table
		key.Time = ""
		if err := shown.Write(tableview.Table{Table: table}, key); err != nil || flags.Watching.Watch {
			return false, err
		}
		return true, exitcode.OfFleet(table.Decision)
	})
}

// readRole permits reading the reports of a hub.
func readRole() role.Role {
	return role.Role{Needs: readNeeds, Flags: []string{"placement", "keys"}, Remarks: func(role.Request) []string {
		return []string{"On the hub. No Secret is read, and no cluster of the hub is reached."}
	}}
}

func readNeeds(r role.Request) access.Needs {
	needs := hub.Query{Placement: r.Placement}.Needs()
	if r.Placement.Name == "" {
		needs = needs.And(hub.PlacementNeeds(r.Placement))
	}
	if r.Keys.Name != "" {
		needs = needs.And(hub.KeyNeeds(r.Keys))
	}
	return needs
}

// agentActs is the consequence of the permission to create ManifestWorkReplicaSets.
const agentActs = "A user who may create a ManifestWorkReplicaSet has the work agent of each cluster of its Placement create any " +
	"object there, as which it is an administrator by default. It is not needed to print the request."

// requestRole permits applying the object that "fleet request" prints.
func requestRole() role.Role {
	return role.Role{
		Needs: func(r role.Request) access.Needs { return hub.RequestNeeds(r.Placement.Namespace) },
		Flags: []string{"placement"},
		Remarks: func(role.Request) []string {
			return []string{"On the hub, to apply what the command prints, and to delete it.", agentActs}
		},
	}
}

// maxTable bounds the file of a table, in bytes: 5 000 rows with many causes.
const maxTable = 256 << 20

// notSigned is said of every gate that a file decides.
const notSigned = "the table is a file that is not signed: who may write it decides"

// readTable are the clusters in the file of a table about a version, of which rows older than maxAge
// do not count.
func readTable(path, to string, maxAge time.Duration, now time.Time) ([]wave.Progress, error) {
	table, err := parseTable(path)
	if err != nil {
		return nil, fmt.Errorf("--table %s: %w", path, err)
	}
	clusters, err := wave.OfTable(table, to, maxAge, now)
	if err != nil {
		return nil, fmt.Errorf("--table %s: %w", path, err)
	}
	return clusters, nil
}

func parseTable(path string) (fleet.Table, error) {
	file, err := localfile.OpenRegular(path)
	if err != nil {
		return fleet.Table{}, input.Errorf("it cannot be read: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTable+1))
	switch {
	case err != nil:
		return fleet.Table{}, input.Errorf("it cannot be read: %w", err)
	case len(text) > maxTable:
		return fleet.Table{}, input.Errorf("it is larger than %d MiB", maxTable>>20)
	}
	var table fleet.Table
	if err := json.Unmarshal(text, &table); err != nil {
		return fleet.Table{}, input.Errorf("it is no JSON that \"fleet run -o json\" or \"fleet targets -o json\" has written: %w", err)
	}
	return table, nil
}
