// Package lease answers: which process holds the run in progress of a release?
//
// [New] returns the [Runs] of a cluster. [Runs.Begin] begins a run, which is durable: its record is created before its
// first Job. A Lease names the holder of the run, who renews it. If it is not renewed, another process takes the run
// over, with the same ID and its results: [Runs.Follow] returns when a run has ended or can be taken over.
//
// No local clock is trusted: a Lease expires when it was watched for its duration without a new resourceVersion.
//
// # Leader election
//
// The Lease is not held through k8s.io/client-go/tools/leaderelection, which lacks these properties: a holder keeps the
// run through an outage of the API server of any length, since only another holder ends it (an elector gives up after
// RenewDeadline); time in which a candidate could not watch the Lease does not count towards its expiry (an elector
// counts it, so that candidates can acquire the Lease at the end of an outage, before its holder renews it); the Lease
// carries the run, a nonce that identifies the claim and by which a former holder detects the takeover before it
// repeats a conflicting write, and the request to cancel (a LeaseLock sets labels only); Begin makes one attempt and
// returns the holder (Run blocks until the Lease is acquired); and the end of a run deletes the Lease, with UID and
// resourceVersion as preconditions (an elector only clears the holder).
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
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
	runs := &Runs{
		client: client, records: recordstore.New(client), duration: defaultLeaseDuration,
		expired: expired{versions: map[string]version{}},
	}
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

// Begin creates the run of an intent. If a run of the same release is in progress without a holder, that run is taken
// over instead, with its own ID: its Lease was released or deleted, or Follow of this Store has returned ErrAbandoned
// for it. Begin does not wait for a Lease to expire.
//
// It returns a *BusyError if another process holds the run in progress, or may hold it; a *SelectionError if that run
// has another selection, which is known once its header exists; and a *FormatError if an incompatible version of the
// tool recorded it.
func (r *Runs) Begin(ctx context.Context, intent record.Intent, holder string) (*Held, error) {
	if err := intent.Validate(holder); err != nil {
		return nil, err
	}
	content, err := recordformat.NewHeader(intent)
	if err != nil {
		return nil, err
	}
	for range recordstore.Conflicts {
		var held *Held
		if held, err = r.begin(ctx, content, holder); !errors.Is(err, recordstore.ErrMoved) {
			return held, err
		}
	}
	return nil, fmt.Errorf("could not begin a run: %w", err)
}

func (r *Runs) begin(ctx context.Context, content recordformat.Header, holder string) (*Held, error) {
	intent := content.Record.Intent
	claim := r.newClaim(intent, holder)
	lost, err := r.unfinished(ctx, intent)
	if err != nil {
		return nil, err
	}
	if lost != "" {
		claim.id = lost
	}
	err = claim.create(ctx)
	if apierrors.IsAlreadyExists(err) {
		err = r.takeOver(ctx, claim, intent)
	}
	switch {
	case apierrors.IsConflict(err):
		return nil, recordstore.ErrMoved
	case err != nil:
		return nil, fmt.Errorf("could not hold the run: %w", err)
	}
	held, err := r.open(ctx, claim, content)
	if err != nil {
		return nil, errors.Join(err, held.abandon(ctx))
	}
	return held, nil
}

// unfinished is the ID of the newest run of the release that is in progress by its
// header; empty if there is none. Usually its Lease exists as well.
func (r *Runs) unfinished(ctx context.Context, intent record.Intent) (string, error) {
	headers, err := r.records.Headers(ctx, labels.Set{
		label.Release:     label.ReleaseValue(intent.Target.Digest()),
		record.LabelPhase: string(record.Running),
	}.String())
	if err != nil {
		return "", fmt.Errorf("could not list the runs in progress: %w", err)
	}
	var newest *corev1.ConfigMap
	for i := range headers {
		if record.IsID(headers[i].Labels[record.Label]) && (newest == nil || newest.CreationTimestamp.Before(&headers[i].CreationTimestamp)) {
			newest = &headers[i]
		}
	}
	if newest == nil {
		return "", nil
	}
	id := newest.Labels[record.Label]
	switch active, err := inProgress(newest, intent); {
	case err != nil:
		return "", err
	case !active:
		return "", nil
	}
	return id, nil
}

// inProgress is false if the run has ended by its header. The error is why the intent
// cannot continue the run. An unreadable header counts as in progress.
func inProgress(object *corev1.ConfigMap, intent record.Intent) (bool, error) {
	found, err := recordformat.Parse(object)
	var unknown *record.FormatError
	switch {
	case errors.As(err, &unknown):
		return true, unknown
	case err == nil && found.Record.Phase.Final():
		return false, nil
	case err == nil:
		return true, found.Record.Same(intent)
	}
	return true, nil
}

// takeOver acquires the existing Lease if it has no holder.
func (r *Runs) takeOver(ctx context.Context, claim *claim, intent record.Intent) error {
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return claim.leases.Get(ctx, recordstore.LeaseName(claim.digest), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return recordstore.ErrMoved
	case err != nil:
		return err
	}
	id := lease.Annotations[record.Label]
	if !record.IsID(id) {
		return claim.acquire(ctx, lease) // a Lease without a run
	}
	object, err := r.records.Object(ctx, recordformat.HeaderName(id))
	if err != nil {
		return err
	}
	active := true
	if object != nil {
		if active, err = inProgress(object, intent); err != nil {
			return err
		}
	}
	if !active { // its holder was killed, or is about to delete the Lease
		claim.id = intent.ID
		return claim.acquire(ctx, lease)
	}
	if holder := recordstore.HolderOf(lease); holder != "" && !r.expired.has(lease) {
		return &BusyError{ID: id, Holder: holder}
	}
	claim.id = id
	return claim.acquire(ctx, lease)
}

func (r *Runs) open(ctx context.Context, claim *claim, content recordformat.Header) (*Held, error) {
	begun := claim.id != content.Record.ID
	content.Record.ID = claim.id
	held := &Held{records: r.records, claim: claim, resumed: begun, pending: make(chan struct{}, 1)}
	var err error
	if held.writer, err = recordstore.NewWriter(ctx, r.records, content, claim.owned, claim.nonce); err != nil {
		return held, err
	}
	if !begun {
		// The ID is new, unless a run in progress has the intent.
		created, err := held.writer.Create(ctx)
		if created || err != nil {
			held.record = held.writer.Record()
			return held, err
		}
	}
	results, err := held.writer.Resume(ctx)
	if err != nil {
		return held, err
	}
	held.resumed = true
	held.record = held.writer.Record()
	held.record.Results = results
	return held, nil
}

// abandon releases a Lease whose run could not be opened.
func (h *Held) abandon(ctx context.Context) error {
	if h.resumed {
		return h.claim.release(ctx)
	}
	return h.claim.remove(ctx)
}

// DeleteStaleLease deletes the Lease of a run that has ended, if its holder was killed
// before it deleted the Lease. Begin acquires such a Lease; DeleteStaleLease is for
// callers that begin no run.
func (r *Runs) DeleteStaleLease(ctx context.Context, run record.Record) error {
	if !run.Phase.Final() {
		return fmt.Errorf("run %s has not ended", run.ID)
	}
	lease, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return r.records.Leases().Get(ctx, recordstore.LeaseName(run.Target.Digest()), metav1.GetOptions{})
	})
	if err == nil && lease.Annotations[record.Label] == run.ID {
		err = retry.Do(ctx, func(ctx context.Context) error {
			return r.records.Leases().Delete(ctx, lease.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
			})
		})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a new run may have acquired it
		return nil
	}
	return fmt.Errorf("could not delete the stale lease of run %s: %w", run.ID, err)
}
