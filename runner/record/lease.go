package record

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	defaultLeaseDuration = 10 * time.Second
	minLeaseDuration     = time.Second
	maxLeaseDuration     = 10 * time.Minute
)

// Runs are the runs of one cluster that processes hold, by their Leases. All requests are
// retried, until their context is done, while the API server is unreachable or overloaded.
type Runs struct {
	client   kubernetes.Interface
	records  *Store
	duration time.Duration
	expired  expired
}

// expired are the versions of Leases that Follow has found expired, by name.
type expired struct {
	mutex    sync.Mutex
	versions map[string]version
}

func (e *expired) has(lease *coordinationv1.Lease) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.versions[lease.Name] == versionOf(lease)
}

func (e *expired) add(lease *coordinationv1.Lease) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.versions[lease.Name] = versionOf(lease)
}

// version identifies a state of an object.
type version struct {
	uid      types.UID
	resource string
}

func versionOf(object metav1.Object) version {
	return version{uid: object.GetUID(), resource: object.GetResourceVersion()}
}

// Option configures Runs.
type Option func(*Runs)

// LeaseDuration is after which time without a renewal a Lease expires: others detect
// after this time that the holder was killed, and a holder that cannot reach the API
// server for a shorter time keeps the run. The default is 10 s; remote or slow API
// servers need more. It is rounded to seconds, at least 1 s and at most 10 min. The
// Lease is renewed three times within it.
func LeaseDuration(duration time.Duration) Option {
	return func(r *Runs) {
		r.duration = max(minLeaseDuration, min(duration.Round(time.Second), maxLeaseDuration))
	}
}

// NewRuns returns the runs of a cluster. The client should have no rate limit
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func NewRuns(client kubernetes.Interface, options ...Option) *Runs {
	runs := &Runs{client: client, records: New(client), duration: defaultLeaseDuration, expired: expired{versions: map[string]version{}}}
	for _, option := range options {
		option(runs)
	}
	return runs
}

// durationOf is the duration of the Lease, within the bounds of LeaseDuration.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return defaultLeaseDuration
	}
	return max(minLeaseDuration, min(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, maxLeaseDuration))
}
