//go:build !linux

package cluster

import (
	"errors"
	"os"
	"syscall"
)

// The functions of this file are never called: newPlan fails on other systems.

func lock(*os.File) bool { return false }

func dyingWithParent() *syscall.SysProcAttr { return nil }

func outlivingParent() *syscall.SysProcAttr { return nil }

func bind(string, string) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }
