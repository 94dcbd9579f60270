// Package command answers: how does an administrator request a preflight?
//
// It turns flags into a call of runner, the report into output, and the decision
// into an exit code. It is separate from main so that oc can mount it.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/after"
	"github.com/openshift/update-preflight/cmd/oc-preflight/auth"
	"github.com/openshift/update-preflight/cmd/oc-preflight/author"
	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/decide"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/fleets"
	"github.com/openshift/update-preflight/cmd/oc-preflight/help"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/release"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/schema"
	"github.com/openshift/update-preflight/cmd/oc-preflight/support"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/cmd/oc-preflight/versions"
	"github.com/openshift/update-preflight/collector/access"
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
		Long: `Before you update a cluster, preflight answers one question: is it safe to update to that release, and if not, what exactly must be done?

It verifies the signature of the target release, runs the read-only checks that the release ships, evaluates the gates, the risks and the health of this cluster, and combines the findings into one verdict.`,
		Example: strings.ReplaceAll(`  # Is it safe to update to the newest available release?
  PREFLIGHT run --to-latest

  # Which updates are available, and what blocks each of them?
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
		if err := option.Combine(c); err != nil {
			return exitcode.BadUsage(err)
		}
		return nil
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	addVerbs(root, &client.Roles, sections(client))
	setName(root, name)
	addCompletions(client, root)
	return root
}

// sections are the verbs, in the order of the help.
func sections(client *cli.Client) []help.Section {
	streams := client.Streams
	return []help.Section{
		{Title: "Decide on an update", Verbs: []*cobra.Command{
			decide.NewTargets(client), decide.NewPlan(client), decide.NewDrainPlan(client), running.NewRun(client), after.NewAfter(client),
			runs.NewStatus(client), decide.NewAck(client), explain.NewCommand(streams),
			fleets.New(client),
		}, Rare: []*cobra.Command{decide.NewAccept(client)}},
		{Title: "Follow and compare runs", Verbs: []*cobra.Command{
			runs.NewHistory(client), running.NewAttach(client), runs.NewLogs(client), runs.NewDiff(client), runs.NewCancel(client),
			runs.NewCleanup(client),
		}, Rare: []*cobra.Command{runs.NewRender(streams), runs.NewVerifyVerdict(streams)}},
		{Title: "Write a check", Verbs: []*cobra.Command{author.NewInit(streams), author.NewConformance(client)}},
		{Title: "Inspect a release", Rare: []*cobra.Command{release.NewVerify(client), release.NewChecks(client)}},
		{Title: "Other commands", Rare: []*cobra.Command{
			auth.New(client), support.NewCollect(client), schema.NewCommand(streams),
			versions.NewCommand(client), newOptions(),
		}},
	}
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
	if caller, isPlugin := strings.CutSuffix(base, "-preflight"); isPlugin && (caller == "oc" || caller == "kubectl") &&
		filepath.IsAbs(args[0]) {
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

// withRemedies explains the errors that every verb may return.
func withRemedies(verb *cobra.Command, roles *role.List) {
	for _, each := range verb.Commands() {
		withRemedies(each, roles)
	}
	run := verb.RunE
	if run == nil {
		return
	}
	verb.RunE = func(c *cobra.Command, args []string) error { return explained(c, roles, run(c, args)) }
}

// explained puts what to do before an error about permissions or the connection, the same
// for all verbs.
func explained(c *cobra.Command, roles *role.List, err error) error {
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*exitcode.Error](err); ok && exit.Code != exitcode.Failed {
		return err
	}
	unreached, unreachable := errors.AsType[*url.Error](err)
	switch {
	case isMissing(err):
		return forbidden(c, roles, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server rejects the credentials, which may have expired; log in again with \"oc login\": %w", err)
	case unreachable && !strings.Contains(err.Error(), "could not reach the API server") && isAPI(unreached.URL):
		return fmt.Errorf("could not reach the API server; check the network, and the cluster that --kubeconfig and --context select: %w", err)
	}
	return err
}

// isAPI is true for a request to an API server, and not to a registry or an update service.
func isAPI(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (strings.HasPrefix(parsed.Path, "/api/") || strings.HasPrefix(parsed.Path, "/apis/") || parsed.Path == "/version")
}

// isMissing is true for a user who lacks a permission, and false for a request that an admission refuses.
func isMissing(err error) bool {
	_, missing := errors.AsType[*access.MissingError](err)
	return missing || apierrors.IsForbidden(err) && strings.Contains(err.Error(), `is forbidden: User "`)
}

// forbidden has what an administrator does about a user who lacks permissions.
func forbidden(c *cobra.Command, roles *role.List, err error) error {
	by := phrase.RequesterOf(c.Context())
	user := cmp.Or(access.Refused(err), by.User)
	if user == access.Anonymous {
		return fmt.Errorf("the API server was sent no credentials; log in with \"oc login\": %w", err)
	}
	administrator, bound := "an administrator", ""
	if by.Server != "" {
		administrator += " of the cluster " + words.Line(by.Server, maxServer)
	}
	if user == "" {
		bound = ", bound with --bind to the user"
	}
	return fmt.Errorf("have %s apply the roles that this prints%s: %s; %w", administrator, bound, authCommand(c, roles, user), err)
}

// maxServer bounds the URL of an API server in a message, in bytes.
const maxServer = 256

// authCommand is the command that prints the roles for a verb and its request: with the flags of the request on
// which they depend. Those for a release are not known for a hosted cluster.
func authCommand(c *cobra.Command, roles *role.List, user string) string {
	needed, ok := roles.Of(c)
	switch {
	case c.Name() == "auth":
		needed, _ = roles.Find("checks") // the roles for a release need what a list of its checks needs
	case !ok:
		needed, _ = roles.Find("run") // attach needs what run needs
	}
	var flags phrase.Flags
	hosted := c.Flags().Changed("hosted-cluster")
	for _, name := range needed.Flags {
		flag := c.Flags().Lookup(name)
		if flag == nil || !flag.Changed || hosted && option.Of(flag).Again == option.Targeting {
			continue
		}
		flags = append(flags, phrase.Flags{{Name: name, Values: phrase.ValuesOf(flag)}}...)
	}
	name := needed.Name
	if needed.Needs == nil { // each cluster needs the roles of the command for one
		name = strings.TrimPrefix(name, role.Fleet)
	}
	return phrase.Of(c).Roles(name, flags, user).Command
}

// flagError is a usage error; it names the flag that an unknown one is most similar to. A mistyped verb before the flag is
// the first error: the flag may be one of the verb that is meant.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return flagset.OneVerb(c, args)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if meant := similarFlag(c.Flags(), unknown.GetSpecifiedName()); meant != "" {
			return exitcode.BadUsage(fmt.Errorf("%w; write --%s", err, meant))
		}
	}
	return exitcode.BadUsage(fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
}

// similarFlag is the flag with the fewest differences from a name, beside case, dashes and
// underscores; empty if more than a third of the name differs.
func similarFlag(flags *pflag.FlagSet, name string) string {
	const share, longest = 3, 64
	if len(name) > longest {
		return ""
	}
	name = bare(name)
	best, least := "", 1+len(name)/share
	flags.VisitAll(func(flag *pflag.Flag) {
		if differs := levenshtein.ComputeDistance(bare(flag.Name), name); differs < least && !flag.Hidden {
			best, least = flag.Name, differs
		}
	})
	return best
}

// bare is the name of a flag without dashes, underscores and case.
func bare(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// addVerbs adds the verbs to root, and the help of all.
func addVerbs(root *cobra.Command, roles *role.List, sections []help.Section) {
	help.AddSections(root, sections...)
	last := sections[len(sections)-1].Title
	root.SetHelpCommandGroupID(last)
	root.SetCompletionCommandGroupID(last)
	for _, verb := range root.Commands() {
		withRemedies(verb, roles)
	}
	root.SetUsageFunc(func(c *cobra.Command) error { return help.Usage(c.OutOrStderr(), c, columns(c.OutOrStderr())) })
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		write := help.Command
		if !c.HasParent() {
			write = help.Overview
		}
		_ = write(c.OutOrStdout(), c, columns(c.OutOrStdout())) // cobra has no use for the error
	})
}

// columns is the width in which help is written: the width of a terminal, at most one that is easy to read, and 80
// elsewhere.
func columns(w io.Writer) int {
	const usual, most = 80, 120
	file, ok := terminal.Of(w)
	if !ok {
		return usual
	}
	width, _ := terminal.Size(file)
	return min(width, most)
}

// newHelp returns the command "help"; cobra's own exits with 0 for an unknown command.
func newHelp() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command, or list all commands",
		Long: "Show the help of a command. Without one, list the commands that most users need; with --all, list every command, or " +
			"describe the flags of one in full.",
		Example: `  oc preflight help --all
  oc preflight help --all run
  oc preflight help fleet targets`,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			shown, rest, err := root.Find(args)
			switch {
			case err != nil:
				return err
			case len(rest) > 0:
				return flagset.OneVerb(shown, rest)
			case all:
				return help.Whole(c.OutOrStdout(), shown, columns(c.OutOrStdout()))
			}
			return shown.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			shown, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var found []cobra.Completion
			for _, verb := range shown.Commands() {
				if strings.HasPrefix(verb.Name(), prefix) && !verb.Hidden {
					found = append(found, cobra.CompletionWithDesc(verb.Name(), verb.Short))
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&all, "all", false, "List every command, or the flags of one in full.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "all")
	return c
}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Example: `  oc preflight options`,
		Short:   "List the flags of all commands",
		Long:    "List the flags that every command has: how to reach the cluster, and how much to log.",
		Args:    flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), c.Root().PersistentFlags().FlagUsagesWrapped(columns(c.OutOrStdout())))
			return err
		},
	}
}
