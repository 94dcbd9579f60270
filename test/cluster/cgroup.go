package cluster

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// makeCgroups creates the parent cgroup of all pods: in the hierarchy of cgroup
// v2, or in each hierarchy of v1.
func (c *claim) makeCgroups() error {
	tops, err := filepath.Glob("/sys/fs/cgroup/cgroup.procs")
	if err != nil {
		return err
	}
	if len(tops) == 0 {
		if tops, err = filepath.Glob("/sys/fs/cgroup/*/cgroup.procs"); err != nil {
			return err
		}
	}
	for _, top := range tops {
		if err := os.MkdirAll(filepath.Join(filepath.Dir(top), c.name()), 0o755); err != nil { //nolint:gosec // the mode of all cgroups
			return err
		}
	}
	return nil
}

// processes returns the IDs of the processes of the pods.
func (c *claim) processes() ([]int, error) {
	below := []byte(":/" + c.name() + "/")
	return processesWith("cgroup", func(cgroups []byte) bool { return bytes.Contains(cgroups, below) })
}

// removeCgroups removes the cluster's cgroup from every hierarchy, the
// innermost first. The kernel frees a cgroup some time after its last process
// has ended, so a busy one is tried again.
func (c *claim) removeCgroups(ctx context.Context) error {
	return poll(ctx, func() (bool, error) {
		err := c.tryRemoveCgroups()
		if errors.Is(err, syscall.EBUSY) {
			return false, nil
		}
		return err == nil, err
	})
}

func (c *claim) tryRemoveCgroups() error {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		tops, err := filepath.Glob(pattern + c.name())
		if err != nil {
			return err
		}
		for _, top := range tops {
			if err := removeTree(top); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeTree removes only directories: the files of a cgroup cannot be removed.
func removeTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
