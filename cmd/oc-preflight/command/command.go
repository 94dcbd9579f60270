// Package command answers: how does an administrator ask for a preflight? It
// turns flags into a call of runner, the report into output, and the decision
// into an exit code. It is apart from main so that oc can mount it.
package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/retry"
)

// Execute runs the command line in args, args[0] being the name of the program,
// and returns the exit code. Errors are printed to streams.ErrOut.
func Execute(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := New(displayName(args[0]), streams) //nolint:contextcheck // cobra hands the context to each verb
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	return exitCode(err, streams.ErrOut)
}

// displayName is how the user got here: as a plugin of oc or kubectl, or not.
func displayName(program string) string {
	switch base := filepath.Base(program); base {
	case "oc-preflight":
		return "oc preflight"
	case "kubectl-preflight":
		return "kubectl preflight"
	default:
		return base
	}
}

// New returns the command with all its verbs. name is how the user calls it,
// e.g. "oc preflight".
func New(name string, streams genericiooptions.IOStreams) *cobra.Command {
	client := &client{flags: genericclioptions.NewConfigFlags(true), streams: streams}
	root := &cobra.Command{
		Use:   lastWord(name),
		Short: "Is it safe to update this cluster, and if not, what must be done?",
		Long: `Before a cluster is updated, preflight answers one question: is it safe to go to
that release, and if not, what exactly must be done?

It verifies the signature of the target release, runs the read-only checks that
the target ships, asks the gates, the risks and the health of this cluster, and
folds it all into one verdict.`,
		Example: strings.ReplaceAll(`  # Is it safe to go to the newest release that is available to this cluster?
  PREFLIGHT run --to-latest

  # Where can this cluster go, and what keeps it from going elsewhere?
  PREFLIGHT targets

  # Is it safe, for a script
  PREFLIGHT run --to 4.19.3 -o json > report.json

  # What would be run?
  PREFLIGHT checks --to 4.19.3

  # Only the signature; no cluster is needed
  PREFLIGHT verify quay.io/openshift-release-dev/ocp-release@sha256:... \
      --keyring release-key.asc --signature-store https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release`,
			"PREFLIGHT", name),
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       toolVersion(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	client.flags.AddFlags(root.PersistentFlags())
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError(fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
	})
	root.AddCommand(
		newRun(client), newTargets(client), newChecks(client), newVerify(client), newAck(client), newAccept(client), newCleanup(client),
		newAttach(client), newStatus(client), newHistory(client), newDiff(client), newLogs(client), newCancel(client), newRender(streams),
		newInit(streams), newConformance(client), newAuth(client),
	)
	return root
}

func lastWord(name string) string {
	fields := strings.Fields(name)
	return fields[len(fields)-1]
}

// toolVersion is the version of the module that this was built from.
func toolVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// client reaches the cluster that the user's flags name.
type client struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
}

// cluster is the clients of one cluster.
type cluster struct {
	kubernetes kubernetes.Interface
	openshift  configclient.Interface
	dynamic    dynamic.Interface
	monitoring monitoring.Cluster
	clock      *clock
}

// connect makes the clients. It asks nothing of the server yet.
func (c *client) connect() (cluster, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return cluster{}, fmt.Errorf("no cluster to ask: %w", err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "oc-preflight/" + toolVersion()
	config.QPS = -1 // the API server's own priority and fairness decides
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(retry.Reads)
	reached := cluster{clock: &clock{}}
	reached.monitoring.Config = rest.CopyConfig(config)
	config.Wrap(reached.clock.wrap)
	var errs [3]error
	reached.kubernetes, errs[0] = kubernetes.NewForConfig(config)
	reached.openshift, errs[1] = configclient.NewForConfig(config)
	reached.dynamic, errs[2] = dynamic.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return cluster{}, fmt.Errorf("no cluster to ask: %w", err)
	}
	reached.monitoring.Dynamic = reached.dynamic
	return reached, nil
}
