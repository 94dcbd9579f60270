//go:build unix

package cluster

import "syscall"

// addressSpace is the limit of the address space of this process, in bytes; false for none.
func addressSpace() (int64, bool) {
	var limit syscall.Rlimit
	//nolint:unconvert // Cur is signed on some systems, such as FreeBSD
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || uint64(limit.Cur) >= 1<<62 {
		return 0, false
	}
	return int64(limit.Cur), true //nolint:unconvert,nolintlint // as above
}
