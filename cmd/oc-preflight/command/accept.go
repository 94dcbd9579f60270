package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
)

// acceptFlags are what "accept" can be told besides risks.
type acceptFlags struct{ replace, clear bool }

func newAccept(client *client) *cobra.Command {
	var flags acceptFlags
	c := &cobra.Command{
		Use:   "accept (RISK[,RISK-...] [--replace] | --clear)",
		Short: "Have the cluster accept risks of updates",
		Long: `Write to ClusterVersion which risks of updates are acceptable to this cluster, in
spec.desiredUpdate.acceptRisks, and read back what the server kept. Risks are
added to those that are accepted already; RISK- takes one back. Nothing else is
changed: no update is asked for, and none is taken back.

"run" and "targets" name the risks. An acceptance gets past risks only: gates,
such as Upgradeable=False, block whatever is accepted.

The field is there only where the feature gate ClusterUpdateAcceptRisks is on,
which it is not by default. Where it is not, nothing is written, and the exit
code is 1: name the risks with --accept or --accept-file of "run" and "targets"
instead. Only a file keeps reasons and limits:

  apiVersion: preflight.openshift.io/v1alpha1
  kind: AcceptedRisks
  risks:
  - risk: OldBootImagesPodmanMissingAuthFlag
    reason: no node of ours is scaled up from boot images
    owner: ann@example.com
    expires: 2027-03-31             # to the end of that day, UTC; default: never
    versions: ">=4.18.0 <4.19.0"    # of the target; default: all
    clusters:                       # spec.clusterID of ClusterVersion; default: all
    - 1c182977-5663-428d-92a3-3d2bdf3fffb6`,
		Example: `  # Accept two risks besides those that are accepted already
  oc preflight accept DualStackNeedsController,OldBootImagesPodmanMissingAuthFlag

  # Accept one, and take another back
  oc preflight accept DualStackNeedsController,LeakedMachineConfigBlocksMCO-

  # Accept this one and no other
  oc preflight accept DualStackNeedsController --replace

  # Accept none
  oc preflight accept --clear`,
		RunE: func(c *cobra.Command, args []string) error { return accept(c, client, flags, args) },
	}
	c.Flags().BoolVar(&flags.replace, "replace", false, "Accept these risks and no others.")
	c.Flags().BoolVar(&flags.clear, "clear", false, "Accept no risks.")
	return c
}

func accept(c *cobra.Command, client *client, flags acceptFlags, args []string) error {
	change, err := flags.change(args)
	if err != nil {
		return usageError(fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
	}
	reached, err := client.connect()
	if err != nil {
		return err
	}
	kept, err := acceptance.Write(c.Context(), reached.Dynamic, change)
	if err != nil {
		return err
	}
	said := "ClusterVersion accepted these risks before, nothing was changed: "
	if kept.Changed {
		said = "ClusterVersion now accepts these risks: "
	}
	if len(kept.Risks) == 0 {
		said += "none"
	}
	fmt.Fprintln(client.streams.Out, said+strings.Join(kept.Risks, ", "))
	return nil
}

// change is what the arguments ask for.
func (f acceptFlags) change(args []string) (acceptance.Change, error) {
	switch {
	case f.clear && f.replace:
		return acceptance.Change{}, errors.New("--clear and --replace exclude each other")
	case f.clear && len(args) > 0:
		return acceptance.Change{}, fmt.Errorf("--clear takes no risks, but got %q", args[0])
	case f.clear:
		return acceptance.Change{Replace: true}, nil
	case len(args) == 0:
		return acceptance.Change{}, errors.New("no risks given: name them in one argument, as in RiskA,RiskB-")
	case len(args) > 1:
		return acceptance.Change{}, fmt.Errorf("the risks go in one argument, with commas between them, but got %d arguments", len(args))
	}
	change, err := acceptance.ParseChange(args[0])
	if err != nil {
		return acceptance.Change{}, err
	}
	if f.replace && len(change.Remove) > 0 {
		return acceptance.Change{}, fmt.Errorf("--replace accepts only what is named, so there is nothing to remove: %s-", change.Remove[0])
	}
	change.Replace = f.replace
	return change, nil
}

// acceptNeeds is what acceptance.Write asks of the API server.
func acceptNeeds() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
		{Verb: "patch", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
	}}
}
