package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
)

// cleanupTimeout bounds the cleaning up of one run.
const cleanupTimeout = 2 * time.Minute

func newCleanup(client *client) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "cleanup (RUN | --all)",
		Short: "Delete what a run left in the cluster",
		Long: `Delete everything that a run created: Jobs, pods, the temporary copies of
supporting objects, and the read-only guard. A run deletes it by itself, unless it
was killed or told to keep it. Everything is found by the label of the run.`,
		Example: `  # After "run --keep", with the ID that the report shows
  oc preflight cleanup 3b6f2c1e-8a52-4a5e-9a57-0c1f7d2c9e11

  # Whatever any run left; runs that are under way are ended too
  oc preflight cleanup --all`,
		Args: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == all || len(args) > 1 {
				return usageError(fmt.Errorf("%q takes the ID of one run, or --all; see %q", c.CommandPath(), c.CommandPath()+" --help"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return cleanup(c.Context(), client, args) },
	}
	c.Flags().BoolVar(&all, "all", false, "Clean up after all runs that have objects in the cluster.")
	return c
}

// cleanup cleans up after the runs named, or after all when none is.
func cleanup(ctx context.Context, client *client, runs []string) error {
	reached, err := client.connect()
	if err != nil {
		return err
	}
	if err := launch.CleanupNeeds().Check(ctx, reached.Kubernetes.AuthorizationV1()); err != nil {
		return err
	}
	launcher := launch.New(reached.Kubernetes)
	found, err := launcher.Runs(ctx)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		runs = found
	}
	if len(runs) == 0 {
		fmt.Fprintln(client.streams.Out, "no run has anything in the cluster")
	}
	var failures []error
	for _, run := range runs {
		failures = append(failures, cleanupRun(ctx, client, launcher, run))
	}
	return errors.Join(failures...)
}

func cleanupRun(ctx context.Context, client *client, launcher *launch.Launcher, run string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	removal, err := launcher.Cleanup(ctx, run)
	for _, object := range removal.Deleted {
		fmt.Fprintf(client.streams.Out, "deleted %s\n", objectName(object))
	}
	for _, object := range removal.Left {
		fmt.Fprintf(client.streams.ErrOut, "still there: %s\n", objectName(object))
	}
	for _, kind := range removal.Unseen {
		fmt.Fprintf(client.streams.ErrOut, "warning: whether there is a %s of the run is not known: you may not list them\n", kind)
	}
	if err == nil {
		fmt.Fprintf(client.streams.Out, "run %s has nothing in the cluster any more\n", run)
	}
	return err
}

// objectName is how an object reads in a list.
func objectName(object preflight.Object) string {
	if object.Namespace == "" {
		return object.Kind + " " + object.Name
	}
	return object.Kind + " " + object.Namespace + "/" + object.Name
}
