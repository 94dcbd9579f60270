package inventory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Set is a set of objects of runs, with their UIDs.
type Set struct {
	mutex sync.Mutex
	// objects are by the ID of the run.
	objects map[string]map[preflight.Object]types.UID
}

func newSet() *Set { return &Set{objects: map[string]map[preflight.Object]types.UID{}} }

// Add adds an object of a run.
func (s *Set) Add(run string, object preflight.Object, uid types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.objects[run] == nil {
		s.objects[run] = map[preflight.Object]types.UID{}
	}
	s.objects[run][object] = uid
}

// Delete removes an object of a run.
func (s *Set) Delete(run string, object preflight.Object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.objects[run], object)
}

// UID returns the UID of an object of a run; false if it is not in the set.
func (s *Set) UID(run string, object preflight.Object) (types.UID, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	uid, found := s.objects[run][object]
	return uid, found
}

// Of returns the objects of a run, sorted.
func (s *Set) Of(run string) []preflight.Object {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(s.objects[run]), Compare)
}

// HasUID reports whether an object of a run has one of the UIDs.
func (s *Set) HasUID(run string, uids ...types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, uid := range s.objects[run] {
		if slices.Contains(uids, uid) {
			return true
		}
	}
	return false
}

// Compare orders objects by kind, namespace and name.
func Compare(a, b preflight.Object) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Watch watches the objects of a kind in all namespaces of the runs.
func (o *Objects) Watch(ctx context.Context, k Kind, options metav1.ListOptions) (watch.Interface, error) {
	from, err := o.metadataOf(k, o.within(k)).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	t := &trimming{from: from, trimmed: make(chan watch.Event), stopped: make(chan struct{})}
	go t.forward()
	return t, nil
}

// trimming is a watch whose objects are trimmed. It ends when it is stopped, also if nothing receives the present
// event; that of watch.Filter does not.
type trimming struct {
	from    watch.Interface
	trimmed chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements watch.Interface.
func (t *trimming) ResultChan() <-chan watch.Event { return t.trimmed }

// Stop implements watch.Interface.
func (t *trimming) Stop() {
	t.once.Do(func() { close(t.stopped) })
	t.from.Stop()
}

func (t *trimming) forward() {
	defer close(t.trimmed)
	for event := range t.from.ResultChan() {
		if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
			trim(object)
		}
		select {
		case t.trimmed <- event:
		case <-t.stopped:
			return
		}
	}
}

// trim removes the large fields that are not used, since thousands of objects may
// be held. The annotations of a bookmark are kept: they end the initial events.
func trim(object *metav1.PartialObjectMetadata) {
	object.ManagedFields = nil
	if object.Name != "" {
		object.Annotations = nil
	}
}
