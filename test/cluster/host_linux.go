package cluster

import (
	"fmt"
	"os"
	"syscall"
)

// lock locks the file until it and its copies in child processes are closed.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// dyingWithParent makes the kernel kill a child when the thread that started it
// ends for any reason.
func dyingWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// outlivingParent detaches a child from the terminal and the signals of its
// parent.
func outlivingParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

// bind mounts the directory from at to, without propagation of mounts.
func bind(from, to string) error {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %q at %q: %w", from, to, err)
	}
	return syscall.Mount("", to, "", syscall.MS_PRIVATE, "")
}

// unmount detaches a mount immediately. The kernel frees it when no process uses
// it any more.
func unmount(path string) error {
	return syscall.Unmount(path, syscall.MNT_DETACH)
}
