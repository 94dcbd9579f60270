package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/place"
	"github.com/openshift/update-preflight/runner/progress"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// shortestPrefix is the least length of a prefix of the ID of a run that is not
// recorded, in characters: "history" prints as many.
const shortestPrefix = 8

// cleanupTimeout bounds the clean-up of one run.
const cleanupTimeout = 2 * time.Minute

// CleanupOptions are the arguments and flags of "cleanup".
type CleanupOptions struct {
	// Run is the ID of the run, or a prefix of it; empty for all runs.
	Run string
	// All is true to clean up after all runs.
	All bool
	// ForceLive is true to delete the objects of runs in progress as well.
	ForceLive bool

	Hosted flagset.Hosted
}

// CancelOptions are the arguments and flags of "cancel".
type CancelOptions struct {
	// Run is the ID of the run, or a prefix of it.
	Run string
	// Timeout is the time limit for the end of the run.
	Timeout time.Duration

	Hosted flagset.Hosted
}

// NewCleanup returns the command "cleanup", which deletes what a run left in the cluster.
func NewCleanup(client *cli.Client) *cobra.Command {
	var flags CleanupOptions
	c := &cobra.Command{
		Use:   "cleanup (RUN | --all)",
		Short: "Delete what a run left in the cluster",
		Long: `Delete everything that a run created: Jobs, pods, temporary copies of supporting objects, and the read-only guard. A run does so itself at its end, unless it was killed or started with --keep. RUN is the ID of the run or a prefix of it.

A run that another process holds is not deleted: end it with cancel. The process counts as gone when it no longer renews the Lease of the run, after up to 40 seconds. --force-live deletes the objects of such a run as well; its process then reports the checks as Unknown.

An object belongs to a run if it has the label preflight.openshift.io/run of the run and a name with its suffix. Objects that only have the label are listed and not deleted, and the exit code is 1.

A run of a hosted cluster has objects in the guest, which has its record, and in the namespace of the control plane. --hosted-cluster, with the kubeconfig of the management cluster, deletes both.`,
		Example: `  # After "run --keep", with the ID from the report
  oc preflight cleanup 3b6f2c1e

  # The objects of all runs that no process holds
  oc preflight cleanup --all`,
		Args: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == flags.All || len(args) > 1 {
				return exitcode.BadUsage(fmt.Errorf("%q takes the ID of one run, or --all; see %q", c.CommandPath(), c.CommandPath()+" --help"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			flags.Run = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return flags.cleanup(c.Context(), client) })
		},
	}
	c.Flags().BoolVar(&flags.All, "all", false, "Clean up after all runs that have objects in the cluster.")
	flags.Hosted.AddCluster(c)
	c.Flags().BoolVar(&flags.ForceLive, "force-live", false, "Also delete the objects of runs in progress.")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnDisplay, Again: option.Never}, "all")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer}, "force-live")
	client.Roles.Declare(c, role.Role{
		Needs: role.Always(cleanupNeeds), Flags: []string{"hosted-cluster"},
		Management: role.InControlPlane(cleanup.Needs),
	})
	return c
}

// cleanup deletes the objects of the run that is named, or of all runs.
func (f CleanupOptions) cleanup(ctx context.Context, client *cli.Client) error {
	store, side, err := OpenHosted(ctx, client, f.Hosted, cleanupNeeds())
	if err != nil {
		return err
	}
	places := place.Of(store.Cluster, side)
	if err := place.ReviewRemoval(ctx, places); err != nil {
		return err
	}
	found, err := place.Runs(ctx, places)
	if err != nil {
		return err
	}
	runs := slices.Sorted(maps.Keys(found))
	if f.Run != "" {
		id, err := identify(ctx, store.records, runs, f.Run)
		if err != nil {
			return err
		}
		runs = []string{id}
	}
	if len(runs) == 0 {
		fmt.Fprintln(client.Streams.Out, "no run has objects in the cluster")
	}
	var failures []error
	for _, run := range runs {
		switch {
		case f.ForceLive:
		case found[run]:
			failures = append(failures, fmt.Errorf("run %s is one of a hosted cluster, whose guest states whether a process holds it, and "+
				"nothing of it was deleted; add --hosted-cluster NAMESPACE/NAME, or --force-live if that cluster no longer exists", run))
			continue
		default:
			if err := errors.Join(store.confirm(ctx, side, run), unheld(ctx, client, lease.New(store.Kubernetes), run)); err != nil {
				failures = append(failures, err)
				continue
			}
		}
		failures = append(failures, cleanupRun(ctx, client, places, run))
	}
	return errors.Join(failures...)
}

// unheld waits until no process holds the run. The error names a run that a process
// holds.
func unheld(ctx context.Context, client *cli.Client, runs *lease.Runs, run string) error {
	defer client.Waiting("waiting until the process of run " + run + " is known to be gone")()
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	err := runs.Unheld(ctx, run)
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		return exitcode.Remedied(fmt.Errorf("%w, and nothing of it was deleted", held), "End it", finding.Delete("oc preflight cancel %s", run))
	}
	return err
}

// identify is the ID of the run with that ID or prefix of one: of a run with objects
// in the cluster, which need not be recorded, or of a recorded run.
func identify(ctx context.Context, records *recordstore.Store, withObjects []string, name string) (string, error) {
	var matching []string
	for _, id := range withObjects {
		if id == name {
			return id, nil
		}
		if len(name) >= shortestPrefix && strings.HasPrefix(id, name) {
			matching = append(matching, id)
		}
	}
	switch len(matching) {
	case 0:
		run, err := records.Get(ctx, RunID(name))
		return run.ID, err
	case 1:
		return matching[0], nil
	}
	return "", &record.NotFoundError{ID: name, Candidates: matching}
}

// cleanupNeeds are the permissions that "cleanup" needs.
func cleanupNeeds() access.Needs {
	return cleanup.Needs().And(access.Needs{Required: recordstore.ReadNeeds().Required}) // not what is authenticated
}

func cleanupRun(ctx context.Context, client *cli.Client, places []place.Place, run string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	removal, err := place.Cleanup(ctx, places, run)
	for _, object := range removal.Deleted {
		fmt.Fprintf(client.Streams.Out, "deleted %s\n", object)
	}
	for _, object := range removal.Left {
		fmt.Fprintf(client.Streams.ErrOut, "not deleted: %s\n", object)
	}
	for _, kind := range removal.Unseen {
		fmt.Fprintf(client.Streams.ErrOut, "warning: the permission to list objects of the kind %s is missing, so the run may have left "+
			"some\n", kind)
	}
	ReportForeign(client.Streams.ErrOut, removal.Foreign, run)
	if err != nil {
		return err
	}
	fmt.Fprintf(client.Streams.Out, "run %s has no objects in the cluster\n", run)
	if n := len(removal.Foreign); n > 0 {
		return fmt.Errorf("not deleted: %s with the label of run %s, but not of the run", words.Count(n, "object"), run)
	}
	return nil
}

// NewCancel returns the command "cancel", which ends a run in progress.
func NewCancel(client *cli.Client) *cobra.Command {
	flags := CancelOptions{Timeout: 5 * time.Minute}
	c := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run in progress",
		Long: `Request that the process which holds a run end it, and wait until all objects of the run are deleted and its phase is Canceled. If that process is gone, this command takes over the run and ends it. RUN is the ID of the run or a prefix of it.

Exit codes: 0 the run was canceled, 1 it was not, or had already ended, 2 wrong usage, 130 interrupted; the cancellation stays requested.`,
		Example: `  oc preflight cancel 3b6f2c1e`,
		Args:    flagset.Arguments(1, 1, "the ID of one run"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.Run = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return cancel(c.Context(), client, flags) })
		},
	}
	flags.Hosted.AddCluster(c)
	c.Flags().DurationVar(&flags.Timeout, "timeout", flags.Timeout, "Time limit for the end of the run.")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "timeout")
	client.Roles.Declare(c, role.Role{
		Needs: role.Always(hold.CancelNeeds), Flags: []string{"hosted-cluster"},
		Management: role.InControlPlane(cleanup.Needs),
	})
	return c
}

func cancel(ctx context.Context, client *cli.Client, flags CancelOptions) error {
	ctx, stop := context.WithTimeoutCause(ctx, flags.Timeout,
		fmt.Errorf("the run did not end within %s; the cancellation stays requested", flags.Timeout))
	defer stop()
	id := RunID(flags.Run)
	store, side, err := OpenHosted(ctx, client, flags.Hosted, hold.CancelNeeds())
	if err != nil {
		return err
	}
	places := place.Of(store.Cluster, side)
	if err := errors.Join(store.confirm(ctx, side, id), place.ReviewRemoval(ctx, places)); err != nil {
		return err
	}
	display := client.Display(terminal.About{})
	ended, err := hold.Cancel(ctx, places, id, progress.New(terminal.ProgressOnly(display), client.Log))
	display.Close()
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	if ended.Phase != record.Canceled {
		return &lease.NotRunningError{ID: ended.ID, Phase: ended.Phase}
	}
	fmt.Fprintf(client.Streams.Out, "run %s was canceled; %d of %s had reported\n", ended.ID, len(ended.Results),
		words.Count(len(ended.Checks), "check"))
	return nil
}

// ReportForeign writes the objects that have the label of a run and are not of it,
// and the commands that remove the label.
func ReportForeign(w io.Writer, objects []report.Object, run string) {
	for _, object := range objects {
		scope := ""
		if object.Namespace != "" {
			scope = "-n " + object.Namespace + " "
		}
		fmt.Fprintf(w, "not deleted: %s has the label of run %s and is not of the run; remove the label with: oc %slabel %s %s %s-\n",
			object, run, scope, strings.ToLower(object.Kind), object.Name, label.Run)
	}
}
