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
	// runDir holds one lock file and one directory per place. It is on every
	// Linux (FHS 3.15) and short enough for the 107 bytes of a socket's path.
	runDir = "/run/preflight-cluster"
	// places bounds how many clusters run side by side on one machine.
	places = 64
)

// claim is a place on this machine that is one cluster's alone. Everything that
// has one namespace for the whole machine is named after its index: subnets,
// bridge, nftables table, cgroup. The lock on its file is held by the process
// that started the cluster, or by the components of a standing one, and so is
// given up by the kernel when they die.
type claim struct {
	index uint8
	file  *os.File
}

// newClaim takes the first free place for the cluster in dir.
func newClaim(ctx context.Context, dir string) (*claim, error) {
	if err := os.MkdirAll(runDir, 0o755); err != nil { //nolint:gosec // a directory of /run, readable as all of it
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
	return nil, fmt.Errorf("%d clusters run on this machine already", places)
}

// tryClaim returns nothing when the place is taken.
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

// RemoveDead clears away what crashed clusters left on this machine, whatever
// their directories were. Their logs stay. Start does so by itself.
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
			continue // its owner lives
		}
		if err := errors.Join(c.evict(ctx), c.file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lock takes the place, unless its owner lives.
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

// evict clears away the cluster that died in this place, if any did.
func (c *claim) evict(ctx context.Context) error {
	owner, err := c.owner()
	if err != nil {
		return err
	}
	if owner != "" {
		if err := sweep(ctx, owner, c); err != nil {
			return fmt.Errorf("cannot clear away the crashed cluster in %q: %w", owner, err)
		}
	}
	return c.file.Truncate(0)
}

// owner is the directory of the cluster that has the place, or had it last.
func (c *claim) owner() (string, error) {
	dir, err := os.ReadFile(c.path())
	return string(dir), err
}

// release gives the place up; what was in it must have been cleared.
func (c *claim) release() error {
	if c == nil || c.file == nil {
		return nil
	}
	err := errors.Join(c.file.Truncate(0), c.file.Close())
	c.file = nil
	return err
}

// claimsOf finds the places of the cluster in dir, whether it lives or not.
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

// allClaims finds every place that was ever taken since the machine booted.
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

// nodeDir is where the node sees its part of the cluster's directory.
func (c *claim) nodeDir() string { return filepath.Join(runDir, c.number()) }

// name names the node, the cgroup, the nftables table and the pod network.
func (c *claim) name() string { return "preflight-" + c.number() }

// bridge is an interface's name: at most 15 bytes.
func (c *claim) bridge() string { return "preflight" + c.number() }

func (c *claim) subnets() subnets {
	return subnets{
		pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 203, c.index, 0}), 24),
		services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 204, c.index, 0}), 24),
	}
}
