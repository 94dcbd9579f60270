// Package signing answers: with which key is a verdict signed, and where is it written?
//
// [Flags] are the flags of a command that signs; [Flags.Open] reads the key before anything is
// run, and [Destination.Write] signs the verdict of a report.
package signing

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

// defaultVerdict is the file of a signed verdict that is not named.
const defaultVerdict = "verdict.dsse.json"

// Flags are the flags of a command that signs a verdict.
type Flags struct{ key, verdict string }

// Add adds the flags to a command.
func (f *Flags) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.key, "sign", "", "Private key with which the verdict is signed: a file in PEM, k8s://NAMESPACE/SECRET with cosign.key and cosign.password, or PLUGIN://KEY for the program sigstore-kms-PLUGIN of a KMS. ECDSA P-256 or Ed25519; the password of a file is $COSIGN_PASSWORD.")
	c.Flags().StringVar(&f.verdict, "signed-verdict", "", "File for the signed verdict of --sign, whatever the decision is. An existing one is deleted at the start. Default: "+defaultVerdict+".")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswer}, "sign")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnDisplay}, "signed-verdict")
}

// Requested reports whether the verdict is to be signed.
func (f *Flags) Requested() bool { return f.key != "" }

// Destination signs verdicts and writes them. The nil Destination writes nothing.
type Destination struct {
	key     signature.Signer
	verdict *flagset.File
}

// Open reads the key, creates the file and deletes that of an earlier run. The destination is
// nil without --sign; it must be closed.
func (f *Flags) Open(ctx context.Context, client *cli.Client) (*Destination, error) {
	if !f.Requested() {
		return nil, nil //nolint:nilnil // nothing is to be signed
	}
	key, err := f.signer(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("--sign %s: %w", f.key, err)
	}
	path := cmp.Or(f.verdict, defaultVerdict)
	file, err := flagset.CreateFile(path)
	if err == nil {
		err = file.Remove()
	}
	if err != nil {
		file.Discard()
		return nil, exitcode.BadUsage(fmt.Errorf("--signed-verdict %s: %w", path, err))
	}
	return &Destination{key: key, verdict: file}, nil
}

// Write signs the verdict of a report, and writes it.
func (d *Destination) Write(decided report.Report) error {
	if d == nil {
		return nil
	}
	stated, err := attestation.Of(decided)
	if err != nil {
		return fmt.Errorf("the verdict is not signed: %w", err)
	}
	envelope, err := attestation.Sign(stated, d.key)
	if err != nil {
		return err
	}
	if err := d.verdict.Replace(func(w io.Writer) error { _, err := w.Write(append(envelope, '\n')); return err }); err != nil {
		return fmt.Errorf("could not write the signed verdict: %w", err)
	}
	return nil
}

// Close deletes what was created and not completed.
func (d *Destination) Close() {
	if d == nil {
		return
	}
	d.verdict.Discard()
}
