package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
)

func newVerify(client *client) *cobra.Command {
	var flags trustFlags
	c := &cobra.Command{
		Use:   "verify PULLSPEC@sha256:DIGEST",
		Short: "Verify the signature of a release image",
		Long: `Verify that a release image is signed by the keys that this cluster trusts. With
--keyring and --signature-store no cluster is used. The image is not pulled: the
signature is of its digest.
` + exitHelp,
		Example: `  # With the keys and stores of the cluster
  oc preflight verify quay.io/openshift-release-dev/ocp-release@sha256:...

  # With another key and other signatures
  oc preflight verify quay.io/openshift-release-dev/ocp-release@sha256:... --keyring key.asc --signature-store ./signatures`,
		Args: oneArgument("one pull spec"),
		RunE: func(c *cobra.Command, args []string) error { return verify(c, client, flags, args[0]) },
	}
	flags.add(c)
	return c
}

func verify(c *cobra.Command, client *client, flags trustFlags, pullSpec string) error {
	trust, err := flags.trust(c, client)
	if err != nil {
		return err
	}
	done := client.waiting("searching the signature stores")
	release, err := signature.Verify(c.Context(), pullSpec, trust)
	done()
	if err != nil {
		return unverified(client, err)
	}
	if err := release.CheckRepository(flags.repositories); err != nil {
		return unverified(client, err)
	}
	for _, warning := range release.Warnings() {
		fmt.Fprintf(client.streams.ErrOut, "warning: %s\n", warning)
	}
	fmt.Fprintf(client.streams.Out, "%s is signed by %s\n", release.PullSpec(), strings.Join(release.Signers(), "; "))
	return nil
}

// trust are the keyrings and stores of the flags, or else those of the cluster.
func (f *trustFlags) trust(c *cobra.Command, client *client) (signature.Trust, error) {
	keyrings, stores, err := f.read(c.Context())
	if err != nil {
		return signature.Trust{}, err
	}
	if len(keyrings) > 0 && len(stores) > 0 {
		return signature.Trust{Keyrings: keyrings, Stores: stores}, nil
	}
	reached, err := client.connect()
	if err != nil {
		return signature.Trust{}, err
	}
	if err := client.review(c.Context(), reached, runner.VerifyNeeds()); err != nil {
		return signature.Trust{}, err
	}
	given := signature.Trust{Keyrings: keyrings, Stores: stores}
	trust, err := signature.Override(c.Context(), reached.Kubernetes.CoreV1(), reached.OpenShift.ConfigV1(), given)
	trust.Now = reached.Now()
	return trust, err
}

// unverified prints the failure and returns its exit code: a wrong signature blocks,
// an inconclusive verification is undecided.
func unverified(client *client, err error) error {
	var failure *refusal.Error
	if !errors.As(err, &failure) {
		return err
	}
	fmt.Fprintf(client.streams.ErrOut, "error: %s: %s\n", failure.Reason, failure.Message)
	for _, detail := range failure.Details {
		fmt.Fprintf(client.streams.ErrOut, "  %s\n", detail)
	}
	if failure.Remediation != "" {
		fmt.Fprintf(client.streams.ErrOut, "hint: %s\n", failure.Remediation)
	}
	if failure.Reason == refusal.ReasonInvalidPullSpec {
		return &exitError{code: exitUsage}
	}
	if failure.Outcome == preflight.Fail {
		return &exitError{code: exitBlocked}
	}
	return &exitError{code: exitUndecided}
}
