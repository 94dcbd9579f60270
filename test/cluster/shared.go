package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// sharedVariable is the environment variable with the directory of the shared control
// planes that Main may use, each in a directory with the name of its feature set.
const sharedVariable = "PREFLIGHT_TEST_SHARED_CONTROL_PLANES"

// Files in the directory of a shared control plane.
const (
	// lockFile is locked by the process whose tests use the control plane.
	lockFile = "lock"
	// initialFile has the initial objects.
	initialFile = "initial.json"
)

// initial is the state to which a shared control plane is restored.
type initial struct {
	Etcd    keySpace          `json:"etcd"`
	Objects map[string][]byte `json:"objects"` // by etcd's key
}

// Shared are control planes that the tests of several packages use, each by one package at
// a time: a start costs four seconds of a processor.
type Shared struct {
	dir      string
	clusters []*Cluster
}

// StartShared starts a control plane for each of the feature sets in dir, which Main uses
// instead of its own for ControlPlaneOnly, in the processes that have the variable
// Environment. While it is in use, Main starts its own. They end with this process.
func StartShared(ctx context.Context, dir string, featureSets ...string) (*Shared, error) {
	s := &Shared{dir: dir, clusters: make([]*Cluster, len(featureSets))}
	var group errgroup.Group
	for i, featureSet := range featureSets {
		group.Go(func() error {
			c, err := Start(ctx, filepath.Join(dir, featureSet), ControlPlaneOnly(), FeatureSet(featureSet))
			if err != nil {
				return err
			}
			s.clusters[i] = c
			return c.saveInitial(ctx)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, s.Stop(ctx))
	}
	return s, nil
}

// saveInitial writes the initial objects to the directory of the control plane.
func (c *Cluster) saveInitial(ctx context.Context) error {
	state := initial{Etcd: keySpace{URL: "http://" + c.started.etcd}}
	var err error
	if state.Objects, err = state.Etcd.read(ctx); err != nil {
		return fmt.Errorf("read the objects of the control plane in %q: %w", c.Dir, err)
	}
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, initialFile), data, 0o600)
}

// Environment returns the environment variable, NAME=VALUE, for processes whose tests use
// the control planes.
func (s *Shared) Environment() string { return sharedVariable + "=" + s.dir }

// Stop stops the control planes. Their logs stay.
func (s *Shared) Stop(ctx context.Context) error {
	var err error
	for _, c := range s.clusters {
		if c != nil {
			err = errors.Join(err, c.Stop(ctx))
		}
	}
	return err
}

// Borrow returns the shared control plane of the feature set as it was after its start, with
// the further CRDs of the options. Until giveBack is called, or this process ends, no other process uses
// it. If it is in use or not suitable, or there is none, c is nil.
func Borrow(ctx context.Context, options ...Option) (c *Cluster, giveBack func() error, err error) {
	p := &plan{featureSet: defaultFeatureSet}
	for _, option := range options {
		option(p)
	}
	// The result of a test does not depend on the variable, so it is not read by os.Getenv,
	// whose variables are part of what the Go tool caches results for.
	all, _ := syscall.Getenv(sharedVariable)
	if all == "" || !p.sharable() {
		return nil, nil, nil
	}
	dir := filepath.Join(all, p.featureSet)
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a directory of StartShared
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if !lock(file) {
		return nil, nil, file.Close()
	}
	if err := p.reuse(ctx, dir); err != nil {
		return nil, nil, fmt.Errorf("use the control plane in %q: %w", dir, errors.Join(err, file.Close()))
	}
	return p.cluster, file.Close, nil
}

// sharable reports whether a shared control plane of the feature set, with further CRDs, has
// everything that is planned.
func (p *plan) sharable() bool {
	return p.controlPlaneOnly && !p.exclusive && p.simulated == 0 && p.controllerRate == 0 && !p.standing
}

// reuse restores the initial objects of the control plane in dir, and installs the
// further CRDs.
func (p *plan) reuse(ctx context.Context, dir string) error {
	var err error
	if p.cluster, err = Open(dir); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, initialFile)) //nolint:gosec // a file of StartShared
	if err != nil {
		return err
	}
	var state initial
	if err := json.Unmarshal(data, &state); err != nil {
		return err
	}
	if err := state.Etcd.restore(ctx, state.Objects); err != nil {
		return err
	}
	p.crds = p.furtherCRDs
	return p.installCRDs(ctx)
}
