package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/standing"
	"github.com/openshift/update-preflight/signature/localfile"
)

func newRender(streams genericiooptions.IOStreams) *cobra.Command {
	var output outputFlags
	c := &cobra.Command{
		Use:   "render (FILE | -)",
		Short: "Show a stored report in another format",
		Long: `Show a report that was stored with "-o json" or "-o yaml" in another format. FILE "-"
is standard input. No cluster is used.

The verdict and the exit code are those of the time of the report. A verdict that has
expired no longer holds, and the exit code is 4; whether the cluster has changed since,
only "status" reports. A report whose decision contradicts its findings is bad input. A
file is not authenticated: its findings are those that its author wrote.

The format preflight-v1-json is that of openshift/enhancements#1930: the findings that
count against the update, as risks of the target. It is provisional and may change with
that enhancement; do not build on it yet.
` + exitHelp,
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

  # The newest run of the cluster, as YAML
  oc preflight status -o json | oc preflight render - -o yaml`,
		Args: oneArgument("one file, or -"),
		RunE: func(c *cobra.Command, args []string) error {
			return render(c, streams, args[0], output)
		},
	}
	output.addText(c, report.Report{})
	return c
}

func render(c *cobra.Command, streams genericiooptions.IOStreams, file string, flags outputFlags) error {
	out, err := flags.open(streams.Out, report.Report{})
	if err != nil {
		return err
	}
	defer out.close()
	stored, err := readReport(c.Context(), streams.In, file)
	if err != nil {
		return usageError(err)
	}
	stored = standing.BoundValidity(stored)
	if stored.Run.Phase != report.PhaseRunning && stored.Holds() {
		if cause := standing.Expired(stored, time.Now()); cause != "" {
			stored.Standing = &report.Standing{Time: time.Now().UTC().Format(time.RFC3339), Ended: []string{cause}}
		}
	}
	if err := out.write(withCommands(stored, c.Root().CommandPath())); err != nil {
		return err
	}
	return exitOf(stored)
}

// readReport reads a stored report.
func readReport(ctx context.Context, stdin io.Reader, file string) (report.Report, error) {
	if file == "-" {
		return report.Read(stdin)
	}
	stored, err := localfile.Open(ctx, file)
	if err != nil {
		return report.Report{}, err
	}
	defer stored.Close() //nolint:errcheck // nothing was written
	decoded, err := report.Read(stored)
	if err != nil {
		return report.Report{}, fmt.Errorf("%s: %w", file, err)
	}
	return decoded, nil
}
