package decide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/words"
)

// AcceptOptions are the arguments and flags of "accept".
type AcceptOptions struct {
	// Risks are RISK and RISK-, separated by commas, in one argument.
	Risks []string
	// Replace is true to remove risks that are not named.
	Replace bool
	// Clear is true to remove all accepted risks.
	Clear bool
	// DryRun is set to write nothing.
	DryRun flagset.DryRun
}

// AckOptions are the arguments and flags of "ack".
type AckOptions struct {
	// Gate is the name of the gate.
	Gate string
	// DryRun is set to write nothing.
	DryRun flagset.DryRun
}

// NewAccept returns the command "accept", which has the cluster accept risks of updates.
func NewAccept(client *cli.Client) *cobra.Command {
	var flags AcceptOptions
	c := &cobra.Command{
		Use:   "accept (RISK[,RISK-...] [--replace] | --clear)",
		Short: "Have the cluster accept risks of updates",
		Long: `Write the update risks that are acceptable for this cluster to spec.desiredUpdate.acceptRisks of ClusterVersion, and print the value that the server stored. RISK adds a risk to the accepted ones; RISK- removes one. Nothing else is changed: no update is requested or canceled.

"run" and "targets" report the names of the risks. Accepting bypasses risks only: gates, such as Upgradeable=False, still block.

The field exists only where the feature gate ClusterUpdateAcceptRisks is enabled, which is not the default. Where it is disabled, nothing is written and the exit code is 1: name the risks with --accept or --accept-file of "run" and "targets" instead. Only a file has reasons and limits:

  apiVersion: preflight.openshift.io/v1alpha1
  kind: AcceptedRisks
  risks:
  - risk: OldBootImagesPodmanMissingAuthFlag
    reason: nodes of this cluster are not scaled up from boot images
    owner: ann@example.com
    expires: 2027-03-31           # to the end of that day, UTC; default: never
    versions: ">=4.18.0 <4.19.0"  # of the target; default: all
    clusters:                     # by spec.clusterID; default: all
    - 1c182977-5663-428d-92a3-3d2bdf3fffb6

For "fleet", "clusters" may have the names and labels of clusters instead; all must match:

    clusters:
      names: [prod-1, prod-2]
      matchLabels: {env: production}`,
		Example: `  # Accept two more risks
  oc preflight accept DualStackNeedsController,OldBootImagesPodmanMissingAuthFlag

  # Accept one, and remove another
  oc preflight accept DualStackNeedsController,LeakedMachineConfigBlocksMCO-

  # Accept only this one
  oc preflight accept DualStackNeedsController --replace

  # Accept none
  oc preflight accept --clear`,
		RunE: func(c *cobra.Command, args []string) error {
			flags.Risks = args
			return flagset.Execute(c, flags, func() error { return accept(c, client, flags) })
		},
	}
	c.Flags().BoolVar(&flags.Replace, "replace", false, "Replace the accepted risks with these.")
	c.Flags().BoolVar(&flags.Clear, "clear", false, "Remove all accepted risks.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer}, "clear", "replace")
	flags.DryRun.Add(c, "Show what would be written, and write nothing.")
	client.Roles.Declare(c, role.Role{Needs: role.Always(acceptNeeds)})
	return c
}

func accept(c *cobra.Command, client *cli.Client, flags AcceptOptions) error {
	change, err := flags.change()
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
	}
	change.DryRun = flags.DryRun
	reached, err := client.Connect()
	if err != nil {
		return err
	}
	kept, err := acceptance.Write(c.Context(), reached.Dynamic, change)
	if _, ok := errors.AsType[*acceptance.NotKeptError](err); ok {
		return fmt.Errorf("%w: pass --accept RISK,... or --accept-file FILE to run and targets", err)
	}
	if err != nil {
		return err
	}
	warnOfUnknown(client, change.Add, kept.Known)
	message := "ClusterVersion is unchanged; it accepts these risks: "
	switch {
	case kept.Changed && len(change.DryRun) > 0:
		message = "Nothing was written; ClusterVersion would accept these risks: "
	case kept.Changed:
		message = "ClusterVersion now accepts these risks: "
	}
	if len(kept.Risks) == 0 {
		message += "none"
	}
	fmt.Fprintln(client.Streams.Out, message+strings.Join(kept.Risks, ", "))
	return nil
}

// warnOfUnknown warns of accepted risks that no listed update has: a misspelled name accepts
// nothing.
func warnOfUnknown(client *cli.Client, accepted, known []string) {
	unknown := slices.DeleteFunc(slices.Clone(accepted), func(name string) bool { return slices.Contains(known, name) })
	if len(unknown) == 0 {
		return
	}
	has := "they have no risks"
	if len(known) > 0 {
		has = "they have " + words.List(known, maxKnown)
	}
	fmt.Fprintf(client.Streams.ErrOut, "warning: no update that ClusterVersion lists has the risk %s; %s. It is accepted only if a "+
		"finding of that name is reported.\n",
		strings.Join(unknown, " or "), words.Line(has, terminal.MaxLine))
}

// maxKnown bounds the names in one warning.
const maxKnown = 10

func (f AcceptOptions) change() (acceptance.Change, error) {
	switch {
	case f.Clear && len(f.Risks) > 0:
		return acceptance.Change{}, fmt.Errorf("--clear takes no risks, but got %q", f.Risks[0])
	case f.Clear:
		return acceptance.Change{Replace: true}, nil
	case len(f.Risks) == 0:
		return acceptance.Change{}, errors.New("no risks given: name them in one argument, as in RiskA,RiskB-")
	case len(f.Risks) > 1:
		return acceptance.Change{}, fmt.Errorf("pass the risks as one argument, separated by commas, not as %d arguments", len(f.Risks))
	}
	change, err := acceptance.ParseChange(f.Risks[0])
	if err != nil {
		return acceptance.Change{}, err
	}
	if f.Replace && len(change.Remove) > 0 {
		return acceptance.Change{}, fmt.Errorf("--replace removes every risk that is not named; omit %s-", change.Remove[0])
	}
	change.Replace = f.Replace
	return change, nil
}

// acceptNeeds are the permissions that acceptance.Write needs.
func acceptNeeds() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
		{Verb: "patch", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
	}}
}

// NewAck returns the command "ack", which acknowledges an admin gate in the cluster.
func NewAck(client *cli.Client) *cobra.Command {
	var flags AckOptions
	c := &cobra.Command{
		Use:     "ack GATE",
		Short:   "Acknowledge an admin gate",
		Long:    `Acknowledge that the work which an admin gate requires has been done. "run" reports the closed gates with their requirements. The key of the gate in the ConfigMap openshift-config/admin-acks is set to "true", and the stored value is read back. The command then waits until the cluster-version operator has evaluated the acknowledgement, which takes up to a few minutes; Ctrl-C ends the wait only.`,
		Example: `  oc preflight ack ack-4.18-kube-1.32-api-removals-in-4.19`,
		Args:    flagset.Arguments(1, 1, "the name of a gate"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.Gate = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return ack(c.Context(), client, flags) })
		},
	}
	flags.DryRun.Add(c, "Show what would be written, and write nothing.")
	client.Roles.Declare(c, role.Role{Needs: role.Always(ackNeeds)})
	return c
}

func ack(ctx context.Context, client *cli.Client, flags AckOptions) error {
	reached, err := client.Connect()
	if err != nil {
		return err
	}
	if err := client.Review(ctx, reached, ackNeeds()); err != nil {
		return err
	}
	done, err := adminack.Acknowledge(ctx, reached.Kubernetes.CoreV1(), flags.Gate, flags.DryRun...)
	if err != nil {
		return err
	}
	fmt.Fprintf(client.Streams.ErrOut, "By acknowledging the gate you confirm that the following has been done:\n%s\n", done.Description)
	if len(flags.DryRun) > 0 {
		_, err := fmt.Fprintf(client.Streams.Out, "%s would be acknowledged in ConfigMap %s; nothing was written\n", done.Gate, done.ConfigMap)
		return err
	}
	fmt.Fprintf(client.Streams.Out, "%s acknowledged in ConfigMap %s\n", done.Gate, done.ConfigMap)
	awaitEvaluation(ctx, client, reached, done)
	return nil
}

// evaluationTime bounds the wait for CVO, which resynchronizes every two to four minutes.
const evaluationTime = 5 * time.Minute

// awaitEvaluation waits until CVO has evaluated an acknowledgement: until then, a
// preflight is blocked by the condition Upgradeable.
func awaitEvaluation(ctx context.Context, client *cli.Client, reached *cluster.Cluster, done adminack.Acknowledgement) {
	pending := func(ctx context.Context) bool {
		version, err := reached.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
		return err == nil && done.Pending(version)
	}
	if !pending(ctx) {
		return
	}
	display := client.Display(terminal.About{})
	defer display.Close()
	display.Step(fmt.Sprintf("waiting up to %s for the cluster-version operator to evaluate it", evaluationTime))
	err := wait.PollUntilContextTimeout(ctx, time.Second, evaluationTime, false, func(ctx context.Context) (bool, error) {
		return !pending(ctx), nil
	})
	if err != nil {
		display.Step("the condition Upgradeable of ClusterVersion still names the gate: a preflight is blocked until the " +
			"cluster-version operator updates it")
	}
}

// ackNeeds are the permissions that "ack" needs.
func ackNeeds() access.Needs {
	always, rarely := adminack.AcknowledgeRequests()
	rarely = append(rarely, access.Request{Verb: "get", Group: configv1.GroupName, Resource: "clusterversions", Name: "version"})
	return access.Needs{Required: always, Optional: rarely}
}
