package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/openshift/update-preflight/collector/retry"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// Removal is what Cleanup did. Its lists are sorted.
type Removal struct {
	// Deleted was there and is gone, Left is still there.
	Deleted, Left []preflight.Object
	// Unseen are kinds of which it is not known whether there is anything of the
	// run, because the user may not look. They are those of the guard, which a
	// run does without where it may not make one.
	Unseen []string
}

// rounds bounds how often Cleanup begins again, when what was under way as it
// began has come since.
const rounds = 3

// Cleanup deletes everything that carries the label of the run, wherever it is,
// and waits until it is gone, pods included; the guard goes last, when nothing
// is left to guard. Then it lists everything once more: no error means that the
// lists were empty. It needs nothing but the ID, so it works for runs whose
// runner was killed. It is bounded by ctx: give it one of its own, since that of
// an interrupted run is done.
func (l *Launcher) Cleanup(ctx context.Context, runID string) (Removal, error) {
	if runID == "" {
		return Removal{}, errors.New("cleaning up needs the ID of a run")
	}
	s := sweep{launcher: l, runID: runID, seen: l.gone(runID), unseen: map[string]bool{}}
	for range rounds {
		if err := s.clean(ctx); err != nil {
			return s.removal(), fmt.Errorf("could not delete everything of run %s: %w", runID, err)
		}
		if err := s.look(ctx); err != nil {
			return s.removal(), fmt.Errorf("could not see whether everything of run %s is gone: %w", runID, err)
		}
		if len(s.left) == 0 {
			return s.removal(), nil
		}
	}
	return s.removal(), fmt.Errorf("could not delete everything of run %s: what was deleted is there again", runID)
}

// gone is what was deleted of a run before its end.
func (l *Launcher) gone(runID string) map[preflight.Object]bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	gone := map[preflight.Object]bool{}
	maps.Copy(gone, l.ended[runID])
	return gone
}

// Runs returns the IDs of all runs that have objects in the cluster, sorted:
// those on their way, those that were kept, and what crashed ones left. Of a
// kind that the user may not look at, nothing is known.
func (l *Launcher) Runs(ctx context.Context) ([]string, error) {
	listed, err := l.listAll(ctx, metav1.ListOptions{LabelSelector: label.Run})
	var runs []string
	for _, found := range listed {
		for _, object := range found.objects {
			runs = append(runs, object.GetLabels()[label.Run])
		}
	}
	slices.Sort(runs)
	return slices.Compact(runs), err
}

// listAll lists what is selected of every kind, in the order of the kinds. The
// error leaves out kinds that the user may not look at.
func (l *Launcher) listAll(ctx context.Context, selection metav1.ListOptions) ([]remains, error) {
	all := make([]remains, len(l.kinds))
	questions := make([]func() error, len(l.kinds))
	for i, k := range l.kinds {
		questions[i] = func() (err error) {
			all[i], err = list(ctx, k, selection)
			return err
		}
	}
	return all, errors.Join(askAll(questions)...)
}

func list(ctx context.Context, k kind, selection metav1.ListOptions) (remains, error) {
	found := remains{kind: k, objects: map[string]payload.Object{}}
	listed, err := retry.Get(ctx, func(ctx context.Context) (runtime.Object, error) {
		listed, _, err := pager.New(k.list).ListWithAlloc(ctx, selection)
		return listed, err
	})
	switch {
	case errors.Is(err, errUnseen):
		found.unseen = true
		return found, nil
	case err != nil:
		return found, fmt.Errorf("could not list %ss: %w", k.name, err)
	}
	if err := meta.EachListItem(listed, found.add); err != nil {
		return found, fmt.Errorf("could not read the list of %ss: %w", k.name, err)
	}
	return found, nil
}

// sweep is one clean-up.
type sweep struct {
	launcher *Launcher
	runID    string

	mutex  sync.Mutex
	seen   map[preflight.Object]bool
	unseen map[string]bool
	left   []preflight.Object
}

func (s *sweep) selection() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: s.runID}.String()}
}

// clean deletes the kinds of the checks, and only when they are gone those of
// their guard.
func (s *sweep) clean(ctx context.Context) error {
	s.left = nil
	for _, guard := range []bool{false, true} {
		var questions []func() error
		for _, k := range s.launcher.kinds {
			if k.guard == guard {
				questions = append(questions, func() error { return s.cleanKind(ctx, k) })
			}
		}
		if err := errors.Join(askAll(questions)...); err != nil {
			return err
		}
	}
	return nil
}

// cleanKind deletes what there is of one kind and waits until it is gone.
func (s *sweep) cleanKind(ctx context.Context, k kind) error {
	found, err := list(ctx, k, s.selection())
	if err != nil {
		return err
	}
	s.note(found)
	if len(found.objects) == 0 {
		return nil
	}
	for _, namespace := range found.namespaces() {
		if err := s.remove(ctx, k, namespace); err != nil {
			s.leave(found)
			return err
		}
	}
	if err := found.wait(ctx, s.launcher.client, s.selection()); err != nil {
		s.leave(found)
		return fmt.Errorf("%d %ss are still there: %w", len(found.objects), k.name, err)
	}
	return nil
}

// remove deletes what there is of one kind in a namespace. An API server gives
// up after a minute, in which it may not get through thousands of objects; then
// it is asked again for the others. Pods go with their Jobs: once these are on
// their way out and make no more of them, one request deletes all pods, for which
// the garbage collector takes several each, and may make few of them a second.
func (s *sweep) remove(ctx context.Context, k kind, namespace string) error {
	for _, each := range s.launcher.kinds {
		if each.name != k.name && (k.name != jobKind || each.name != podKind) {
			continue
		}
		err := retry.Do(ctx, func(ctx context.Context) error {
			return each.remove(ctx, namespace, foreground(), s.selection())
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("could not delete %ss in namespace %q: %w", each.name, namespace, err)
		}
	}
	return nil
}

// look lists everything again. A kind that may not be looked at is no proof for
// what was created of it.
func (s *sweep) look(ctx context.Context) error {
	all, err := s.launcher.listAll(ctx, s.selection())
	if err != nil {
		return err
	}
	created := s.launcher.Created(s.runID)
	for _, found := range all {
		s.note(found)
		s.leave(found)
		made := slices.ContainsFunc(created, func(object preflight.Object) bool { return object.Kind == found.kind.name })
		if found.unseen && made {
			return fmt.Errorf("the run created a %s, and the user may not list them", found.kind.name)
		}
	}
	return nil
}

func (s *sweep) note(found remains) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, object := range found.names() {
		s.seen[object] = true
	}
	if found.unseen {
		s.unseen[found.kind.name] = true
	}
}

func (s *sweep) leave(found remains) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left = append(s.left, found.names()...)
}

func (s *sweep) removal() Removal {
	for _, object := range s.left {
		delete(s.seen, object)
	}
	slices.SortFunc(s.left, compareObjects)
	return Removal{Deleted: slices.SortedFunc(maps.Keys(s.seen), compareObjects), Left: s.left, Unseen: slices.Sorted(maps.Keys(s.unseen))}
}

// foreground has an object stay until what it owns is gone.
func foreground() metav1.DeleteOptions {
	policy := metav1.DeletePropagationForeground
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}

// remains are the objects of one kind that are not gone yet.
type remains struct {
	kind    kind
	objects map[string]payload.Object
	// unseen is true when it is not known what remains.
	unseen bool
}

func (r remains) add(object runtime.Object) error {
	item, ok := object.(payload.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	r.objects[item.GetNamespace()+"/"+item.GetName()] = item
	return nil
}

func (r remains) namespaces() []string {
	var namespaces []string
	for _, object := range r.objects {
		if r.ownDeletion(object) {
			namespaces = append(namespaces, object.GetNamespace())
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// ownDeletion is false for pods that go with their Job. Only those that have
// lost it are to be deleted themselves.
func (r remains) ownDeletion(object payload.Object) bool {
	return r.kind.name != podKind || metav1.GetControllerOfNoCopy(object) == nil
}

// wait returns when nothing remains. It lists and watches, through restarts of
// the API server too.
func (r remains) wait(ctx context.Context, api kubernetes.Interface, selection metav1.ListOptions) error {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selection.LabelSelector
			return r.kind.list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selection.LabelSelector
			return r.kind.watch(ctx, options)
		},
	}, api)
	gone := func(store cache.Store) (bool, error) {
		clear(r.objects)
		for _, item := range store.List() {
			if object, ok := item.(payload.Object); ok {
				r.objects[object.GetNamespace()+"/"+object.GetName()] = object
			}
		}
		return len(r.objects) == 0, nil
	}
	_, err := watchtools.UntilWithSync(ctx, source, r.any(), gone, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(payload.Object)
		if ok && event.Type == watch.Deleted {
			delete(r.objects, object.GetNamespace()+"/"+object.GetName())
		}
		return len(r.objects) == 0, nil
	})
	return err
}

// any is an object of the kind.
func (r remains) any() runtime.Object {
	for _, object := range r.objects {
		return object
	}
	return nil
}

// names says what remains, in no order.
func (r remains) names() []preflight.Object {
	var names []preflight.Object
	for _, object := range r.objects {
		names = append(names, r.kind.object(object))
	}
	return names
}

// object names an object of the kind.
func (k kind) object(object payload.Object) preflight.Object {
	return preflight.Object{APIVersion: k.version, Kind: k.name, Namespace: object.GetNamespace(), Name: object.GetName()}
}

func compareObjects(a, b preflight.Object) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
