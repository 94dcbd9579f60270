package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// sharedVariable is the environment variable with the directories of the shared control
// planes that Main may use.
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

// Shared are control planes that the tests of several packages use, one package at a
// time: a start costs four seconds of a processor.
type Shared struct {
	clusters []*Cluster
}

// StartShared starts a number of control planes in directories below dir, which Main
// uses instead of its own for ControlPlaneOnly, in the processes that have the variable
// Environment. Without a free one, Main starts its own. They end with this process.
func StartShared(ctx context.Context, dir string, number int) (*Shared, error) {
	s := &Shared{clusters: make([]*Cluster, number)}
	group, startCtx := errgroup.WithContext(ctx)
	for i := range number {
		group.Go(func() (err error) {
			s.clusters[i], err = startShared(startCtx, filepath.Join(dir, strconv.Itoa(i)))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, s.Stop(ctx))
	}
	return s, nil
}

func startShared(ctx context.Context, dir string) (*Cluster, error) {
	c, err := Start(ctx, dir, ControlPlaneOnly())
	if err != nil {
		return nil, err
	}
	state := initial{Etcd: keySpace{URL: "http://" + c.started.etcd}}
	if state.Objects, err = state.Etcd.read(ctx); err != nil {
		return c, fmt.Errorf("read the objects of the control plane in %q: %w", dir, err)
	}
	data, err := json.Marshal(state)
	if err != nil {
		return c, err
	}
	return c, os.WriteFile(filepath.Join(dir, initialFile), data, 0o600)
}

// Environment returns the environment variable, NAME=VALUE, for processes whose tests use
// the control planes.
func (s *Shared) Environment() string {
	var dirs []string
	for _, c := range s.clusters {
		dirs = append(dirs, c.Dir)
	}
	return sharedVariable + "=" + strings.Join(dirs, string(os.PathListSeparator))
}

// Stop stops the control planes. Their logs stay.
func (s *Shared) Stop(ctx context.Context) error {
	var errs []error
	for _, c := range s.clusters {
		if c != nil {
			errs = append(errs, c.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// Borrow returns a shared control plane as it was after its start, with the further CRDs
// of the options. Until giveBack is called, or this process ends, no other process uses
// it. Without a control plane that is free and suitable, c is nil.
func Borrow(ctx context.Context, options ...Option) (c *Cluster, giveBack func() error, err error) {
	p := &plan{featureSet: defaultFeatureSet}
	for _, option := range options {
		option(p)
	}
	if !p.sharable() {
		return nil, nil, nil
	}
	// The result of a test does not depend on the variable, so it is not read by os.Getenv,
	// whose variables are part of what the Go tool caches results for.
	dirs, _ := syscall.Getenv(sharedVariable)
	for _, dir := range filepath.SplitList(dirs) {
		file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a directory of StartShared
		if err != nil {
			return nil, nil, err
		}
		if lock(file) {
			err = p.reuse(ctx, dir)
			if err == nil {
				return p.cluster, file.Close, nil
			}
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, nil, fmt.Errorf("use the control plane in %q: %w", dir, err)
		}
	}
	return nil, nil, nil
}

// sharable reports whether a shared control plane, with further CRDs, has everything that
// is planned.
func (p *plan) sharable() bool {
	return p.controlPlaneOnly && p.simulated == 0 && p.controllerRate == 0 && !p.standing && p.featureSet == defaultFeatureSet
}

// reuse restores the initial objects of the control plane in dir, and installs the
// further CRDs.
func (p *plan) reuse(ctx context.Context, dir string) error {
	var err error
	if p.cluster, err = Open(dir); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, initialFile)) //nolint:gosec // a file of startShared
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
