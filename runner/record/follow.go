package record

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

	"github.com/openshift/update-preflight/collector/retry"
)

// prompt is the part of a Lease's duration within which an API server has to
// answer for its answer to tell that the Lease was not renewed.
const prompt = 3

// Follow watches a run; id is as for Get. It calls each, one at a time, with the
// record so far: at first, and whenever there are new results or another holder.
// It returns the record when the run has ended.
//
// The error is ErrAbandoned, with the record so far, when nobody holds the run:
// its Lease is given up or gone, or has not been renewed for its duration by the
// monotonic clock of this machine while the API server could be watched. Then a
// Begin with this Store takes it over, unless somebody else has by then.
func (s *Store) Follow(ctx context.Context, id string, each func(Record)) (Record, error) {
	if !isID(id) {
		object, err := s.find(ctx, id)
		if err != nil {
			return Record{}, err
		}
		id = object.Labels[labelRecord]
	}
	watching, fail := context.WithCancelCause(ctx)
	f := &follower{
		store: s, id: id, reader: reader{get: s.get}, each: each, record: Record{Intent: Intent{ID: id}},
		changed: make(chan struct{}, 1), fail: fail,
	}
	var watches sync.WaitGroup
	defer watches.Wait()
	defer fail(nil)
	synced := []cache.DoneChecker{
		f.watch(watching, &watches, &corev1.ConfigMap{}, f.heads()),
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

// follower follows one run.
type follower struct {
	store  *Store
	id     string
	reader reader
	each   func(Record)
	// record is what was last read, of that version of the head.
	record Record
	known  version
	// fail ends the watches, for a cause that no waiting makes better.
	fail context.CancelCauseFunc

	// changed has a value when there is something new in what follows.
	changed chan struct{}
	mutex   sync.Mutex
	head    *corev1.ConfigMap
	lease   *coordinationv1.Lease
	vigil   vigil
}

// heads watches the head, which the results are in or which changes with them.
func (f *follower) heads() *cache.ListWatch {
	name := fields.OneTermEqualSelector("metadata.name", headName(f.id)).String()
	maps := f.store.maps()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = name
			listed, err := maps.List(ctx, options)
			return listed, f.judge(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = name
			events, err := maps.Watch(ctx, options)
			return events, f.judge(err)
		},
	}
}

// leases watches the Lease, and tells the vigil when it does.
func (f *follower) leases() *cache.ListWatch {
	run := labels.Set{labelRecord: f.id}.String()
	leases := f.store.leases()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			f.sight((*vigil).lose)
			options.LabelSelector = run
			listed, err := leases.List(ctx, options)
			return listed, f.judge(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			f.sight((*vigil).lose)
			options.LabelSelector = run
			events, err := leases.Watch(ctx, options)
			if err == nil {
				f.sight((*vigil).regain)
			}
			return events, f.judge(err)
		},
	}
}

// watch starts a watch, which goes on until ctx is done.
func (f *follower) watch(ctx context.Context, watches *sync.WaitGroup, object runtime.Object, source *cache.ListWatch) cache.DoneChecker {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(source, f.store.client),
		ObjectType:    object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    f.seen,
			UpdateFunc: func(_, object any) { f.seen(object) },
			DeleteFunc: f.gone,
		},
	})
	watches.Go(func() { informer.RunWithContext(ctx) })
	return informer.HasSyncedChecker()
}

// judge ends the following where the user may not watch.
func (f *follower) judge(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		f.fail(err)
	}
	return err
}

func (f *follower) sight(change func(*vigil, time.Time)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(&f.vigil, time.Now())
	f.wake()
}

func (f *follower) seen(object any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch object := object.(type) {
	case *corev1.ConfigMap:
		f.head = object
		if f.others(object) {
			f.head = nil
		}
	case *coordinationv1.Lease:
		f.lease = object
		f.vigil.see(versionOf(object), time.Now())
	}
	f.wake()
}

// others is true for the head of another run, whose ID begins alike. One that
// somebody has taken the label off is not.
func (f *follower) others(head *corev1.ConfigMap) bool {
	id := head.Labels[labelRecord]
	return id != "" && id != f.id
}

func (f *follower) gone(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch object.(type) {
	case *corev1.ConfigMap:
		f.head = nil
	case *coordinationv1.Lease:
		f.lease = nil
	}
	f.wake()
}

func (f *follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// forever is for as long as nothing changes.
const forever time.Duration = -1

// follow looks at what there is, again and again, until it has the end.
func (f *follower) follow(ctx context.Context) error {
	for {
		wait, err := f.look(ctx)
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
	if duration != forever {
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

// look tells what is new, and returns for how long to wait for more.
func (f *follower) look(ctx context.Context) (time.Duration, error) {
	f.mutex.Lock()
	head, lease := f.head, f.lease
	f.mutex.Unlock()
	before, holder := f.known, f.record.Holder
	if head != nil && (holderOf(lease) == "" || !spoilt(head)) {
		if err := f.read(ctx, head); err != nil {
			return 0, err
		}
	}
	f.record.Holder = holderOf(lease)
	if f.known != before || f.known != (version{}) && f.record.Holder != holder {
		f.each(f.record)
	}
	if f.record.Holder == "" {
		return forever, f.unheld(ctx)
	}
	return f.guard(ctx, lease)
}

// spoilt is true for a head that somebody has made unreadable. Its holder will
// write it again.
func spoilt(head *corev1.ConfigMap) bool {
	_, err := parse(head)
	return err != nil && !errors.As(err, new(*FormatError))
}

// read reads a new version of the record.
func (f *follower) read(ctx context.Context, head *corev1.ConfigMap) error {
	if versionOf(head) == f.known {
		return nil
	}
	if spoilt(head) && !outline(head).Phase.final() {
		return nil // whoever takes it over will write it again
	}
	record, err := readWith(ctx, &f.reader, head)
	if err != nil {
		return err
	}
	f.record, f.known = record, versionOf(head)
	if record.Phase.final() {
		return errEnded
	}
	return nil
}

// unheld makes sure that nobody holds the run: its holder writes the end before
// the Lease goes, and somebody may have taken that since.
func (f *follower) unheld(ctx context.Context) error {
	head, err := f.store.get(ctx, headName(f.id))
	if err != nil {
		return fmt.Errorf("could not read the record of run %s: %w", f.id, err)
	}
	if head != nil && f.others(head) {
		head = nil
	}
	if head != nil {
		if err := f.read(ctx, head); err != nil {
			return err
		}
	}
	found, err := retry.Get(ctx, func(ctx context.Context) (*coordinationv1.LeaseList, error) {
		return f.store.leases().List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelRecord: f.id}.String()})
	})
	switch {
	case err != nil:
		return fmt.Errorf("could not see who holds run %s: %w", f.id, err)
	case len(found.Items) > 0 && holderOf(&found.Items[0]) != "":
		return nil // the watch is about to tell
	case len(found.Items) == 0 && head == nil:
		return &NotFoundError{ID: f.id}
	}
	return ErrAbandoned
}

// guard returns how long the Lease is good for, unless that is over.
func (f *follower) guard(ctx context.Context, lease *coordinationv1.Lease) (time.Duration, error) {
	duration := durationOf(lease)
	f.mutex.Lock()
	left, sighted := f.vigil.left(duration, time.Now())
	f.mutex.Unlock()
	if !sighted {
		return forever, nil
	}
	if left > 0 {
		return left, nil
	}
	// What was watched may be an API server that hangs.
	quick, cancel := context.WithTimeout(ctx, duration/prompt)
	defer cancel()
	found, err := f.store.leases().Get(quick, lease.Name, metav1.GetOptions{})
	if err == nil && versionOf(found) == versionOf(lease) {
		f.store.noteDead(found)
		return 0, ErrAbandoned
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.vigil.restart(time.Now())
	return duration, nil
}

// durationOf is how long the Lease is good for without being renewed, within the
// bounds that there are for it.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return defaultLeaseDuration
	}
	return max(minLeaseDuration, min(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, maxLeaseDuration))
}
