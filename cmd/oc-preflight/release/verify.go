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
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/estate"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
)

// NewVerify makes "verify", which verifies the signature of a release image.
func NewVerify(client *cli.Client) *cobra.Command {
	var flags flagset.Trust
	c := &cobra.Command{
		Use:   "verify PULLSPEC@sha256:DIGEST",
		Short: "Verify the signature of a release image",
		Long: `Verify that a release image is signed by the keys that this cluster trusts. With --keyring and --signature-store no cluster is used. The image is not pulled: the signature is of its digest.
` + exitcode.Help,
		Example: `  # With the keys and stores of the cluster
  oc preflight verify quay.io/openshift-release-dev/ocp-release@sha256:...

  # With another key and other signatures
  oc preflight verify quay.io/openshift-release-dev/ocp-release@sha256:... --keyring key.asc --signature-store ./signatures`,
		Args: flagset.Arguments(1, 1, "one pull spec"),
		RunE: func(c *cobra.Command, args []string) error { return verify(c, client, flags, args[0]) },
	}
	flags.Add(c)
	client.Roles.Declare(c, role.Role{Needs: role.Always(estate.VerifyNeeds)})
	return c
}

func verify(c *cobra.Command, client *cli.Client, flags flagset.Trust, pullSpec string) error {
	trust, err := trustOf(c, client, &flags)
	if err != nil {
		return err
	}
	done := client.Waiting("searching the signature stores")
	release, err := signature.Verify(c.Context(), pullSpec, trust)
	done()
	if err != nil {
		return unverified(client, err)
	}
	if err := release.CheckRepository(flags.Repositories); err != nil {
		return unverified(client, err)
	}
	for _, warning := range release.Warnings() {
		fmt.Fprintf(client.Streams.ErrOut, "warning: %s\n", warning)
	}
	fmt.Fprintf(client.Streams.Out, "%s is signed by %s\n", release.PullSpec(), strings.Join(release.Signers(), "; "))
	return nil
}

// trustOf returns the keyrings and stores of the flags; without flags, the ones of the cluster.
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
