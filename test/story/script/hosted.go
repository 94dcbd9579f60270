package script

import (
	"context"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// Hosted shows the preflight of a hosted cluster that is Blocked, the remedies in its management cluster
// and in its guest, and the preflight that is Ready after them. The terminal is that of the management
// cluster.
func Hosted(ctx context.Context, t *terminal.Terminal, guest *cluster.Cluster) error {
	preflight := []string{
		"oc-preflight", "run", "--hosted-cluster", story.HostedCluster, "--nodepool", story.NodePool, "--to", story.Patch, "--prometheus",
		t.Monitoring,
	}
	t.Title("Is it safe to update the hosted cluster and its NodePool?")
	if err := t.Run(ctx, exit.Blocked, preflight...); err != nil {
		return err
	}
	t.Title("The administrator follows the remedies of the report")
	for _, remedy := range story.HostedRemedies(guest.Kubeconfig) {
		t.Show("# " + remedy.Why + "\n")
		if err := t.Run(ctx, exit.Ready, remedy.Command...); err != nil {
			return err
		}
	}
	t.Title("Is it safe after the remedies?")
	if err := t.Run(ctx, exit.Ready, preflight...); err != nil {
		return err
	}
	t.Show("\n")
	t.Step("done: Blocked from both sides with causes and remedies, then Ready")
	return nil
}
