package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/signing"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/signature/localfile"
)

// verifyFlags are the flags of "verify-verdict".
type verifyFlags struct {
	key      string
	expected attestation.Expectation
	output   flagset.Output
}

// NewVerifyVerdict makes "verify-verdict", which verifies a signed verdict without a cluster.
func NewVerifyVerdict(streams genericiooptions.IOStreams) *cobra.Command {
	var flags verifyFlags
	c := &cobra.Command{
		Use:   "verify-verdict (FILE | -) --key KEY [--cluster ID] [--to VERSION]",
		Short: "Verify a verdict that was signed with \"run --sign\"",
		Long: `Verify a verdict that was signed with "run --sign": that the private key of KEY signed it, that it is about this cluster and this release, and that it holds now. FILE "-" is standard input. No cluster is used: whether the cluster has changed since, only "status" reports.

A valid verdict may be Blocked: its exit code is that of its decision. A forced one permits no update, even if its decision is Ready: it is Undecided here, and so is a narrowed one, whose request left out checks, alerts or clients of removed APIs. What the file states is believed only if the key signed it, and a key signs for whatever it is given: name the cluster with --cluster, and keep one key per cluster, or the key of one cluster signs for another.

A verdict holds until the time that it states, at most 24 hours after its run, by the clock of this machine.

Exit codes: 0 valid and Ready, 1 the tool failed, 2 wrong usage or bad input, 3 valid and Blocked, 4 valid and Undecided, forced or narrowed, 5 expired, 6 about another cluster, 7 about another release, 8 forged: not signed by this key, changed, or not a verdict.`,
		Example: `  # A key for this cluster; its public half, cosign.pub, is for those who verify
  cosign generate-key-pair

  # Sign the verdict, and verify it elsewhere
  oc preflight run --to 4.19.12 --sign cosign.key --signed-verdict verdict.dsse.json
  oc preflight verify-verdict verdict.dsse.json --key cosign.pub \
      --cluster 1c182977-5663-428d-92a3-3d2bdf3fffb6 --to 4.19.12

  # The release by its digest, and the result for a script
  oc preflight verify-verdict verdict.dsse.json --key cosign.pub --to sha256:... -o json | jq -r .result`,
		Args: flagset.Arguments(1, 1, "one file, or -"),
		RunE: func(c *cobra.Command, args []string) error { return verifyVerdict(c, streams, args[0], flags) },
	}
	c.Flags().StringVar(&flags.key, "key", "", "File with the public key in PEM, ECDSA P-256 or Ed25519. Required.")
	c.Flags().StringVar(&flags.expected.Cluster, "cluster", "", "ID of the cluster that the verdict must be about: spec.clusterID of ClusterVersion. Default: any.")
	c.Flags().StringVar(&flags.expected.Release, "to", "", "Version or digest (sha256:...) of the release that the verdict must be about. Default: any.")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswer}, "key")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnDisplay}, "cluster")
	option.Declare(c.Flags(), option.Option{Group: option.Target, Effect: option.OnAnswer, Again: option.Targeting, Values: option.Updates}, "to")
	flags.output.Add(c, attestation.Verification{})
	return c
}

func verifyVerdict(c *cobra.Command, streams genericiooptions.IOStreams, file string, flags verifyFlags) error {
	if flags.key == "" {
		return exitcode.BadUsage(errors.New("--key is required: the public key of who signed the verdict"))
	}
	out, err := flags.output.Open(streams.Out, attestation.Verification{})
	if err != nil {
		return err
	}
	defer out.Close()
	text, err := signing.ReadKey(c.Context(), flags.key)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--key: %w", err))
	}
	key, err := attestation.PublicKey(text)
	if err != nil {
		return exitcode.BadUsage(fmt.Errorf("--key %s: %w", flags.key, err))
	}
	envelope, err := readEnvelope(c.Context(), streams.In, file)
	if err != nil {
		return exitcode.BadUsage(err)
	}
	made := attestation.Verify(envelope, key, flags.expected, time.Now())
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
	opened, err := localfile.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(opened, attestation.MaxEnvelope+1))
}
