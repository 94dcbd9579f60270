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
		Long: `Acknowledge that what an admin gate asks for has been done. "run" names the gates
that are closed, and what each of them asks for. It sets the gate's key in the
ConfigMap openshift-config/admin-acks to "true", and reads back what the server
kept.`,
		Example: `  oc preflight ack ack-4.18-kube-1.32-api-removals-in-4.19`,
		Args:    oneArgument("the name of a gate"),
		RunE: func(c *cobra.Command, args []string) error {
			reached, err := client.connect()
			if err != nil {
				return err
			}
			if err := ackNeeds().Check(c.Context(), reached.Kubernetes.AuthorizationV1()); err != nil {
				return err
			}
			done, err := gate.Acknowledge(c.Context(), reached.Kubernetes.CoreV1(), args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(client.streams.ErrOut, "By this you say that the following was done:\n%s\n", done.Description)
			fmt.Fprintf(client.streams.Out, "%s acknowledged in ConfigMap %s\n", done.Gate, done.ConfigMap)
			return nil
		},
	}
}

// ackNeeds is what "ack" asks of the API server.
func ackNeeds() access.Needs {
	always, rarely := gate.AcknowledgeRequests()
	return access.Needs{Required: always, Optional: rarely}
}

// oneArgument demands exactly one argument and says what it is.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError(fmt.Errorf("%q takes %s, but got %d arguments; see %q", c.CommandPath(), what, len(args), c.CommandPath()+" --help"))
		}
		return nil
	}
}
