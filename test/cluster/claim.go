package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// runDir has a lock file and a directory per place. It exists on every Linux
	// (FHS 3.15) and is short enough for the 107 bytes of a socket path.
	runDir = "/run/preflight-cluster"
	// places limits the number of clusters with a node on one machine.
	places = 64
)

// claim is a place on this machine that belongs to one cluster. Subnets, bridge,
// nftables table and cgroup, whose names are global, are named after its index.
// The lock on its file is held by the process that started the cluster, or by
// the components of a standing cluster, so that the kernel releases it when they
// end.
type claim struct {
	index uint8
	file  *os.File
}

// newClaim claims the first free place for the cluster in dir.
func newClaim(ctx context.Context, dir string) (*claim, error) {
	if err := os.MkdirAll(runDir, 0o755); err != nil { //nolint:gosec // readable, like all of /run
		return nil, err
	}
	if err := RemoveDead(ctx); err != nil {
		return nil, err
	}
	for index := range uint8(places) {
		claimed, err := tryClaim(ctx, index, dir)
		if err != nil {
			return nil, err
		}
		if claimed != nil {
			return claimed, nil
		}
	}
	return nil, fmt.Errorf("all %d places for clusters on this machine are taken", places)
}

// tryClaim returns nil if the place is taken.
func tryClaim(ctx context.Context, index uint8, dir string) (*claim, error) {
	c := &claim{index: index}
	if overlapping, err := c.subnets().used(c.bridge()); err != nil || overlapping {
		return nil, err
	}
	if locked, err := c.lock(); err != nil || !locked {
		return nil, err
	}
	err := c.evict(ctx)
	if err == nil {
		_, err = c.file.WriteAt([]byte(dir), 0)
	}
	if err != nil {
		return nil, errors.Join(err, c.file.Close())
	}
	return c, nil
}

// RemoveDead removes everything of crashed clusters from this machine except
// their logs. Start calls it.
func RemoveDead(ctx context.Context) error {
	all, err := allClaims()
	if err != nil {
		return err
	}
	for _, c := range all {
		locked, err := c.lock()
		if err != nil {
			return err
		}
		if !locked {
			continue // its owner is running
		}
		if err := errors.Join(c.evict(ctx), c.file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lock locks the place. It reports false if the owner is running.
func (c *claim) lock() (bool, error) {
	file, err := os.OpenFile(c.path(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	if !lock(file) {
		return false, file.Close()
	}
	c.file = file
	return true, nil
}

// evict removes the crashed cluster of this place, if there is one.
func (c *claim) evict(ctx context.Context) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	if owner != "" {
		if err := sweep(ctx, owner, c); err != nil {
			return fmt.Errorf("remove the crashed cluster in %q: %w", owner, err)
		}
	}
	return c.file.Truncate(0)
}

// owner returns the directory of the cluster that has the place or had it last.
func (c *claim) owner() (string, error) {
	dir, err := os.ReadFile(c.path())
	return string(dir), err
}

// release releases the place, which must be empty.
func (c *claim) release() error {
	if c == nil || c.file == nil {
		return nil
	}
	err := errors.Join(c.file.Truncate(0), c.file.Close())
	c.file = nil
	return err
}

// claimsOf returns the places of the cluster in dir, running or not.
func claimsOf(dir string) ([]*claim, error) {
	all, err := allClaims()
	if err != nil {
		return nil, err
	}
	var found []*claim
	for _, c := range all {
		owner, err := c.owner()
		if err != nil {
			return nil, err
		}
		if owner == dir {
			found = append(found, c)
		}
	}
	return found, nil
}

// allClaims returns every place that was taken since the machine booted.
func allClaims() ([]*claim, error) {
	files, err := filepath.Glob(filepath.Join(runDir, "*.lock"))
	if err != nil {
		return nil, err
	}
	var all []*claim
	for _, file := range files {
		index, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(file), ".lock"), 10, 8)
		if err == nil {
			all = append(all, &claim{index: uint8(index)})
		}
	}
	return all, nil
}

func (c *claim) number() string { return strconv.FormatUint(uint64(c.index), 10) }

func (c *claim) path() string { return filepath.Join(runDir, c.number()+".lock") }

// nodeDir is the path at which the node's directory is mounted.
func (c *claim) nodeDir() string { return filepath.Join(runDir, c.number()) }

// name is the name of the node, the cgroup, the nftables table and the pod
// network.
func (c *claim) name() string { return "preflight-" + c.number() }

// bridge is the name of an interface, which has at most 15 bytes.
func (c *claim) bridge() string { return "preflight" + c.number() }

func (c *claim) subnets() subnets {
	return subnets{
		pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 203, c.index, 0}), 24),
		services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 204, c.index, 0}), 24),
	}
}
