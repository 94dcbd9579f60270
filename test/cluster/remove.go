package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Remove stops the standing or crashed cluster in dir and removes all of it,
// including its logs. It fails if the process that has started the cluster, and
// will stop it, is running. The error is os.ErrNotExist if dir has no cluster.
func Remove(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	c, err := load(dir)
	if err != nil {
		return fmt.Errorf("%q has no cluster: %w", dir, err)
	}
	if owned, err := c.hasStarter(); err != nil || owned {
		return errors.Join(err, fmt.Errorf("the cluster in %q belongs to process %d, which is running: stop that process", dir, c.Starter))
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := sweep(ctx, dir, nil); err != nil {
		return fmt.Errorf("cannot clear away the cluster in %q: %w", dir, err)
	}
	return os.RemoveAll(dir)
}

// hasStarter reports whether the process that will stop the cluster is running.
func (c *Cluster) hasStarter() (bool, error) {
	claims, err := claimsOf(c.Dir)
	if err != nil || c.Starter == 0 {
		return false, err
	}
	for _, claim := range claims {
		locked, err := claim.lock()
		if err != nil || !locked {
			return !locked, err
		}
		if err := claim.file.Close(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// sweep removes everything of the cluster in dir from this machine except its
// logs. Processes are found by the mark in their environment, and everything that
// is named after a place by the place's lock file. Held is the place that the
// caller has locked, or nil.
func sweep(ctx context.Context, dir string, held *claim) error {
	claims, err := claimsOf(dir)
	if err != nil {
		return err
	}
	if err := killAll(ctx, dir, claims); err != nil {
		return err
	}
	for _, claim := range claims {
		if held != nil && held.index == claim.index {
			err = claim.sweep(ctx)
		} else {
			err = claim.sweepLocked(ctx, dir)
		}
		if err != nil {
			return err
		}
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return removeFiles(dir)
}

// sweepLocked locks, sweeps and releases the place. It does nothing if the place
// does not belong to the cluster in dir any more.
func (c *claim) sweepLocked(ctx context.Context, dir string) error {
	return poll(ctx, func() (bool, error) {
		if owner, err := c.owner(); err != nil || owner != dir {
			return true, err
		}
		locked, err := c.lock()
		if err != nil || !locked {
			return false, err
		}
		if owner, err := c.owner(); err != nil || owner != dir {
			return true, errors.Join(err, c.file.Close())
		}
		return true, errors.Join(c.sweep(ctx), c.release())
	})
}

// sweep removes everything that is named after the place.
func (c *claim) sweep(ctx context.Context) error {
	if err := unmountBelow(c.nodeDir()); err != nil {
		return err
	}
	if err := os.Remove(c.nodeDir()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := disconnect(ctx, c); err != nil {
		return err
	}
	if err := c.removeLogLinks(); err != nil {
		return err
	}
	return c.removeCgroups(ctx)
}

// killAll kills the processes of a cluster until none is left: containerd may
// start another shim while it is being killed.
func killAll(ctx context.Context, dir string, claims []*claim) error {
	return poll(ctx, func() (bool, error) {
		pids, err := marked(dir)
		if err != nil {
			return false, err
		}
		for _, claim := range claims {
			inside, err := claim.processes()
			if err != nil {
				return false, err
			}
			pids = append(pids, inside...)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		}
		return len(pids) == 0, nil
	})
}

// poll calls try until it is done or fails. The kernel does not report the end of
// processes that are not children, nor that a cgroup is free.
func poll(ctx context.Context, try func() (done bool, err error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		done, err := try()
		if err != nil || done {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// marked returns the processes of the cluster in dir except those of pods.
func marked(dir string) ([]int, error) {
	mark := []byte(markName + "=" + dir)
	return processesWith("environ", func(environ []byte) bool {
		return slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(variable []byte) bool {
			return bytes.Equal(variable, mark)
		})
	})
}

// processesWith returns the processes whose file of that name under /proc matches.
// Processes that end meanwhile, and those of other users, are left out.
func processesWith(file string, matches func([]byte) bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		data, err := os.ReadFile(filepath.Join("/proc", entry.Name(), file)) //nolint:gosec // a file of the kernel
		if err == nil && matches(data) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// unmountBelow unmounts dir and everything below it, the last mount first.
func unmountBelow(dir string) error {
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, mount := range slices.Backward(mounts) {
		if err := unmount(mount); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("unmount %q: %w", mount, err)
		}
	}
	left, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%q is still mounted", left)
	}
	return nil
}

// mountsBelow returns mount points in the order in which they were mounted
// (proc_pid_mountinfo(5): the fifth field, with octal escapes).
func mountsBelow(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		columns := strings.Fields(lines.Text())
		if len(columns) < 5 {
			continue
		}
		mount := unescape.Replace(columns[4])
		if mount == dir || strings.HasPrefix(mount, dir+"/") {
			found = append(found, mount)
		}
	}
	return found, lines.Err()
}

// removeLogLinks removes the kubelet's links to the containers' logs, whose
// directory cannot be configured.
func (c *claim) removeLogLinks() error {
	links, err := filepath.Glob("/var/log/containers/*.log")
	if err != nil {
		return err
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, c.nodeDir()+"/") {
			continue // not a link, or not of this cluster
		}
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeFiles removes everything but the logs and the state file, which makes it
// possible to call sweep again.
func removeFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == "logs" || entry.Name() == stateFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
