// Package rollout answers: when are the nodes of a pool rebooted on the way to a release,
// and how long does that way take?
//
// A paused pool is not rebooted. It has to be unpaused before an update whose API server
// would no longer support its kubelets, and at the end.
package rollout

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/update"
)

// UnknownError is the error for a release whose Kubernetes version is unknown: it is newer than this program.
type UnknownError struct{ Release semver.Version }

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("the Kubernetes version of %s, or its oldest supported kubelet, is unknown", e.Release)
}

// Unpause are the versions at which a pool has to be unpaused, as indexes of the path,
// which starts with the present version: as late as the kubelets permit, so that its nodes
// are rebooted as rarely as possible. The last is the end of the path. The oldest kubelet
// of the pool has the version 1.kubelet. The error is an *UnknownError.
func Unpause(path []semver.Version, kubelet uint64) ([]int, error) {
	var at []int
	for i, release := range path {
		oldest, known := update.OldestKubelet(release)
		if !known {
			return nil, &UnknownError{release}
		}
		if kubelet >= oldest || i == 0 {
			continue
		}
		at = append(at, i-1)
		kubelet, _ = update.Kubernetes(path[i-1])
	}
	return append(at, len(path)-1), nil
}
