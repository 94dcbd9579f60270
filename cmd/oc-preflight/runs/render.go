package runs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/document/planview"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/signature/localfile"
)

// NewRender makes "render", which writes a stored report in another format without a cluster.
func NewRender(streams genericiooptions.IOStreams) *cobra.Command {
	var output flagset.Output
	c := &cobra.Command{
		Use:   "render (FILE | -)",
		Short: "Show a stored report in another format",
		Long: `Show a report that was stored with "-o json" or "-o yaml" in another format. FILE "-" is standard input. No cluster is used. The document of "run --path" or "run --hop" and that of "plan" are shown as well, in the formats that these commands have; the configurations of oc-mirror are not part of a stored plan.

The verdict and the exit code are those of the time of the report. A verdict that has expired no longer holds, and the exit code is 4; whether the cluster has changed since, only "status" reports. A report whose decision contradicts its findings is bad input. A file is not authenticated: its findings are those that its author wrote.
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
			return render(c, streams, args[0], output)
		},
	}
	output.AddText(c, reportview.Report{})
	return c
}

func render(c *cobra.Command, streams genericiooptions.IOStreams, file string, flags flagset.Output) error {
	stored, err := readDocument(c.Context(), streams.In, file)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	shown, exit, err := present(stored, phrase.Of(c), time.Now())
	if err != nil {
		if file != "-" {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return exitcode.BadUsage(err)
	}
	out, err := flags.Open(streams.Out, shown)
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
	defer stored.Close() //nolint:errcheck // nothing was written
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
