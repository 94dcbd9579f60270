//go:build !linux

package prometheus

import "syscall"

// dyingWithParent has an effect only on Linux; on other systems the child survives
// a test that is killed.
func dyingWithParent() *syscall.SysProcAttr { return nil }
