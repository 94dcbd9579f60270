package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/history"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/signing"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/document/planview"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/signature/localfile"
)

// RenderOptions are the arguments and flags of "render".
type RenderOptions struct {
	// File is the path of a report; "-" for standard input.
	File string

	Output flagset.Output
}

// NewRender returns the command "render", which writes a stored report in another format without a cluster.
func NewRender(streams genericiooptions.IOStreams) *cobra.Command {
	var flags RenderOptions
	c := &cobra.Command{
		Use:   "render (FILE | -)",
		Short: "Show a stored report in another format",
		Long: `Show a report that was stored with "-o json" or "-o yaml" in another format. FILE "-" is standard input. No cluster is used. The documents of "run --path", "run --hop" and "plan" can be shown as well, in the formats of these commands; a stored plan does not include the configurations of oc-mirror.

Verdict and exit code are as of the time of the report. If the verdict has expired, the exit code is 4; whether the cluster has changed since, only "status" reports. A report whose decision contradicts its findings is bad input. A file is not authenticated: its author may have written anything.
` + exitcode.Help,
		Example: `  # Show the report that a script stored
  oc preflight run --to-latest -o json > report.json
  oc preflight render report.json

  # For a change ticket or a pull request
  oc preflight render report.json -o markdown > report.md

  # For a CI system: a test case for each finding, and one for the verdict
  oc preflight render report.json -o junit > junit_preflight.xml

  # One page for approvers, archives and printing
  oc preflight render report.json -o html > report.html

  # Several formats at once
  oc preflight render report.json --report html=report.html --report junit=junit_preflight.xml

  # The path that a script has checked
  oc preflight run --path --to-minor 4.18 -o json > path.json
  oc preflight render path.json -o html > path.html

  # The newest run of the cluster, as YAML
  oc preflight status -o json | oc preflight render - -o yaml`,
		Args: flagset.Arguments(1, 1, "one file, or -"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.File = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return render(c, streams, flags) })
		},
	}
	flags.Output.AddText(c, reportview.Report{})
	return c
}

func render(c *cobra.Command, streams genericiooptions.IOStreams, flags RenderOptions) error {
	stored, err := readDocument(c.Context(), streams.In, flags.File)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	shown, exit, err := present(stored, phrase.Of(c), time.Now())
	if err != nil {
		if flags.File != "-" {
			err = fmt.Errorf("%s: %w", flags.File, err)
		}
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(streams.Out, shown)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Write(shown); err != nil {
		return err
	}
	return exit
}

func readDocument(ctx context.Context, stdin io.Reader, file string) (report.Document, error) {
	if file == "-" {
		return report.Load(stdin)
	}
	stored, err := localfile.Open(ctx, file)
	if err != nil {
		return report.Document{}, err
	}
	defer stored.Close()
	loaded, err := report.Load(stored)
	if err != nil {
		return report.Document{}, fmt.Errorf("%s: %w", file, err)
	}
	return loaded, nil
}

// present is a stored document as it is shown at that time, and the error with its exit
// code.
func present(stored report.Document, again phrase.Phrase, now time.Time) (shown any, exit, err error) {
	switch stored.Kind {
	case report.PathKind:
		made, err := stored.Path()
		if err != nil {
			return nil, nil, err
		}
		for i, each := range made.Updates {
			made.Updates[i] = asOf(each, now)
		}
		return again.WithPathCommands(made), exitcode.OfPath(made), nil
	case updateplan.Kind:
		plan, err := updateplan.Read(stored.JSON())
		return planview.Plan{Plan: plan}, exitcode.OfPlan(plan), err
	}
	decided, err := stored.Report()
	if err != nil {
		return nil, nil, err
	}
	decided = asOf(decided, now)
	return again.WithCommands(decided), exitcode.Of(decided), nil
}

// asOf is a stored report with its standing at that time, as far as the report shows it.
func asOf(stored report.Report, now time.Time) report.Report {
	stored = standing.BoundValidity(stored)
	if stored.Run.Phase == report.PhaseRunning || !stored.Holds() {
		return stored
	}
	if cause := standing.Expired(stored, now); cause != "" {
		stored.Standing = &report.Standing{Time: words.Time(now), Ended: []string{cause}}
	}
	return stored
}

// NewHistory returns the command "history", which lists the recorded runs.
func NewHistory(client *cli.Client) *cobra.Command {
	var flags HistoryOptions
	c := &cobra.Command{
		Use:   "history",
		Short: "List the runs that are recorded in the cluster",
		Long: `List the runs that are recorded in the cluster, newest first, with their target, decision and requester: user, or selected or ahead for the controller. The newest 20 runs with a verdict are kept, and the newest 10 that were canceled or interrupted. A decision is "(outdated)" if it has expired, the cluster has changed, or a newer run of the same target has ended. A Ready "(permits nothing)" if it was forced or does not cover every check; the last column shows the cause. "status" evaluates gates, risks and health again. A run in progress whose process is gone is "left": continue it with attach, or end it with cancel. A run is "Unverified" if its record was edited or cannot be authenticated; "status" reports the cause. Each update of a path is a separate run, and later updates are listed with their path. If the update after a run was evaluated, that decision is listed as well: Good, Regressed or RolledBack, or Unverified if it is not authentic; "after RUN" has the details.

With --watch, changes are shown at once if you may watch ConfigMaps in the namespace openshift-cluster-version, otherwise after --interval. "-o name" writes preflight/ID, which every command that takes a RUN accepts as well.

With --archive, the runs recorded in the archived cluster are listed. They cannot be authenticated, because the key is a Secret, which an archive does not have.

Exit codes: 0 the runs were listed, whatever their decisions, 1 the tool failed, 2 wrong usage.`,
		Example: `  oc preflight history

  # Every run with its image, times and full ID
  oc preflight history -o wide --limit 0

  # The same again whenever a run starts, reports or ends
  oc preflight history --watch

  # The newest run that was Ready
  oc preflight history -o json | jq -r '[.runs[] | select(.decision == "Ready")][0].id'`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return showHistory(c, client, flags) })
		},
	}
	flags.Output.Add(c, history.History{})
	flags.Output.AddColor(c)
	client.ArchiveFlag(c)
	const standard, interval = 20, 10 * time.Second
	flagset.LimitFlag(c, &flags.Limit, standard)
	flags.Watching.Add(c, interval, "Ctrl-C")
	client.Roles.Declare(c, role.Role{Needs: role.Always(historyNeeds)})
	return c
}

// HistoryOptions are the flags of "history".
type HistoryOptions struct {
	// Limit is the number of runs to list; 0 for all.
	Limit int

	Watching flagset.Watching
	Output   flagset.Output
}

func showHistory(c *cobra.Command, client *cli.Client, flags HistoryOptions) error {
	if err := errors.Join(flags.Watching.Check(), flagset.CheckLimit(flags.Limit)); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.Output.Open(client.Streams.Out, history.History{})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Cluster = cli.Subject(client)
	out.Style.Limit, out.Style.AllHint = flagset.LimitOf(flags.Limit), "--limit 0"
	store, err := OpenRunStore(c.Context(), client, historyNeeds())
	if err != nil {
		return err
	}
	shown := flags.Watching.Watched(out, client)
	return flags.Watching.Repeat(c.Context(), shown, store.records.Watch, func() (bool, error) {
		done := client.Waiting("reading the records")
		defer done()
		ctx, gaps := gap.Track(c.Context())
		runs, err := store.records.List(ctx)
		var judged judgement.Runs
		if err == nil {
			version, _ := snapshot.Of(store.Cluster).ClusterVersion(ctx) // without it, no run is NotJudged
			judged, err = judgement.OfRuns(ctx, store.Kubernetes, version)
		}
		done()
		if err != nil {
			return false, err
		}
		warnOfGaps(client.Streams.ErrOut, gaps)
		verdicts, err := store.question(ctx, runs, "").Read(ctx, store.records.Get, func(string, error) {}) // the header is listed
		if err != nil {
			return false, err
		}
		made := history.Of(verdicts, judged)
		return false, shown.Write(made, made)
	})
}

// historyNeeds are the permissions to list records with the judgements of their updates, and to watch them with --watch.
func historyNeeds() access.Needs {
	needs := RecordNeeds() // no single lease: only a run in progress has one
	needs.Required = slices.DeleteFunc(needs.Required, func(request access.Request) bool {
		return request.Resource == "leases" && request.Verb == "get"
	})
	return needs.And(recordstore.WatchNeeds()).And(standing.Needs()).And(published.AskedNeeds())
}

// warnOfGaps reports which records may be missing. What else an archive does not have, such as the
// key of the records, changes what is reported of a record.
func warnOfGaps(w io.Writer, gaps *gap.Log) {
	for _, each := range gaps.All() {
		if each.Resource == "configmaps" {
			fmt.Fprintf(w, "warning: the archive has %s, so runs may be missing\n", words.Printable(each.String()))
		}
	}
}

// VerifyVerdictOptions are the arguments and flags of "verify-verdict".
type VerifyVerdictOptions struct {
	// File is the path of the signed verdict; "-" for standard input.
	File string
	// Key is the path of the public key.
	Key string
	// Expected is the cluster and the release that the verdict must be about.
	Expected attestation.Expectation

	Output flagset.Output
}

// NewVerifyVerdict returns the command "verify-verdict", which verifies a signed verdict without a cluster.
func NewVerifyVerdict(streams genericiooptions.IOStreams) *cobra.Command {
	var flags VerifyVerdictOptions
	c := &cobra.Command{
		Use:   "verify-verdict (FILE | -) --key KEY [--cluster ID] [--to VERSION]",
		Short: "Verify a verdict that was signed with \"run --sign\"",
		Long: `Verify a verdict that was signed with "run --sign": that the private key of KEY signed it, that it is about this cluster and this release, and that it holds now. FILE "-" is standard input. No cluster is used: whether the cluster has changed since, only "status" reports.

A valid verdict may be Blocked: the exit code follows its decision. A forced verdict permits no update, even if its decision is Ready, so it is Undecided here; so is a narrowed verdict, whose request left out checks, alerts or clients of removed APIs. Nothing in the file is trusted unless the key signed it. A key signs whatever it is given, so name the cluster with --cluster and keep one key per cluster; otherwise the key of one cluster can sign for another.

A verdict holds until the time in the file, at most 24 hours after its run, by the clock of this machine.

Exit codes: 0 valid and Ready, 1 the tool failed, 2 wrong usage or bad input, 3 valid and Blocked, 4 valid and Undecided, forced or narrowed, 5 expired, 6 about another cluster, 7 about another release, 8 forged: not signed by this key, changed, or not a verdict.`,
		Example: `  # A key for this cluster; verifiers need its public half, cosign.pub
  cosign generate-key-pair

  # Sign the verdict, and verify it elsewhere
  oc preflight run --to 4.19.12 --sign cosign.key --signed-verdict verdict.dsse.json
  oc preflight verify-verdict verdict.dsse.json --key cosign.pub \
      --cluster 1c182977-5663-428d-92a3-3d2bdf3fffb6 --to 4.19.12

  # The release by its digest, and the result for a script
  oc preflight verify-verdict verdict.dsse.json --key cosign.pub --to sha256:... -o json | jq -r .result`,
		Args: flagset.Arguments(1, 1, "one file, or -"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.File = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return verifyVerdict(c, streams, flags) })
		},
	}
	c.Flags().StringVar(&flags.Key, "key", "", "File with the public key in PEM, ECDSA P-256 or Ed25519. Required.")
	c.Flags().StringVar(&flags.Expected.Cluster, "cluster", "",
		"ID of the cluster that the verdict must be about: spec.clusterID of ClusterVersion. Default: any.")
	c.Flags().StringVar(&flags.Expected.Release, "to", "",
		"Version or digest (sha256:...) of the release that the verdict must be about. Default: any.")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswer}, "key")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnDisplay}, "cluster")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates},
		"to")
	flags.Output.Add(c, attestation.Verification{})
	return c
}

func verifyVerdict(c *cobra.Command, streams genericiooptions.IOStreams, flags VerifyVerdictOptions) error {
	if flags.Key == "" {
		return exitcode.BadUsage(errors.New("--key is required: the public key of who signed the verdict"))
	}
	out, err := flags.Output.Open(streams.Out, attestation.Verification{})
	if err != nil {
		return err
	}
	defer out.Close()
	text, err := signing.ReadKey(c.Context(), flags.Key)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--key: %w", err))
	}
	key, err := attestation.PublicKey(text)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--key %s: %w", flags.Key, err))
	}
	envelope, err := readEnvelope(c.Context(), streams.In, flags.File)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	made := attestation.Verify(envelope, key, flags.Expected, time.Now())
	if err := out.Write(made); err != nil {
		return err
	}
	return exitcode.OfVerification(made)
}

// readEnvelope reads at most a byte more than an envelope may have.
func readEnvelope(ctx context.Context, stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, attestation.MaxEnvelope+1))
	}
	return localfile.Read(ctx, file, attestation.MaxEnvelope)
}
