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

// makeCgroups makes the cgroup that the kubelet puts all pods below, in the one
// hierarchy of cgroup v2, or in every one of v1.
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
		if err := os.MkdirAll(filepath.Join(filepath.Dir(top), c.name()), 0o755); err != nil { //nolint:gosec // as all cgroups
			return err
		}
	}
	return nil
}

// processes finds those of the pods.
func (c *claim) processes() ([]int, error) {
	below := []byte(":/" + c.name() + "/")
	return processesWith("cgroup", func(cgroups []byte) bool { return bytes.Contains(cgroups, below) })
}

// removeCgroups removes the cluster's cgroup from every hierarchy, the
// innermost first. The kernel may need a moment after the last process.
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

// removeTree removes directories only, as a cgroup wants it.
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
