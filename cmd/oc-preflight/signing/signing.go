// Package signing answers: with which key is a verdict signed, and where is it written?
//
// [Flags] are the flags of a command that signs; [Flags.Open] reads the key before anything is
// run, [Destination.Write] signs the verdict of a report.
package signing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/signingkey"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/signature/localfile"
)

// defaultVerdict is the file of a signed verdict that is not named.
const defaultVerdict = "verdict.dsse.json"

// Flags are the flags of a command that signs.
type Flags struct {
	// Key is the private key: a file, k8s://NAMESPACE/SECRET or PLUGIN://KEY; empty to sign nothing.
	Key string
	// Path is where the envelope is written; empty for the default.
	Path string
}

// Add adds the flags to a command that signs a verdict.
func (f *Flags) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.Key, "sign", "", "Private key to sign the verdict with: a file in PEM, k8s://NAMESPACE/SECRET "+
		"with cosign.key and cosign.password, or PLUGIN://KEY for the program sigstore-kms-PLUGIN of a KMS. ECDSA P-256 or Ed25519; the "+
		"password of a file is $COSIGN_PASSWORD.")
	c.Flags().StringVar(&f.Path, "signed-verdict", "",
		"File for the signed verdict. It is written whatever the decision; an existing file is deleted at the start. "+
			"Default: "+defaultVerdict+".")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswer}, "sign")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnDisplay}, "signed-verdict")
}

// Requested reports whether a signed verdict was requested.
func (f *Flags) Requested() bool { return f.Key != "" }

// Destination signs verdicts and writes them. The nil Destination writes nothing.
type Destination struct {
	key  signature.Signer
	file *flagset.File
}

// Open reads the key, creates the file and deletes the file of an earlier run. The destination is
// nil without --sign; it must be closed.
func (f *Flags) Open(ctx context.Context, client *cli.Client) (*Destination, error) {
	if !f.Requested() {
		return nil, nil //nolint:nilnil // without a key nothing is signed
	}
	key, err := f.signer(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("--sign %s: %w", f.Key, err)
	}
	path := cmp.Or(f.Path, defaultVerdict)
	file, err := flagset.CreateFile(path)
	if err == nil {
		err = file.Remove()
	}
	if err != nil {
		file.Discard()
		return nil, exitcode.BadUsage(fmt.Errorf("--signed-verdict %s: %w", path, err))
	}
	return &Destination{key: key, file: file}, nil
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
	if err := d.file.Replace(func(w io.Writer) error { _, err := w.Write(append(envelope, '\n')); return err }); err != nil {
		return fmt.Errorf("could not write what was signed: %w", err)
	}
	return nil
}

// Close deletes what was created and not completed.
func (d *Destination) Close() {
	if d == nil {
		return
	}
	d.file.Discard()
}

const (
	secretScheme = "k8s://"
	// passwordVariable is where cosign expects the password of a key in a file.
	passwordVariable = "COSIGN_PASSWORD"
)

// signer reads the key that --sign names.
func (f *Flags) signer(ctx context.Context, client *cli.Client) (signature.Signer, error) {
	reference, inSecret := strings.CutPrefix(f.Key, secretScheme)
	if !inSecret {
		if strings.Contains(f.Key, "://") {
			return signingkey.Plugin(ctx, f.Key)
		}
		return fileKey(ctx, f.Key)
	}
	secret, err := flagset.NamespacedName("--sign", reference)
	if err != nil {
		return nil, exitcode.BadUsage(errors.New("a key in a Secret is k8s://NAMESPACE/SECRET"))
	}
	reached, err := client.Connect()
	if err != nil {
		return nil, err
	}
	if err := client.Review(ctx, reached, access.Needs{Required: []access.Request{{
		Verb: "get", Resource: "secrets",
		Namespace: secret.Namespace, Name: secret.Name,
	}}}); err != nil {
		return nil, err
	}
	return signingkey.Secret(ctx, reached.Kubernetes.CoreV1(), secret.Namespace, secret.Name)
}

func fileKey(ctx context.Context, path string) (signature.Signer, error) {
	text, err := ReadKey(ctx, path)
	if err != nil {
		return nil, exitcode.BadUsage(err)
	}
	var password []byte
	if given, ok := os.LookupEnv(passwordVariable); ok {
		password = []byte(given)
	}
	key, err := attestation.PrivateKey(text, password)
	if errors.Is(err, attestation.ErrPassword) {
		err = fmt.Errorf("%w: set the environment variable %s", err, passwordVariable)
	}
	if err != nil {
		return nil, exitcode.BadUsage(err)
	}
	return key, nil
}

// ReadKey reads the file of a key, of at most attestation.MaxKey bytes.
func ReadKey(ctx context.Context, path string) ([]byte, error) {
	return localfile.Read(ctx, path, attestation.MaxKey)
}
