package signing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/cmd/internal/signingkey"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/signature/localfile"
)

const (
	secretScheme = "k8s://"
	// passwordVariable is where cosign expects the password of a key in a file.
	passwordVariable = "COSIGN_PASSWORD"
)

// signer reads the key that --sign names.
func (f *Flags) signer(ctx context.Context, client *cli.Client) (signature.Signer, error) {
	reference, inSecret := strings.CutPrefix(f.key, secretScheme)
	if !inSecret {
		if strings.Contains(f.key, "://") {
			return signingkey.Plugin(ctx, f.key)
		}
		return fileKey(ctx, f.key)
	}
	secret, err := flagset.NamespacedName("--sign", reference)
	if err != nil {
		return nil, exitcode.BadUsage(errors.New("a key in a Secret is k8s://NAMESPACE/SECRET"))
	}
	reached, err := client.Connect()
	if err != nil {
		return nil, err
	}
	if err := client.Review(ctx, reached, access.Needs{Required: []access.Request{{Verb: "get", Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name}}}); err != nil {
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
	file, err := localfile.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(file, attestation.MaxKey+1))
}
