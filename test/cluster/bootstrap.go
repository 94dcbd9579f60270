package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bootstrapKeys are the prefixes of the keys of what a start creates, and what is the same in all clusters: the
// OpenShift resources, and the roles and the priorities that an API server creates. These are
// written to etcd before the API server starts, which finds them as it does when it is restarted: the
// requests that create some two hundred objects cost half of a start.
func bootstrapKeys() []string {
	return []string{
		definitions, objects + "clusterrolebindings/", objects + "clusterroles/", objects + "flowschemas/",
		objects + "priorityclasses/", objects + "prioritylevelconfigurations/", objects + "rolebindings/kube-", objects + "roles/kube-",
	}
}

// bootstrapFile returns the path of a file with the values of these keys. It is another one for
// other manifests, and for another API server.
func (p *plan) bootstrapFile() (string, error) {
	digest := sha256.New()
	inputs := append(slices.Sorted(slices.Values(p.crds)), filepath.Join(p.root, "test", "tools", "go.mod"))
	for _, path := range inputs {
		data, err := os.ReadFile(path) //nolint:gosec // a manifest of a module in go.mod, or our own file
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%d\n%s", len(data), data)
	}
	return filepath.Join(p.bin, "bootstrap-"+hex.EncodeToString(digest.Sum(nil)[:8])+".json"), nil
}

// storeBootstrap writes the values that an earlier start has saved to etcd.
func (p *plan) storeBootstrap(ctx context.Context) error {
	path, err := p.bootstrapFile()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path) //nolint:gosec // a file of saveBootstrap
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var saved map[string][]byte
	if err := json.Unmarshal(data, &saved); err != nil {
		return fmt.Errorf("read %q: %w; delete it", path, err)
	}
	p.stored = true
	return p.keys().put(ctx, saved)
}

// saveBootstrap saves the values for the next start.
func (p *plan) saveBootstrap(ctx context.Context) error {
	path, err := p.bootstrapFile()
	if err != nil || p.stored {
		return err
	}
	all, err := p.keys().values(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(all, func(key string, _ []byte) bool {
		return !slices.ContainsFunc(bootstrapKeys(), func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	// Several clusters may start at the same time.
	file, err := os.CreateTemp(p.bin, "bootstrap-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	p.cluster.Saved = path
	return os.Rename(file.Name(), path)
}

// keys is the data of the cluster in etcd.
func (p *plan) keys() keySpace { return keySpace("http://" + p.etcd) }
