package record

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/openshift/update-preflight/runner/label"
)

// leaseName is the name of the Lease for the run of a release in progress.
func leaseName(digest string) string { return "preflight-" + label.ReleaseValue(digest) }

func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// expiryOf is when the Lease expires unless it is renewed, by the clock of the API
// server, which records the time of the last write without its fraction of a second;
// zero if that is not known.
func expiryOf(lease *coordinationv1.Lease) time.Time {
	var renewed time.Time
	if lease == nil || lease.Spec.LeaseDurationSeconds == nil {
		return renewed
	}
	for _, managed := range lease.ManagedFields {
		if managed.Time != nil && managed.Time.After(renewed) {
			renewed = managed.Time.Time
		}
	}
	if renewed.IsZero() {
		return renewed
	}
	return renewed.Add(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second + time.Second)
}

// durationOf is the duration of the Lease, within the bounds of LeaseDuration.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return defaultLeaseDuration
	}
	return max(minLeaseDuration, min(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, maxLeaseDuration))
}

func (s *Store) isExpired(lease *coordinationv1.Lease) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.expired[lease.Name] == versionOf(lease)
}

func (s *Store) setExpired(lease *coordinationv1.Lease) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.expired[lease.Name] = versionOf(lease)
}
