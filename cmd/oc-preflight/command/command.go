// Package command answers: how does an administrator request a preflight?
//
// It turns flags into a call of runner, the report into output, and the decision
// into an exit code. It is separate from main so that oc can mount it.
package command

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/after"
	"github.com/openshift/update-preflight/cmd/oc-preflight/auth"
	"github.com/openshift/update-preflight/cmd/oc-preflight/author"
	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/combination"
	"github.com/openshift/update-preflight/cmd/oc-preflight/decide"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/fleets"
	"github.com/openshift/update-preflight/cmd/oc-preflight/help"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/release"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/schema"
	"github.com/openshift/update-preflight/cmd/oc-preflight/support"
	"github.com/openshift/update-preflight/cmd/oc-preflight/versions"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/words"
)

// Execute runs the command line in args, args[0] being the name of the program,
// and returns the exit code. Errors are printed to streams.ErrOut.
func Execute(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	invoked := parseInvocation(args)
	root := New(invoked.name, streams) //nolint:contextcheck // cobra hands the context to each verb
	root.SetArgs(invoked.args)
	root.InitDefaultCompletionCmd() // here, or cobra makes one that takes any word for the name of a shell
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = flagset.OneVerb, root.RunE
	}
	verb, err := root.ExecuteContextC(ctx)
	return exitcode.Code(err, phrase.Of(verb).Remedy, streams.ErrOut)
}

// New returns the command with all its verbs. name is how the user calls it,
// e.g. "oc preflight".
func New(name string, streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   strings.ReplaceAll(path.Base(name), " ", "-"), // completion is for the program, which is not called "preflight"
		Short: "Is it safe to update this cluster to a release, and if not, what must be done?",
		Long: `Before a cluster is updated, preflight answers one question: is it safe to go to that release, and if not, what exactly must be done?

It verifies the signature of the target release, runs the read-only checks that the release ships, evaluates the gates, the risks and the health of this cluster, and combines the findings into one verdict.`,
		Example: strings.ReplaceAll(`  # Is it safe to update to the newest available release?
  PREFLIGHT run --to-latest

  # Which updates does the cluster know, and what blocks each of them?
  PREFLIGHT targets

  # Which updates lead to 4.18, how long do they take, and what has to be mirrored?
  PREFLIGHT plan --to-minor 4.18 --channel eus-4.18

  # For a script
  PREFLIGHT run --to 4.19.3 -o json > report.json

  # Which checks would be run?
  PREFLIGHT checks --to 4.19.3

  # Verify only the signature; no cluster is needed
  PREFLIGHT verify quay.io/openshift-release-dev/ocp-release@sha256:... \
      --keyring release-key.asc --signature-store https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release`,
			"PREFLIGHT", name),
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       program.Version(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Args:          flagset.OneVerb,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	client := cli.New(root.PersistentFlags(), streams)
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		client.StartLog()
		noticed := sync.Once{}
		c.SetContext(cluster.WithNotice(c.Context(), func(text string) {
			noticed.Do(func() { fmt.Fprintln(streams.ErrOut, text) })
		}))
		c.SetContext(phrase.WithRequester(c.Context(), func(ctx context.Context) cli.Requester { return cli.RequesterOf(ctx, client) }))
		return combination.Check(c)
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	addVerbs(root, &client.Roles, []help.Section{
		{Title: "Decide on an update", Verbs: []*cobra.Command{
			decide.NewTargets(client), decide.NewPlan(client), decide.NewDrainPlan(client), running.NewRun(client), after.NewAfter(client), runs.NewStatus(client), decide.NewAck(client), explain.NewCommand(streams),
			fleets.New(client),
		}, Rare: []*cobra.Command{decide.NewAccept(client)}},
		{Title: "Follow and compare runs", Verbs: []*cobra.Command{
			runs.NewHistory(client), running.NewAttach(client), runs.NewLogs(client), runs.NewDiff(client), runs.NewCancel(client), runs.NewCleanup(client),
		}, Rare: []*cobra.Command{runs.NewRender(streams), runs.NewVerifyVerdict(streams)}},
		{Title: "Write a check", Verbs: []*cobra.Command{author.NewInit(streams), author.NewConformance(client)}},
		{Title: "Inspect a release", Rare: []*cobra.Command{release.NewVerify(client), release.NewChecks(client)}},
		{Title: "Other commands", Rare: []*cobra.Command{auth.New(client), support.NewCollect(client), schema.NewCommand(streams), versions.NewCommand(client), newOptions()}},
	})
	setName(root, name)
	addCompletions(client, root)
	return root
}

// invocation is a call of the program.
type invocation struct {
	// name is the command that calls the program, such as "oc preflight".
	name string
	// args are the arguments of the command line, without the name of the program.
	args []string
}

// parseInvocation reads args, args[0] being the path of the program. oc and kubectl call a plugin by its absolute
// path; by another one, it was called directly, and the same path calls it again. They request the completion of a
// plugin from a program of another name, such as kubectl_complete-preflight: a link to this one.
func parseInvocation(args []string) invocation {
	base := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	caller, completes := strings.CutSuffix(base, "_complete-preflight")
	if completes {
		return invocation{name: caller + " preflight", args: append([]string{cobra.ShellCompRequestCmd}, args[1:]...)}
	}
	if caller, isPlugin := strings.CutSuffix(base, "-preflight"); isPlugin && (caller == "oc" || caller == "kubectl") && filepath.IsAbs(args[0]) {
		return invocation{name: caller + " preflight", args: args[1:]}
	}
	return invocation{name: words.ShellLine(strings.TrimSuffix(args[0], ".exe")), args: args[1:]}
}

// setName replaces the names of programs in the help of all verbs.
func setName(c *cobra.Command, name string) {
	for _, verb := range c.Commands() {
		verb.Long = called.Text(verb.Long, name)
		verb.Example = called.Text(verb.Example, name)
		verb.Flags().VisitAll(func(flag *pflag.Flag) { flag.Usage = called.Text(flag.Usage, name) })
		setName(verb, name)
	}
}
