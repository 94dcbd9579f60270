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
	index int
	file  *os.File
}

// newClaim takes the first free place for the cluster in dir. A place whose
// owner has died is cleared of what the owner left first.
func newClaim(ctx context.Context, dir string) (*claim, error) {
	if err := os.MkdirAll(runDir, 0o755); err != nil { //nolint:gosec // a directory of /run, readable as all of it
		return nil, err
	}
	for index := range places {
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
func tryClaim(ctx context.Context, index int, dir string) (*claim, error) {
	c := &claim{index: index}
	if overlapping, err := c.subnets().used(c.bridge()); err != nil || overlapping {
		return nil, err
	}
	file, err := os.OpenFile(c.path(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if !lock(file) {
		return nil, file.Close()
	}
	c.file = file
	if err := c.evict(ctx); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := file.WriteAt([]byte(dir), 0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return c, nil
}

// evict clears away the cluster that died in this place, if any did.
func (c *claim) evict(ctx context.Context) error {
	owner, err := os.ReadFile(c.path())
	if err != nil {
		return err
	}
	if len(owner) > 0 {
		if err := sweep(ctx, string(owner)); err != nil {
			return fmt.Errorf("cannot clear away the crashed cluster in %q: %w", owner, err)
		}
	}
	return c.file.Truncate(0)
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
	files, err := filepath.Glob(filepath.Join(runDir, "*.lock"))
	if err != nil {
		return nil, err
	}
	var found []*claim
	for _, file := range files {
		owner, err := os.ReadFile(file) //nolint:gosec // a file of ours in /run
		if err != nil {
			return nil, err
		}
		index, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".lock"))
		if err == nil && string(owner) == dir {
			found = append(found, &claim{index: index})
		}
	}
	return found, nil
}

func (c *claim) path() string { return filepath.Join(runDir, strconv.Itoa(c.index)+".lock") }

// nodeDir is where the node sees its part of the cluster's directory.
func (c *claim) nodeDir() string { return filepath.Join(runDir, strconv.Itoa(c.index)) }

// name names the node, the cgroup, the nftables table and the pod network.
func (c *claim) name() string { return "preflight-" + strconv.Itoa(c.index) }

// bridge is an interface's name: at most 15 bytes.
func (c *claim) bridge() string { return "preflight" + strconv.Itoa(c.index) }

func (c *claim) subnets() subnets {
	return subnets{
		pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 203, byte(c.index), 0}), 24),
		services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 204, byte(c.index), 0}), 24),
	}
}
