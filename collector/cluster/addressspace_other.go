//go:build !unix

package cluster

func addressSpace() (int64, bool) { return 0, false }
