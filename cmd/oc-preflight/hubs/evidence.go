package hubs

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/evidenceflag"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/fleet/evidencesource"
)

// formatGraphData is the format that needs a URL.
const formatGraphData = "graph-data"

// evidenceFlags are the flags of "fleet evidence".
type evidenceFlags struct {
	selection   selection
	failAt, url string
	output      flagset.Output
	limit       int
}

// summary is what "fleet evidence" shows.
type summary struct {
	known evidence.Summary
	url   string
}

// Document is that of the summary.
func (s summary) Document(view document.View) document.Document { return s.known.Document(view) }

// MarshalJSON encodes the summary.
func (s summary) MarshalJSON() ([]byte, error) { return json.Marshal(s.known) }

// GraphData are the risks for the data of an update service.
func (s summary) GraphData() ([]byte, error) {
	edges, err := evidence.GraphData(s.known, s.url)
	if err != nil {
		return nil, err
	}
	return evidence.EncodeGraphData(edges)
}

// NewEvidence makes "fleet evidence", which shows how an update was in the clusters that took it.
func NewEvidence(client *cli.Client) *cobra.Command {
	var flags evidenceFlags
	c := &cobra.Command{
		Use:   "evidence --evidence SOURCE [--to VERSION]",
		Short: "Show how an update was in the clusters that took it",
		Long: `Show how an update was in the clusters that took it: how many were good, regressed or were rolled back, by which findings, and what only those have in common. The clusters state that after their updates; of each, the newest statement about the version counts.

With --keys, a statement counts only if the key of its cluster signed it. Without, who may write the source may state anything. What does not count is listed.

With -o graph-data, each finding by which clusters regressed is a risk of a conditional update, in the form of blocked-edges of the data of an update service (openshift/cincinnati-graph-data): for an update service of your own.

Exit codes: 0 clusters have stated how the update was, 3 --evidence-fail is reached, 4 none has. 1 the tool failed, 2 wrong usage or bad input, 130 interrupted.`,
		Example: `  # How was the update in the clusters of a hub?
  oc preflight fleet evidence --evidence hub --to 4.19.12

  # Only what the clusters have signed; no cluster is used
  oc preflight fleet evidence --evidence ./evidence --keys ./cluster-keys --to 4.19.12

  # As risks for an update service
  oc preflight fleet evidence --evidence ./evidence --to 4.19.12 -o graph-data --url https://updates.example.com/4.19.12`,
		Args: flagset.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return showEvidence(c, client, flags) },
	}
	flags.selection.add(c)
	evidenceflag.FailAt(c, &flags.failAt, "clusters")
	c.Flags().StringVar(&flags.url, "url", "", "With -o graph-data: URL where the risks are documented.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay}, "url")
	flags.output.AddText(c, summary{})
	const limit = 20
	flagset.LimitFlag(c, &flags.limit, limit)
	client.Roles.Declare(c, readRole())
	return c
}

func (f *evidenceFlags) check() error {
	if f.selection.evidence == "" {
		return errors.New("--evidence is required: a directory, configmap/NAMESPACE/NAME, or hub")
	}
	if f.output.Format == formatGraphData {
		if _, err := evidence.GraphData(evidence.Summary{}, f.url); err != nil {
			return fmt.Errorf("--url: %w", err)
		}
	}
	return errors.Join(flagset.CheckVersion(f.selection.query.To), flagset.CheckLimit(f.limit))
}

func showEvidence(c *cobra.Command, client *cli.Client, flags evidenceFlags) error {
	failAt, err := evidenceflag.Threshold(flags.failAt)
	if err := errors.Join(err, flags.check()); err != nil {
		return exitcode.BadUsage(err)
	}
	out, err := flags.output.Open(client.Streams.Out, summary{url: flags.url})
	if err != nil {
		return err
	}
	defer out.Close()
	out.Style.Limit, out.Style.AllHint = flagset.LimitOf(flags.limit), "--limit 0"
	reached, err := flags.open(c, client)
	if err != nil {
		return err
	}
	made, err := flags.selection.known(c.Context(), client, reached, failAt)
	if err != nil {
		return err
	}
	if err := out.Write(summary{*made, flags.url}); err != nil {
		return err
	}
	return exitcode.OfFleet(decisionOn(*made))
}

// open reaches the hub where something of it is read; nil for a directory.
func (f *evidenceFlags) open(c *cobra.Command, client *cli.Client) (*cluster.Cluster, error) {
	source, err := evidencesource.Parse(f.selection.evidence)
	if err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--evidence: %w", err))
	}
	if source.OnCluster() || f.selection.keysOnHub() {
		return f.selection.open(c.Context(), client)
	}
	return nil, f.selection.readKeys(c.Context(), client, nil)
}

// decisionOn is that of the exit code.
func decisionOn(made evidence.Summary) verdict.Decision {
	switch {
	case len(made.Met) > 0:
		return verdict.Blocked
	case made.Alike.All() == 0:
		return verdict.Undecided
	}
	return verdict.Ready
}
