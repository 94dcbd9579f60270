package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/gate"
)

func newAck(client *client) *cobra.Command {
	return &cobra.Command{
		Use:   "ack GATE",
		Short: "Acknowledge an admin gate",
		Long: `Acknowledge that the work which an admin gate requires has been done. "run" reports
the closed gates with their requirements. The key of the gate in the ConfigMap
openshift-config/admin-acks is set to "true", and the stored value is read back.`,
		Example: `  oc preflight ack ack-4.18-kube-1.32-api-removals-in-4.19`,
		Args:    oneArgument("the name of a gate"),
		RunE: func(c *cobra.Command, args []string) error {
			reached, err := client.connect()
			if err != nil {
				return err
			}
			if err := client.review(c.Context(), reached, ackNeeds()); err != nil {
				return err
			}
			done, err := gate.Acknowledge(c.Context(), reached.Kubernetes.CoreV1(), args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(client.streams.ErrOut, "By acknowledging the gate you confirm that the following has been done:\n%s\n", done.Description)
			fmt.Fprintf(client.streams.Out, "%s acknowledged in ConfigMap %s\n", done.Gate, done.ConfigMap)
			return nil
		},
	}
}

// ackNeeds are the permissions that "ack" needs.
func ackNeeds() access.Needs {
	always, rarely := gate.AcknowledgeRequests()
	return access.Needs{Required: always, Optional: rarely}
}

// oneArgument requires exactly one argument; the error names it by what.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError(fmt.Errorf("%q takes %s, but got %d arguments; see %q", c.CommandPath(), what, len(args), c.CommandPath()+" --help"))
		}
		return nil
	}
}
