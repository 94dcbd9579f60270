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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// responseFraction is the fraction of a Lease's duration within which the API server
// has to respond for its response to prove that the Lease was not renewed.
const responseFraction = 3

// Follow watches a run; id is as for Get. It calls each, one call at a time, with the
// current record: first, and then with new results or another holder. It returns the
// record when the run has ended.
//
// The error is ErrAbandoned, with the current record, when the run has no holder: its
// Lease was released or deleted, or was not renewed for its duration, by the monotonic
// clock of this machine, while it was watched. Begin of this Store then takes the run
// over, unless another process does first.
func (r *Runs) Follow(ctx context.Context, id string, each func(record.Record)) (record.Record, error) {
	return r.follow(ctx, id, each, false)
}

// Unheld returns nil if no process holds a run: it is not recorded, it has ended, or its holder is gone, which takes
// until its Lease expires. It returns a *HeldError as soon as the holder renews the Lease.
func (r *Runs) Unheld(ctx context.Context, id string) error {
	_, err := r.follow(ctx, id, func(record.Record) {}, true)
	if _, unknown := errors.AsType[*record.NotFoundError](err); unknown || errors.Is(err, ErrAbandoned) {
		return nil
	}
	if held, ok := errors.AsType[*HeldError](err); ok {
		return held
	}
	return err
}

// follow is Follow; with untilRenewed the renewal of the Lease ends it as a *HeldError.
func (r *Runs) follow(ctx context.Context, id string, each func(record.Record), untilRenewed bool) (record.Record, error) {
	if !record.IsID(id) {
		object, err := r.records.Find(ctx, id)
		if err != nil {
			return record.Record{}, err
		}
		id = object.Labels[record.Label]
	}
	watching, fail := context.WithCancelCause(ctx)
	f := &follower{
		runs: r, id: id, reader: recordstore.NewReader(r.records), each: each, record: record.Record{Intent: record.Intent{ID: id}},
		changed: make(chan struct{}, 1), fail: fail, untilRenewed: untilRenewed,
	}
	var watches sync.WaitGroup
	defer watches.Wait()
	defer fail(nil)
	synced := []cache.DoneChecker{
		f.watch(watching, &watches, &corev1.ConfigMap{}, f.headers()),
		f.watch(watching, &watches, &coordinationv1.Lease{}, f.leases()),
	}
	if !cache.WaitFor(watching, "", synced...) {
		return f.record, fmt.Errorf("could not watch run %s: %w", id, context.Cause(watching))
	}
	err := f.follow(watching)
	switch {
	case errors.Is(err, errEnded):
		return f.record, nil
	case watching.Err() != nil:
		return f.record, fmt.Errorf("could not follow run %s: %w", id, context.Cause(watching))
	}
	return f.record, err
}

// errEnded means that the run has ended, and its record is complete.
var errEnded = errors.New("the run has ended")

type follower struct {
	runs   *Runs
	id     string
	reader *recordstore.Reader
	each   func(record.Record)
	// record is the last read record, of the known version of the header.
	record record.Record
	known  version
	fail   context.CancelCauseFunc
	// untilRenewed is true where the renewal of the Lease is the end.
	untilRenewed bool

	// changed has a value when a following field has changed.
	changed  chan struct{}
	mutex    sync.Mutex
	header   *corev1.ConfigMap
	lease    *coordinationv1.Lease
	observer leaseObserver
}

// headers watches the header, which changes with every result.
func (f *follower) headers() *cache.ListWatch {
	name := fields.OneTermEqualSelector("metadata.name", recordformat.HeaderName(f.id)).String()
	maps := f.runs.records.Maps()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = name
			listed, err := maps.List(ctx, options)
			return listed, f.check(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = name
			events, err := maps.Watch(ctx, options)
			return events, f.check(err)
		},
	}
}

func (f *follower) leases() *cache.ListWatch {
	run := labels.Set{record.Label: f.id}.String()
	leases := f.runs.records.Leases()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			f.setWatching((*leaseObserver).pause)
			options.LabelSelector = run
			listed, err := leases.List(ctx, options)
			return listed, f.check(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			f.setWatching((*leaseObserver).pause)
			options.LabelSelector = run
			events, err := leases.Watch(ctx, options)
			if err == nil {
				f.setWatching((*leaseObserver).resume)
			}
			return events, f.check(err)
		},
	}
}

// watch starts a watch, which lasts until ctx is done.
func (f *follower) watch(ctx context.Context, watches *sync.WaitGroup, object runtime.Object, source *cache.ListWatch) cache.DoneChecker {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(source, f.runs.client),
		ObjectType:    object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    f.update,
			UpdateFunc: func(_, object any) { f.update(object) },
			DeleteFunc: f.remove,
		},
	})
	watches.Go(func() { informer.RunWithContext(ctx) })
	return informer.HasSyncedChecker()
}

// check ends the watches if the user may not watch.
func (f *follower) check(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		f.fail(err)
	}
	return err
}

func (f *follower) setWatching(change func(*leaseObserver, time.Time)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(&f.observer, time.Now())
	f.notify()
}

func (f *follower) update(object any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch object := object.(type) {
	case *corev1.ConfigMap:
		f.header = object
		if f.foreign(object) {
			f.header = nil
		}
	case *coordinationv1.Lease:
		if f.untilRenewed && renews(f.lease, object) {
			f.fail(&HeldError{Run: f.id, Holder: recordstore.HolderOf(object)})
		}
		f.lease = object
		f.observer.observe(versionOf(object), time.Now())
	}
	f.notify()
}

// renews is true for a Lease that its holder has renewed.
func renews(before, after *coordinationv1.Lease) bool {
	holder := recordstore.HolderOf(after)
	return before != nil && holder != "" && holder == recordstore.HolderOf(before) && !before.Spec.RenewTime.Equal(after.Spec.RenewTime)
}

// foreign is true for the header of another run, whose ID has the same first digits.
// A header whose label was removed is not foreign.
func (f *follower) foreign(header *corev1.ConfigMap) bool {
	id := header.Labels[record.Label]
	return id != "" && id != f.id
}

func (f *follower) remove(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch object.(type) {
	case *corev1.ConfigMap:
		f.header = nil
	case *coordinationv1.Lease:
		f.lease = nil
	}
	f.notify()
}

func (f *follower) notify() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// untilChange waits without a timeout.
const untilChange time.Duration = -1

// follow evaluates the state after every change, until the run has ended.
func (f *follower) follow(ctx context.Context) error {
	for {
		wait, err := f.evaluate(ctx)
		if err != nil {
			return err
		}
		if err := f.wait(ctx, wait); err != nil {
			return err
		}
	}
}

func (f *follower) wait(ctx context.Context, duration time.Duration) error {
	var over <-chan time.Time
	if duration != untilChange {
		timer := time.NewTimer(duration)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.changed:
	case <-over:
	}
	return nil
}

// evaluate reports changes, and returns how long to wait for the next.
func (f *follower) evaluate(ctx context.Context) (time.Duration, error) {
	f.mutex.Lock()
	header, lease := f.header, f.lease
	f.mutex.Unlock()
	before, holder := f.known, f.record.Holder
	if header != nil && (recordstore.HolderOf(lease) == "" || !unreadable(header)) {
		if err := f.read(ctx, header); err != nil {
			return 0, err
		}
	}
	f.record.Holder = recordstore.HolderOf(lease)
	if f.known != before || f.known != (version{}) && f.record.Holder != holder {
		f.each(f.record)
	}
	if f.record.Holder == "" {
		return untilChange, f.unheld(ctx)
	}
	return f.checkLease(ctx, lease)
}

// unreadable is true for a header that another client has damaged. Its holder will write it again.
func unreadable(header *corev1.ConfigMap) bool {
	_, err := recordformat.Parse(header)
	return err != nil && !errors.As(err, new(*record.FormatError))
}

func (f *follower) read(ctx context.Context, header *corev1.ConfigMap) error {
	if versionOf(header) == f.known {
		return nil
	}
	if unreadable(header) && !recordformat.FromLabels(header).Phase.Final() {
		return nil // the next holder will write it again
	}
	found, err := f.reader.Read(ctx, header)
	if err != nil {
		return err
	}
	f.record, f.known = found, versionOf(header)
	if found.Phase.Final() {
		return errEnded
	}
	return nil
}

// unheld verifies that the run has no holder: the holder writes the end before it
// deletes the Lease, and another process may have acquired that since.
func (f *follower) unheld(ctx context.Context) error {
	header, err := f.runs.records.Object(ctx, recordformat.HeaderName(f.id))
	if err != nil {
		return fmt.Errorf("could not read the record of run %s: %w", f.id, err)
	}
	if header != nil && f.foreign(header) {
		header = nil
	}
	if header != nil {
		if err := f.read(ctx, header); err != nil {
			return err
		}
	}
	found, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.LeaseList, error) {
		return f.runs.records.Leases().List(ctx, metav1.ListOptions{LabelSelector: labels.Set{record.Label: f.id}.String()})
	})
	switch {
	case err != nil:
		return fmt.Errorf("could not read the lease of run %s: %w", f.id, err)
	case len(found.Items) > 0 && recordstore.HolderOf(&found.Items[0]) != "":
		return nil // the watch is going to report the holder
	case len(found.Items) == 0 && header == nil:
		return &record.NotFoundError{ID: f.id}
	}
	return ErrAbandoned
}

// checkLease returns how long the Lease is valid; ErrAbandoned if it has expired.
func (f *follower) checkLease(ctx context.Context, lease *coordinationv1.Lease) (time.Duration, error) {
	duration := durationOf(lease)
	f.mutex.Lock()
	left, watching := f.observer.left(duration, time.Now())
	f.mutex.Unlock()
	if !watching {
		return untilChange, nil
	}
	if left > 0 {
		return left, nil
	}
	// The watched API server may hang.
	quick, cancel := context.WithTimeout(ctx, duration/responseFraction)
	defer cancel()
	found, err := f.runs.records.Leases().Get(quick, lease.Name, metav1.GetOptions{})
	if err == nil && versionOf(found) == versionOf(lease) {
		f.runs.expired.add(found)
		return 0, ErrAbandoned
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.observer.restart(time.Now())
	return duration, nil
}
