package decide

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate/adminack"
)

// NewAck makes "ack", which acknowledges an admin gate in the cluster.
func NewAck(client *cli.Client) *cobra.Command {
	var dryRun flagset.DryRun
	c := &cobra.Command{
		Use:     "ack GATE",
		Short:   "Acknowledge an admin gate",
		Long:    `Acknowledge that the work which an admin gate requires has been done. "run" reports the closed gates with their requirements. The key of the gate in the ConfigMap openshift-config/admin-acks is set to "true", and the stored value is read back. The command then waits until the cluster-version operator has evaluated the acknowledgement, which takes up to a few minutes; Ctrl-C ends the wait only.`,
		Example: `  oc preflight ack ack-4.18-kube-1.32-api-removals-in-4.19`,
		Args:    flagset.Arguments(1, 1, "the name of a gate"),
		RunE: func(c *cobra.Command, args []string) error {
			reached, err := client.Connect()
			if err != nil {
				return err
			}
			if err := client.Review(c.Context(), reached, ackNeeds()); err != nil {
				return err
			}
			done, err := adminack.Acknowledge(c.Context(), reached.Kubernetes.CoreV1(), args[0], dryRun...)
			if err != nil {
				return err
			}
			fmt.Fprintf(client.Streams.ErrOut, "By acknowledging the gate you confirm that the following has been done:\n%s\n", done.Description)
			if len(dryRun) > 0 {
				_, err := fmt.Fprintf(client.Streams.Out, "%s would be acknowledged in ConfigMap %s; nothing was written\n", done.Gate, done.ConfigMap)
				return err
			}
			fmt.Fprintf(client.Streams.Out, "%s acknowledged in ConfigMap %s\n", done.Gate, done.ConfigMap)
			awaitEvaluation(c.Context(), client, reached, done)
			return nil
		},
	}
	dryRun.Add(c, "Show what would be written, and write nothing.")
	client.Roles.Declare(c, role.Role{Needs: role.Always(ackNeeds)})
	return c
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
		display.Step("the condition Upgradeable of ClusterVersion still names the gate: a preflight is blocked until the cluster-version operator updates it")
	}
}

// ackNeeds are the permissions that "ack" needs.
func ackNeeds() access.Needs {
	always, rarely := adminack.AcknowledgeRequests()
	rarely = append(rarely, access.Request{Verb: "get", Group: configv1.GroupName, Resource: "clusterversions", Name: "version"})
	return access.Needs{Required: always, Optional: rarely}
}
