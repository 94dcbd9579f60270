// Package lease answers: which process holds the run in progress of a release?
//
// [New] returns the [Runs] of a cluster. [Runs.Begin] begins a run, which is durable: its
// record is created before its first Job. A Lease has the holder of the run, who renews it.
// When it is not renewed, another process takes the run over, with the same ID and its
// results: [Runs.Follow] returns when a run has ended or can be taken over.
//
// No local clock is trusted: a Lease expires when it was watched for its duration without
// a new resourceVersion.
//
// # Leader election
//
// The Lease is not held through k8s.io/client-go/tools/leaderelection, which lacks
// these properties: a holder keeps the run through an outage of the API server of any
// length, since only another holder ends it (an elector gives up after RenewDeadline);
// time in which a candidate could not watch the Lease does not count towards its expiry
// (an elector counts it, so that candidates can acquire the Lease at the end of an
// outage, before its holder renews it); the Lease carries the run, a nonce that
// identifies the claim and by which a former holder detects the takeover before it
// repeats a conflicting write, and the request to cancel (a LeaseLock sets labels only);
// Begin makes one attempt and returns the holder (Run blocks until the Lease is
// acquired); and the end of a run deletes the Lease, with UID and resourceVersion as
// preconditions (an elector only clears the holder).
package lease

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/runner/record/recordstore"
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
	records  *recordstore.Store
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

// Duration is after which time without a renewal a Lease expires: others detect
// after this time that the holder was killed, and a holder that cannot reach the API
// server for a shorter time keeps the run. The default is 10 s; remote or slow API
// servers need more. It is rounded to seconds, at least 1 s and at most 10 min. The
// Lease is renewed three times within it.
func Duration(duration time.Duration) Option {
	return func(r *Runs) {
		r.duration = max(minLeaseDuration, min(duration.Round(time.Second), maxLeaseDuration))
	}
}

// New returns the runs of a cluster. The client should have no rate limit
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface, options ...Option) *Runs {
	runs := &Runs{client: client, records: recordstore.New(client), duration: defaultLeaseDuration, expired: expired{versions: map[string]version{}}}
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

// leaseObserver measures for how long a Lease was watched without a renewal, by the
// monotonic clock of this machine. Time without a watch does not count: the holder
// could not renew the Lease either.
type leaseObserver struct {
	of version
	// watched is for how long that version was watched before since, the beginning of
	// the present watch; since is zero without a watch.
	watched time.Duration
	since   time.Time
}

func (o *leaseObserver) observe(of version, now time.Time) {
	if o.of == of {
		return
	}
	o.of = of
	o.restart(now)
}

// restart resets the measured time.
func (o *leaseObserver) restart(now time.Time) {
	o.watched = 0
	if !o.since.IsZero() {
		o.since = now
	}
}

func (o *leaseObserver) pause(now time.Time) {
	if !o.since.IsZero() {
		o.watched += now.Sub(o.since)
	}
	o.since = time.Time{}
}

func (o *leaseObserver) resume(now time.Time) {
	o.pause(now)
	o.since = now
}

// left is how long the version has to be watched further before a Lease of that
// duration expires; false without a watch.
func (o *leaseObserver) left(duration time.Duration, now time.Time) (time.Duration, bool) {
	if o.since.IsZero() {
		return 0, false
	}
	return duration - o.watched - now.Sub(o.since), true
}
