package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
)

// Snapshot is the objects of a control plane at one time, to which the tests of a process restore it.
type Snapshot struct {
	cluster *Cluster
	// values and revisions are by etcd's key. A key of another revision has changed.
	values    map[string][]byte
	revisions map[string]int64
}

// Snapshot returns the present objects.
func (c *Cluster) Snapshot(ctx context.Context) (*Snapshot, error) {
	all, err := keySpace(c.Etcd).read(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("read the objects of the control plane in %q: %w", c.Dir, err)
	}
	s := &Snapshot{cluster: c, values: map[string][]byte{}, revisions: map[string]int64{}}
	for key, each := range all {
		s.values[key], s.revisions[key] = each.Value, each.Revision
	}
	return s, nil
}

// Restore deletes the objects that were created since then, and restores those that were changed or deleted.
// Nothing else may be writing objects but the controllers of the control plane.
func (s *Snapshot) Restore(ctx context.Context) error {
	etcd := keySpace(s.cluster.Etcd)
	present, err := etcd.read(ctx, false)
	if err != nil {
		return fmt.Errorf("read the objects of the control plane in %q: %w", s.cluster.Dir, err)
	}
	changed := change{values: s.values}
	for key := range present {
		if _, ok := s.values[key]; !ok {
			changed.deleted = append(changed.deleted, key)
		}
	}
	for key, revision := range s.revisions {
		if present[key].Revision != revision {
			changed.written = append(changed.written, key)
		}
	}
	revisions, err := etcd.apply(ctx, changed)
	if err != nil {
		return fmt.Errorf("restore the objects of the control plane in %q: %w", s.cluster.Dir, err)
	}
	maps.Copy(s.revisions, revisions)
	return s.cluster.awaitServed(ctx, changed.written, s.values)
}

// definitions is the prefix of etcd's keys of CustomResourceDefinitions.
const definitions = objects + "apiextensions.k8s.io/customresourcedefinitions/"

// awaitServed waits until the API server serves the resources of the definitions among restored objects.
func (c *Cluster) awaitServed(ctx context.Context, written []string, values map[string][]byte) error {
	for _, key := range written {
		if !strings.HasPrefix(key, definitions) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{} // etcd has it as JSON
		if err := json.Unmarshal(values[key], crd); err != nil {
			return err
		}
		clients, err := clientset.NewForConfig(c.Config)
		if err != nil {
			return err
		}
		if err := initialize(ctx, clients, crd); err != nil {
			return fmt.Errorf("restore %s: %w", strings.TrimPrefix(key, definitions), err)
		}
	}
	return nil
}
