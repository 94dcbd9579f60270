package prometheus

import "syscall"

// dyingWithParent makes the kernel kill a child when the thread that started it
// ends for any reason.
func dyingWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
