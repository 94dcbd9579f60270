// Package signingkey answers: which private key signs a verdict, where it is not in a file?
//
// [Secret] reads the key of a Secret, and [Plugin] reaches one that a key management service (KMS)
// keeps.
package signingkey

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
)

// secretKey and secretPassword are where cosign stores a key in a Secret.
const secretKey, secretPassword = "cosign.key", "cosign.password"

// Secret reads a private key that "cosign generate-key-pair k8s://NAMESPACE/NAME" has made. A
// Secret without one, or that does not exist, is bad input.
func Secret(ctx context.Context, secrets corev1client.SecretsGetter, namespace, name string) (signature.Signer, error) {
	secret, err := secrets.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, input.Errorf("the Secret %s does not exist in the namespace %s; create it with: cosign generate-key-pair k8s://%s/%s", name,
			namespace, namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read the Secret %s in the namespace %s: %w", name, namespace, err)
	}
	text, ok := secret.Data[secretKey]
	if !ok {
		return nil, input.Errorf("the Secret %s in the namespace %s has no %s", name, namespace, secretKey)
	}
	key, err := attestation.PrivateKey(text, secret.Data[secretPassword])
	if err != nil {
		return nil, input.Errorf("the %s of the Secret %s in the namespace %s: %w", secretKey, name, namespace, err)
	}
	return key, nil
}

// Plugin reaches the key that the plugin of a KMS names: PLUGIN://KEY, where the program
// sigstore-kms-PLUGIN is in the PATH, as for cosign. The key does not leave the KMS. A reference
// without such a program, or to a key of another algorithm, is bad input.
func Plugin(ctx context.Context, reference string) (signature.Signer, error) {
	plugin, _, _ := strings.Cut(reference, "://")
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`).MatchString(plugin) {
		return nil, input.Errorf("%q is no name of a plugin", plugin)
	}
	key, err := cliplugin.LoadSignerVerifier(ctx, reference, crypto.SHA256)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, input.Errorf("the program %s%s, which signs with keys of the form %s://KEY, is not in the PATH", cliplugin.PluginBinaryPrefix,
			plugin, plugin)
	}
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("the plugin has no public key: %w", err)
	}
	text, err := cryptoutils.MarshalPublicKeyToPEM(public)
	if err == nil {
		_, err = attestation.PublicKey(text)
	}
	if err != nil {
		return nil, input.Errorf("the key of the plugin cannot be used: %w", err)
	}
	return key, nil
}
