package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
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

// socketFile is in the directory of all shared control planes. A request by HTTP to its
// socket with a feature set as its path starts the control plane.
const socketFile = "socket"

// Shared are control planes that the tests of several packages use, each by one package at
// a time: a start costs four seconds of a processor. Each starts when it is first used, so
// that tests whose results the Go tool has cached cost none.
type Shared struct {
	dir    string
	server http.Server
	mutex  sync.Mutex
	// clusters are those that have started, by feature set.
	clusters map[string]*Cluster
}

// Share offers a control plane of each of the feature sets, with its files in dir, which
// Main uses instead of its own for ControlPlaneOnly, in the processes that have the variable
// Environment. While one is in use, Main starts its own. They end with this process.
func Share(ctx context.Context, dir string, featureSets ...string) (*Shared, error) {
	s := &Shared{dir: dir, clusters: map[string]*Cluster{}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(dir, socketFile))
	if err != nil {
		return nil, err
	}
	s.server = http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, featureSet := range featureSets {
			if r.URL.Path != "/"+featureSet {
				continue
			}
			if err := s.start(ctx, featureSet); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	})}
	go func() { _ = s.server.Serve(listener) }() // until Stop
	return s, nil
}

// start starts the control plane of a feature set unless it has started.
func (s *Shared) start(ctx context.Context, featureSet string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.clusters[featureSet] != nil {
		return nil
	}
	c, err := Start(ctx, filepath.Join(s.dir, featureSet), ControlPlaneOnly(), FeatureSet(featureSet))
	if err != nil {
		return err
	}
	s.clusters[featureSet] = c
	return c.saveInitial(ctx)
}

// await waits until the shared control plane of a feature set in dir has started, if it is
// shared.
func await(ctx context.Context, dir, featureSet string) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, socketFile))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shared/"+featureSet, http.NoBody)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return err
	}
	message, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(string(message))
	}
	return errors.Join(err, response.Body.Close())
}

// saveInitial writes the initial objects, by etcd's key, to the directory of the control plane.
func (c *Cluster) saveInitial(ctx context.Context) error {
	objects, err := keySpace(c.Etcd).values(ctx)
	if err != nil {
		return fmt.Errorf("read the objects of the control plane in %q: %w", c.Dir, err)
	}
	data, err := json.Marshal(objects)
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
	err := s.server.Close()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, c := range s.clusters {
		err = errors.Join(err, c.Stop(ctx))
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
	if err := await(ctx, all, p.featureSet); err != nil {
		return nil, nil, fmt.Errorf("start the shared control plane %q: %w", p.featureSet, err)
	}
	if err := dependOnPrograms(); err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(all, p.featureSet)
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a directory of Share
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
	return p.controlPlaneOnly && !p.exclusive && p.simulated == 0 && p.controllerRate == 0 && !p.quickScheduler && !p.standing
}

// reuse restores the initial objects of the control plane in dir, and installs the
// further CRDs.
func (p *plan) reuse(ctx context.Context, dir string) error {
	var err error
	if p.cluster, err = Open(dir); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, initialFile)) //nolint:gosec // a file of Share
	if err != nil {
		return err
	}
	var objects map[string][]byte
	if err := json.Unmarshal(data, &objects); err != nil {
		return err
	}
	written, err := keySpace(p.cluster.Etcd).restore(ctx, objects)
	if err != nil {
		return err
	}
	if err := p.cluster.awaitServed(ctx, written, objects); err != nil {
		return err
	}
	if p.crds, err = p.crdFiles(ctx); err != nil {
		return err
	}
	return p.installCRDs(ctx)
}
