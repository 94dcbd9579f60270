// Package support answers: which command gathers what other people need to evaluate a cluster that they
// cannot reach?
//
// [NewCollect] makes it.
package support

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/updateplan/planner"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/definition"
)

// defaultTimeout bounds the gathering: large clusters take some minutes.
const defaultTimeout = 30 * time.Minute

// Options are the flags of "collect".
type Options struct {
	// Output is the path of the archive; empty for a name with the time.
	Output string
	// Redact is true to replace names of nodes, IP addresses and domains.
	Redact bool
	// Prometheus is the URL of a querier; empty for the monitoring of the cluster.
	Prometheus string
	// Timeout is the time limit.
	Timeout time.Duration
}

// NewCollect returns the command "collect", which writes an archive of the cluster.
func NewCollect(client *cli.Client) *cobra.Command {
	var flags Options
	c := &cobra.Command{
		Use:   "collect [-o FILE.tar.gz | -o DIR]",
		Short: "Write an archive of the cluster, for commands with --archive",
		Long: `Write an archive with which users who cannot reach this cluster get its answers from "targets", "plan", "run", "status" and "history", with --archive. It contains the objects that the built-in checks read and no others, the active alerts, the results of the queries of conditional risks, and the recorded runs. It has the layout of "oc adm inspect", so other tools for must-gathers can open it. The cluster is only read.

The archive lists what you may not read; checks that need it are Unknown, NotInArchive. "auth collect" prints the roles that allow everything.

Of each object the archive has the fields that checks read. Secrets are not read. The environment, commands, arguments, probes and volumes of containers are not written, of any kind of workload; neither are annotations that no check reads, the data of other ConfigMaps, and the user info of URLs, such as the password of a proxy.

With --redact, the names of nodes, IP addresses and domains are replaced, each with the same text everywhere, so the decision and the findings stay the same; recorded runs are left out. The whole cluster is read into a temporary file beside the archive before the archive is written. Other names stay, such as the names of namespaces, and so do the ID of the cluster and texts that people wrote, such as labels, messages and host names without a domain: review the archive before you publish it.

A name that ends in .tar.gz or .tgz creates a file, any other name a directory; nothing is overwritten. An interrupted command leaves nothing behind.

Exit codes: 0 the archive was written, also where something is missing in it, 1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`,
		Example: `  # For support
  oc preflight collect -o cluster.tar.gz

  # On another machine: which updates are there, and what blocks them?
  oc preflight targets --archive cluster.tar.gz

  # For the public
  oc preflight collect --redact -o cluster.tar.gz`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return collect(c, client, flags) })
		},
	}
	c.Flags().StringVarP(&flags.Output, "output", "o", "",
		"File (.tar.gz, .tgz) or directory to write. Default: preflight-collection-TIME.tar.gz in the current directory.")
	c.Flags().BoolVar(&flags.Redact, "redact", false, "Replace the names of nodes, IP addresses and domains.")
	c.Flags().StringVar(&flags.Prometheus, "prometheus", "",
		"URL of a Prometheus or Thanos querier. It must have the metrics and alerts of the cluster, whose own monitoring is the default.")
	c.Flags().DurationVar(&flags.Timeout, "timeout", defaultTimeout, "Time limit.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "output")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "redact")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Again: option.Reaching}, "prometheus")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "timeout")
	_ = c.MarkFlagFilename("output") // fails only for a flag that does not exist
	client.QuietFlag(c)
	client.Roles.Declare(c, role.Role{Needs: role.Always(CollectNeeds)})
	return c
}

// CollectNeeds are the permissions to read what commands with --archive read. What is missing is
// stated in the archive.
func CollectNeeds() access.Needs {
	needs := planner.Needs().And(runner.ChecksNeeds()).And(definition.Needs()).And(runs.StatusNeeds())
	reads := slices.DeleteFunc(slices.Concat(needs.Required, needs.Optional), func(request access.Request) bool {
		named := request.Verb == "get" && request.Name != ""
		return request.Verb != "list" && !named || request.Resource == "secrets" || request.Subresource != ""
	})
	return access.Needs{Required: []access.Request{clusterVersion()}, Optional: reads}
}

func clusterVersion() access.Request {
	return access.Request{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"}
}

func collect(c *cobra.Command, client *cli.Client, flags Options) error {
	reached, err := client.Connect()
	if err != nil {
		return err
	}
	find, err := monitoring.Querier{Config: reached.Config(), Dynamic: reached.Dynamic}.Locate(flags.Prometheus)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--prometheus: %w", err))
	}
	path := flags.Output
	if path == "" {
		path = "preflight-collection-" + reached.Now().Format("20060102T150405Z") + ".tar.gz"
	}
	made, size, err := flags.write(c.Context(), client, reached, path, monitoring.New(find, monitoring.DefaultTimeout))
	if errors.Is(err, writing.ErrExists) {
		return exitcode.BadUsage(err)
	}
	if err != nil {
		return err
	}
	return describe(c, client, path, size, made)
}

// write writes the archive, and leaves nothing where it cannot.
func (f Options) write(ctx context.Context, client *cli.Client, reached *cluster.Cluster, path string,
	monitored *monitoring.Client,
) (made gathering.Summary, size int64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.Timeout, fmt.Errorf("the cluster could not be read within %s", f.Timeout))
	defer cancel()
	into, err := writing.Create(path, reached.Now())
	if err != nil {
		return gathering.Summary{}, 0, err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	if err := client.Review(ctx, reached, access.Needs{Required: CollectNeeds().Required}); err != nil {
		return gathering.Summary{}, 0, err
	}
	display := client.Display(terminal.About{})
	defer display.Close()
	request := gathering.Options{Reads: f.reads(), Monitoring: monitored, Redact: f.Redact, Step: display.Step}
	made, err = gathering.Gather(ctx, reached, request, into)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return gathering.Summary{}, 0, err
	}
	size, err = into.Commit()
	return made, size, err
}

// reads returns the requests: without names of the cluster, no records of runs, whose reports are
// compressed.
func (f Options) reads() []access.Request {
	return slices.DeleteFunc(CollectNeeds().Optional, func(request access.Request) bool {
		return f.Redact && request.Resource == "configmaps" && request.Name == ""
	})
}

// maxListed bounds what of a kind is listed.
const maxListed = 20

// describe prints what the archive has, and how to use it.
func describe(c *cobra.Command, client *cli.Client, path string, size int64, made gathering.Summary) error {
	var text strings.Builder
	fmt.Fprintf(&text, "wrote %s: cluster %s at %s, %s, %s\n", path, orNone(made.ClusterID), words.Time(made.Time),
		words.Count(made.Objects, "object"), megabytes(size))
	for i, missing := range made.Missing {
		if i == maxListed {
			fmt.Fprintf(&text, "not in the archive: %d more\n", len(made.Missing)-maxListed)
			break
		}
		fmt.Fprintf(&text, "not in the archive: %s\n", words.Line(strings.TrimPrefix(missing.String(), "no "), terminal.MaxLine))
	}
	if len(made.Kept) > 0 {
		fmt.Fprintf(&text, "names that are words or parts of API groups were not replaced: %s\n", words.List(made.Kept, maxListed))
	}
	fmt.Fprintf(&text, "evaluate the archive with: %s targets --archive %s\n", c.Root().CommandPath(), path)
	_, err := fmt.Fprint(client.Streams.Out, text.String())
	return err
}

func megabytes(size int64) string { return fmt.Sprintf("%.2f MB", float64(size)/1e6) }

func orNone(id string) string {
	if id == "" {
		return "without a ClusterVersion"
	}
	return id
}
