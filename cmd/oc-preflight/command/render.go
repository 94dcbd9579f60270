package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/standing"
)

func newRender(streams genericiooptions.IOStreams) *cobra.Command {
	output := "text"
	c := &cobra.Command{
		Use:   "render (FILE | -)",
		Short: "Show a stored report in another format",
		Long: `Show a report that was stored with "-o json" or "-o yaml" in another format. - reads
it from standard input. No cluster is asked.

The verdict is that of the time when it was made, and the exit code is the one of
then. Where it is too old to hold, this says so, and the exit code is 4: whether
something else has ended it sooner, only "status" finds out.
` + exitHelp,
		Example: `  # For a person to read what a script has kept
  oc preflight run --to-latest -o json > report.json
  oc preflight render report.json

  # What the newest run of the cluster found, as YAML
  oc preflight status -o json | oc preflight render - -o yaml`,
		Args: oneArgument("one file, or -"),
		RunE: func(_ *cobra.Command, args []string) error { return render(streams, args[0], output) },
	}
	outputFlag(c, &output, report.Report{})
	return c
}

// outputFlag is -o for a document.
func outputFlag(c *cobra.Command, output *string, document any) {
	c.Flags().StringVarP(output, "output", "o", *output, "Output format: "+strings.Join(report.Formats(document), ", ")+".")
}

func render(streams genericiooptions.IOStreams, file, format string) error {
	if err := report.CheckFormat(format, report.Report{}); err != nil {
		return usageError(err)
	}
	told, err := readReport(streams.In, file)
	if err != nil {
		return usageError(err)
	}
	if told.Run.Phase != report.PhaseRunning && told.Holds() {
		if cause := standing.Expired(told, time.Now()); cause != "" {
			told.Standing = &report.Standing{Time: time.Now().UTC().Format(time.RFC3339), Ended: []string{cause}}
		}
	}
	if err := report.Write(streams.Out, format, told); err != nil {
		return err
	}
	return exitOf(told)
}

// readReport reads a report that somebody stored.
func readReport(stdin io.Reader, file string) (report.Report, error) {
	if file == "-" {
		return report.Read(stdin)
	}
	stored, err := os.Open(file) //nolint:gosec // the user names the file
	if err != nil {
		return report.Report{}, err
	}
	defer stored.Close() //nolint:errcheck // nothing was written
	told, err := report.Read(stored)
	if err != nil {
		return report.Report{}, fmt.Errorf("%s: %w", file, err)
	}
	return told, nil
}
