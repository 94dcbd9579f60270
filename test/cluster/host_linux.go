package cluster

import (
	"fmt"
	"os"
	"syscall"
)

// lock takes the file for as long as it, or a copy in a child, is open.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// dyingWithParent makes the kernel kill a child when the thread that started
// it ends, however it ends.
func dyingWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// outlivingParent detaches a child from terminal and signals of the parent.
func outlivingParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

// bind makes the directory from visible at to, with mounts of its own.
func bind(from, to string) error {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %q at %q: %w", from, to, err)
	}
	return syscall.Mount("", to, "", syscall.MS_PRIVATE, "")
}

// unmount takes a mount away from the tree now, and frees it when the last
// process that uses it has ended.
func unmount(path string) error {
	return syscall.Unmount(path, syscall.MNT_DETACH)
}
