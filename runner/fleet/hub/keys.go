package hub

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/signature/localfile"
)

// keySuffix follows the ID of its cluster in the name of a key.
const keySuffix = ".pub"

// maxKeys bounds the number of keys.
const maxKeys = 10_000

// Keys are the public keys of clusters, one per cluster. The zero value has none.
type Keys struct {
	// of are the keys by the ID of their cluster in lower case.
	of map[string]signature.Verifier
	// notice is who has to be trusted; empty where it is the reader of a file.
	notice string
}

func (k Keys) empty() bool { return len(k.of) == 0 }

// key is that of the cluster with an ID; nil for none.
func (k Keys) key(clusterID string) signature.Verifier { return k.of[strings.ToLower(clusterID)] }

// ReadKeys reads files with the public key of a cluster in PEM, named ID.pub by its ID (spec.clusterID of
// ClusterVersion). A path is such a file, or a directory, of which other files are ignored.
func ReadKeys(ctx context.Context, paths ...string) (Keys, error) {
	texts := map[string][]byte{}
	for _, path := range paths {
		if err := readKeys(ctx, path, texts); err != nil {
			return Keys{}, err
		}
	}
	return PinKeys(texts)
}

// readKeys adds the keys of a path.
func readKeys(ctx context.Context, path string, texts map[string][]byte) error {
	if id, named := strings.CutSuffix(filepath.Base(path), keySuffix); named && id != "" {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return addKeys(ctx, filepath.Dir(path), []string{filepath.Base(path)}, texts)
		}
	}
	listed, err := os.ReadDir(path)
	if err != nil {
		return input.Errorf("the directory of the keys cannot be read: %w", err)
	}
	var names []string
	for _, each := range listed {
		if id, named := strings.CutSuffix(each.Name(), keySuffix); named && id != "" {
			names = append(names, each.Name())
		}
	}
	return addKeys(ctx, path, names, texts)
}

func addKeys(ctx context.Context, directory string, names []string, texts map[string][]byte) error {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return input.Errorf("the directory of the keys cannot be read: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		id := strings.TrimSuffix(name, keySuffix)
		if _, twice := texts[id]; twice {
			return input.Errorf("the cluster %s has two keys", id)
		}
		if texts[id], err = readKey(root, name); err != nil {
			return input.Errorf("the key %s cannot be read: %w", name, err)
		}
	}
	return nil
}

// KeyNeeds are the permissions to read keys from a ConfigMap of the hub.
func KeyNeeds(name types.NamespacedName) access.Needs {
	return access.Needs{Required: []access.Request{{Verb: "get", Resource: "configmaps", Namespace: name.Namespace, Name: name.Name}}}
}

// KeysOfHub reads the keys in a ConfigMap of the hub: under ID.pub, the public key in PEM of the
// cluster with that ID. Other keys of the ConfigMap are ignored. Who may write it may sign for every
// cluster, which [Fleet] states.
func KeysOfHub(ctx context.Context, hub *cluster.Cluster, name types.NamespacedName) (Keys, error) {
	object, err := hub.Kubernetes.CoreV1().ConfigMaps(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Keys{}, input.Errorf("the ConfigMap %s with the keys does not exist in the namespace %s of this hub; create it with: oc create configmap %s -n %s --from-file=DIRECTORY", name.Name, name.Namespace, name.Name, name.Namespace)
	}
	if err != nil {
		return Keys{}, fmt.Errorf("could not read the ConfigMap %s with the keys: %w", name, err)
	}
	texts := map[string][]byte{}
	for key, text := range object.Data {
		if id, named := strings.CutSuffix(key, keySuffix); named && id != "" {
			texts[id] = []byte(text)
		}
	}
	keys, err := PinKeys(texts)
	if err != nil {
		return Keys{}, input.Errorf("the ConfigMap %s: %w", name, err)
	}
	keys.notice = fmt.Sprintf("the public keys are those of the ConfigMap %s of the hub: who may write it can replace the key of any cluster", name)
	return keys, nil
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
	pinned, owners := Keys{of: map[string]signature.Verifier{}}, map[string]string{}
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
		if _, known := pinned.of[strings.ToLower(id)]; known {
			return Keys{}, input.Errorf("the cluster %s has two keys, whose names differ in the case of letters", strings.ToLower(id))
		}
		owners[print], pinned.of[strings.ToLower(id)] = id, key
	}
	return pinned, nil
}

func fingerprint(key signature.Verifier) (string, error) {
	public, err := key.PublicKey()
	if err != nil {
		return "", err
	}
	text, err := x509.MarshalPKIXPublicKey(public)
	return string(text), err
}
