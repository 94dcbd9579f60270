package recordstore

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/label"
)

// LeaseName is the name of the Lease for the run of a release in progress.
func LeaseName(digest string) string { return "preflight-" + label.ReleaseValue(digest) }

func HolderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// expiryOf is when the Lease expires unless it is renewed, by the clock of the API
// server, which records the time of the last write without its fraction of a second;
// zero if that is not known.
func expiryOf(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.LeaseDurationSeconds == nil || len(lease.ManagedFields) == 0 {
		return time.Time{}
	}
	return cluster.LastWrite(lease).Add(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second + time.Second)
}
