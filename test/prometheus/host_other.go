//go:build !linux

package prometheus

import "syscall"

// dyingWithParent is Linux's; elsewhere a test that is killed leaves it behind.
func dyingWithParent() *syscall.SysProcAttr { return nil }
