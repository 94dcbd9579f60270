// Package release answers: which commands inspect a release?
//
// Each file is one command.
package release

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
)

// VerifyOptions are the arguments and flags of "verify".
type VerifyOptions struct {
	// PullSpec is the release image by digest.
	PullSpec string

	Trust flagset.Trust
}

// NewVerify returns the command "verify", which verifies the signature of a release image.
func NewVerify(client *cli.Client) *cobra.Command {
	var flags VerifyOptions
	c := &cobra.Command{
		Use:   "verify PULLSPEC@sha256:DIGEST",
		Short: "Verify the signature of a release image",
		Long: `Verify that a release image is signed by the keys that this cluster trusts. With --keyring and --signature-store no cluster is used. The image is not pulled: its digest is signed.
` + exitcode.Help,
		Example: `  # With the keys and stores of the cluster
  oc preflight verify quay.io/openshift-release-dev/ocp-release@sha256:...

  # With another key and other signatures
  oc preflight verify quay.io/openshift-release-dev/ocp-release@sha256:... --keyring key.asc --signature-store ./signatures`,
		Args: flagset.Arguments(1, 1, "one pull spec"),
		RunE: func(c *cobra.Command, args []string) error {
			flags.PullSpec = flagset.First(args)
			return flagset.Execute(c, flags, func() error { return verify(c, client, flags) })
		},
	}
	flags.Trust.Add(c)
	client.Roles.Declare(c, role.Role{Needs: role.Always(estate.VerifyNeeds)})
	return c
}

func verify(c *cobra.Command, client *cli.Client, flags VerifyOptions) error {
	trust, err := trustOf(c, client, &flags.Trust)
	if err != nil {
		return err
	}
	done := client.Waiting("searching the signature stores")
	release, err := signature.Verify(c.Context(), flags.PullSpec, trust)
	done()
	if err != nil {
		return unverified(client, err)
	}
	if err := release.CheckRepository(flags.Trust.Repositories); err != nil {
		return unverified(client, err)
	}
	for _, warning := range release.Warnings() {
		fmt.Fprintf(client.Streams.ErrOut, "warning: %s\n", warning)
	}
	fmt.Fprintf(client.Streams.Out, "%s is signed by %s\n", release.PullSpec(), strings.Join(release.Signers(), "; "))
	return nil
}

// trustOf returns the keyrings and stores of the flags, by default those that the cluster trusts.
func trustOf(c *cobra.Command, client *cli.Client, flags *flagset.Trust) (signature.Trust, error) {
	keyrings, stores, err := flags.Read(c.Context())
	if err != nil {
		return signature.Trust{}, err
	}
	if len(keyrings) > 0 && len(stores) > 0 {
		return signature.Trust{Keyrings: keyrings, Stores: stores}, nil
	}
	reached, err := client.Connect()
	if err != nil {
		return signature.Trust{}, err
	}
	if err := client.Review(c.Context(), reached, estate.VerifyNeeds()); err != nil {
		return signature.Trust{}, err
	}
	given := signature.Trust{Keyrings: keyrings, Stores: stores}
	trust, err := signature.Override(c.Context(), reached.Kubernetes.CoreV1(), reached.OpenShift.ConfigV1(), given)
	trust.Now = reached.Now()
	return trust, err
}

// unverified prints the failure and returns its exit code: a wrong signature blocks,
// an inconclusive verification is undecided.
func unverified(client *cli.Client, err error) error {
	var failure *refusal.Error
	if !errors.As(err, &failure) {
		return err
	}
	fmt.Fprintf(client.Streams.ErrOut, "error: %s: %s\n", failure.Reason, failure.Message)
	for _, detail := range failure.Details {
		fmt.Fprintf(client.Streams.ErrOut, "  %s\n", detail)
	}
	if failure.Remediation != "" {
		fmt.Fprintf(client.Streams.ErrOut, "hint: %s\n", failure.Remediation)
	}
	if failure.Reason == refusal.ReasonInvalidPullSpec {
		return &exitcode.Error{Code: exitcode.Usage}
	}
	if failure.Outcome == preflight.Fail {
		return &exitcode.Error{Code: exitcode.Blocked}
	}
	return &exitcode.Error{Code: exitcode.Undecided}
}

// ChecksOptions are the flags of "checks".
type ChecksOptions struct {
	Source running.Source
	Output flagset.Output
}

// NewChecks returns the command "checks", which lists the checks of a release without running them.
func NewChecks(client *cli.Client) *cobra.Command {
	var flags ChecksOptions
	c := &cobra.Command{
		Use:   "checks (--to VERSION | --to-latest | --to-image PULLSPEC)",
		Short: "List the checks of a release without running them",
		Long: `List the preflight checks that the target release ships, after verifying its signature, and with --checks also your own. Nothing is created in the cluster.
` + exitcode.Help,
		Example: `  # The checks of the newest available release
  oc preflight checks --to-latest

  # With their components and images
  oc preflight checks --to 4.19.3 -o wide`,
		Args: flags.Source.Target.NoArgument,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagset.Execute(c, flags, func() error { return checks(c, client, flags) })
		},
	}
	flags.Source.Add(c)
	client.ArchiveFlag(c)
	flags.Output.Add(c, Listing{})
	client.Roles.Declare(c, role.Role{Needs: role.Always(runner.ChecksNeeds)})
	return c
}

func checks(c *cobra.Command, client *cli.Client, flags ChecksOptions) error {
	out, err := flags.Output.Open(client.Streams.Out, Listing{})
	if err != nil {
		return err
	}
	defer out.Close()
	reached, err := client.Open(c.Context())
	if err != nil {
		return err
	}
	options, err := flags.Source.Options(c.Context(), client, reached, flagset.Judge{})
	if err != nil {
		return err
	}
	display := client.Display(terminal.About{})
	options.Hooks.Observer = terminal.ProgressOnly(display)
	found, err := runner.Checks(c.Context(), reached, flags.Source.Target.Release, options)
	display.Close()
	if err != nil {
		return err
	}
	worded := phrase.Of(c)
	worded.Target = phrase.FlagsOf("--to-latest")
	if selected := flags.Source.Target.Selected(); selected != nil {
		worded.Target = phrase.FlagsOf(selected...)
	}
	if err := out.Write(NewListing(found.Checks, worded.Findings(found.Findings))); err != nil {
		return err
	}
	return exitcode.Of(report.Report{Verdict: found.Verdict})
}

// ListedCheck is one check of a Listing.
type ListedCheck struct {
	Name      string `json:"name"`
	Component string `json:"component"`
	// Manifest is the file that has the Job, in the release or in the directory of a site.
	Manifest  string   `json:"manifest"`
	Namespace string   `json:"namespace"`
	Images    []string `json:"images"`
}

func checkOf(check jobplan.Check) ListedCheck {
	entry := ListedCheck{
		Name: check.Name, Component: check.Component, Manifest: check.File,
		Namespace: check.Job.Namespace, Images: []string{},
	}
	for _, container := range check.Job.Spec.Template.Spec.Containers {
		entry.Images = append(entry.Images, container.Image)
	}
	return entry
}

// ListingKind is the kind in the JSON and YAML documents of a list of checks.
const ListingKind = "PreflightChecks"

// Listing is the document of "checks": no check of it was run.
type Listing struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Checks []ListedCheck `json:"checks"`
	// Findings are about the release and its manifests.
	Findings []finding.Finding `json:"findings"`
}

// NewListing is the document about the checks of a release.
func NewListing(checks []jobplan.Check, findings []finding.Finding) Listing {
	document := Listing{APIVersion: report.APIVersion, Kind: ListingKind, Checks: []ListedCheck{}, Findings: findings}
	for _, check := range checks {
		document.Checks = append(document.Checks, checkOf(check))
	}
	return document
}

// Document is the checks as a table, and every finding that is not a pass.
func (l Listing) Document(view document.View) document.Document {
	if view.Full {
		return l.Wide(view)
	}
	return l.document([]string{"Check", "Namespace", "Manifest"}, func(check ListedCheck) []string {
		return []string{check.Name, check.Namespace, check.Manifest}
	})
}

// Wide is the document with all columns.
func (l Listing) Wide(document.View) document.Document {
	return l.document([]string{"Check", "Namespace", "Component", "Manifest", "Images"}, func(check ListedCheck) []string {
		return []string{check.Name, check.Namespace, check.Component, check.Manifest, strings.Join(check.Images, ",")}
	})
}

func (l Listing) document(columns []string, row func(ListedCheck) []string) document.Document {
	table := document.Table{Title: "Checks", Columns: columns, Whole: true}
	for _, check := range l.Checks {
		table.Rows = append(table.Rows, row(check))
	}
	var items document.Items
	for _, f := range l.Findings {
		if f.Outcome != preflight.Pass {
			items.Entries = append(items.Entries, findingview.Item(f))
		}
	}
	return document.Document{Title: "Checks of the release", Source: "The JSON document has all data.", Blocks: []document.Block{table, items}}
}

// Names is check/NAME for every check.
func (l Listing) Names() ([]string, error) {
	var names []string
	for _, check := range l.Checks {
		names = append(names, format.CheckName+"/"+check.Name)
	}
	return names, nil
}
