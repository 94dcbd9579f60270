package hub

import (
	"context"
	"crypto/x509"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/signature/localfile"
)

// keySuffix is that of the name of a key, which begins with the ID of its cluster.
const keySuffix = ".pub"

// maxKeys bounds the number of keys.
const maxKeys = 10_000

// Keys are the public keys of clusters, one per cluster. The zero value has none.
type Keys struct{ of map[string]signature.Verifier }

func (k Keys) empty() bool { return len(k.of) == 0 }

// ReadKeys reads the files ID.pub of a directory: the public key in PEM of the cluster with that ID
// (spec.clusterID of ClusterVersion). Other files are ignored.
func ReadKeys(ctx context.Context, directory string) (Keys, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return Keys{}, input.Errorf("the directory of the keys cannot be read: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	listed, err := os.ReadDir(directory)
	if err != nil {
		return Keys{}, input.Errorf("the directory of the keys cannot be read: %w", err)
	}
	texts := map[string][]byte{}
	for _, each := range listed {
		id, named := strings.CutSuffix(each.Name(), keySuffix)
		if !named || id == "" {
			continue
		}
		if ctx.Err() != nil {
			return Keys{}, ctx.Err()
		}
		if texts[id], err = readKey(root, each.Name()); err != nil {
			return Keys{}, input.Errorf("the key %s cannot be read: %w", each.Name(), err)
		}
	}
	return PinKeys(texts)
}

func readKey(root *os.Root, name string) ([]byte, error) {
	file, err := localfile.OpenRegularIn(root, name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(file, attestation.MaxKey+1))
}

// PinKeys are these keys in PEM, by the ID of their cluster. A key that two clusters have is an
// error: one of them could sign for the other.
func PinKeys(texts map[string][]byte) (Keys, error) {
	if len(texts) == 0 {
		return Keys{}, input.Errorf("there is no key: the key of a cluster is named ID%s", keySuffix)
	}
	if len(texts) > maxKeys {
		return Keys{}, input.Errorf("there are more than %d keys", maxKeys)
	}
	pinned, owners := Keys{map[string]signature.Verifier{}}, map[string]string{}
	for id, text := range texts {
		key, err := attestation.PublicKey(text)
		if err != nil {
			return Keys{}, input.Errorf("the key of the cluster %s: %w", id, err)
		}
		print, err := fingerprint(key)
		if err != nil {
			return Keys{}, input.Errorf("the key of the cluster %s: %w", id, err)
		}
		if other, used := owners[print]; used {
			both := []string{id, other}
			slices.Sort(both)
			return Keys{}, input.Errorf("the clusters %s and %s have the same key: each could sign for the other", both[0], both[1])
		}
		owners[print], pinned.of[id] = id, key
	}
	return pinned, nil
}

// fingerprint is the same for the same public key in any text.
func fingerprint(key signature.Verifier) (string, error) {
	public, err := key.PublicKey()
	if err != nil {
		return "", err
	}
	text, err := x509.MarshalPKIXPublicKey(public)
	return string(text), err
}
