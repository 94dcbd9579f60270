// Package cleanup answers: are all objects of a run deleted?
//
// [Run] deletes them, given only the ID of the run, and returns the [Removal]; [Runs] returns the runs that have
// objects.
//
// An object belongs to a run if it has the run's label and a name with the run's suffix: the label can be added to any
// object, the suffix cannot. Objects with only the label are never deleted. A later Run deletes objects that were
// created with a name of the run, even if another client created them.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// Removal is the result of Cleanup. Its lists are sorted.
type Removal struct {
	// Deleted are the objects that existed and are gone, Left those that still exist.
	Deleted, Left []preflight.Object
	// Foreign are objects that have the label of the run and are not of the run. They were not deleted.
	Foreign []preflight.Object
	// Unseen are the kinds that the user may not list, so that objects of the run may
	// exist. Only kinds of the guard are Unseen; other kinds are an error.
	Unseen []string
}

// maxRounds bounds how often Cleanup deletes again what was created in the meantime.
const maxRounds = 3

// Run deletes all objects of the run, in all namespaces of the runs, and waits until they are gone, pods included; the
// guard is deleted last. Then it lists all kinds again: no error means that none of the lists had an object of the run.
// Only the ID is required, so that a run whose runner was killed can be cleaned up. Run is bounded by ctx, which must
// not be the context of an interrupted run.
//
// An object of the run has its label and a name with its suffix: a label can be added to any object, but a name cannot
// be changed. An object that differs from the plan does not belong to the run. Each object is deleted by its name and
// UID.
func Run(ctx context.Context, objects *inventory.Objects, runID string) (Removal, error) {
	if runID == "" {
		return Removal{}, errors.New("the ID of the run to clean up is empty")
	}
	s := sweep{
		objects: objects, runID: runID, deleting: make(chan struct{}, inventory.MaxParallel),
		seen: map[preflight.Object]bool{}, foreign: map[preflight.Object]bool{}, unseen: map[string]bool{},
	}
	for _, object := range objects.Ended.Of(runID) {
		s.seen[object] = true
	}
	for range maxRounds {
		if err := s.deleteAll(ctx); err != nil {
			return s.removal(), fmt.Errorf("could not delete all objects of run %s: %w", runID, err)
		}
		if err := s.verify(ctx); err != nil {
			return s.removal(), fmt.Errorf("could not verify that all objects of run %s are gone: %w", runID, err)
		}
		if len(s.left) == 0 {
			return s.removal(), nil
		}
	}
	return s.removal(), fmt.Errorf("could not delete all objects of run %s: deleted objects were created again", runID)
}

// Runs returns the IDs of all runs that have objects in the cluster: runs
// in progress, runs whose objects were kept, and runs that were killed. The value is true for
// a run of a hosted cluster whose guest has the record and the Lease. Kinds of
// the guard that the user may not list are ignored.
func Runs(ctx context.Context, objects *inventory.Objects) (map[string]bool, error) {
	listed, err := listAll(ctx, objects, metav1.ListOptions{LabelSelector: objects.OfAnyRun()})
	runs := map[string]bool{}
	for _, found := range listed {
		for _, object := range found.objects {
			id := object.GetLabels()[label.Run]
			runs[id] = runs[id] || object.GetLabels()[label.ControlPlane] != ""
		}
	}
	return runs, err
}

// listAll lists the selected objects of all kinds, in the order of kinds.
func listAll(ctx context.Context, objects *inventory.Objects, selection metav1.ListOptions) ([]remains, error) {
	kinds := objects.Kinds()
	all := make([]remains, len(kinds))
	requests := make([]func() error, len(all))
	for i, k := range kinds {
		requests[i] = func() (err error) {
			all[i], err = list(ctx, objects, k, selection)
			return err
		}
	}
	return all, errors.Join(inventory.Concurrently(requests)...)
}

func list(ctx context.Context, objects *inventory.Objects, k inventory.Kind, selection metav1.ListOptions) (remains, error) {
	found := remains{kind: k, objects: map[string]metav1.Object{}}
	listed, err := retry.Get(ctx, func(ctx context.Context) (runtime.Object, error) {
		listed, _, err := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.Page(ctx, k, options)
		}).ListWithAlloc(ctx, selection)
		return listed, err
	})
	switch {
	case errors.Is(err, inventory.ErrUnseen):
		found.unseen = true
		return found, nil
	case err != nil:
		return found, fmt.Errorf("could not list %ss: %w", k.Name, err)
	}
	if err := meta.EachListItem(listed, found.add); err != nil {
		return found, fmt.Errorf("could not read the list of %ss: %w", k.Name, err)
	}
	return found, nil
}

type sweep struct {
	objects *inventory.Objects
	runID   string
	// deleting bounds the concurrent requests to delete an object.
	deleting chan struct{}
	// over are the Jobs and pods that need no time to end, as of the present round.
	over over

	mutex         sync.Mutex
	seen, foreign map[preflight.Object]bool
	unseen        map[string]bool
	left          []preflight.Object
}

// belongs is true for an object of the run by its name.
func (s *sweep) belongs(k inventory.Kind, object metav1.Object) bool {
	if uuid.Validate(s.runID) != nil || s.isForeign(object) {
		return false
	}
	if k.Name == inventory.PodKind {
		return ownsignal.PodOfRun(s.runID, object.GetName())
	}
	return ownsignal.OfRun(s.runID, object.GetName())
}

// isForeign is true for an object, or the pod of a Job, that differs from the plan.
func (s *sweep) isForeign(object metav1.Object) bool {
	uids := []types.UID{object.GetUID()}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		uids = append(uids, controller.UID)
	}
	return s.objects.Foreign.HasUID(s.runID, uids...)
}

// list lists the objects of the run, and notes those that have its label only.
func (s *sweep) list(ctx context.Context, k inventory.Kind) (remains, error) {
	found, err := list(ctx, s.objects, k, inventory.OfRun(s.runID))
	if err != nil {
		return found, err
	}
	s.separate(found)
	return found, nil
}

// separate removes the objects that are not of the run.
func (s *sweep) separate(found remains) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for key, object := range found.objects {
		if !s.belongs(found.kind, object) {
			s.foreign[found.kind.Object(object)] = true
			delete(found.objects, key)
		}
	}
}

// deleteAll deletes the objects of the checks, and then the objects of the guard.
func (s *sweep) deleteAll(ctx context.Context) error {
	s.left, s.over = nil, readOver(ctx, s.objects, s.runID)
	for _, guard := range []bool{false, true} {
		var requests []func() error
		for _, k := range s.objects.Kinds() {
			if k.Guard == guard {
				requests = append(requests, func() error { return s.deleteKind(ctx, k) })
			}
		}
		if err := errors.Join(inventory.Concurrently(requests)...); err != nil {
			return err
		}
	}
	return nil
}

// deleteKind deletes the objects of one kind and waits until they are gone. Pods are
// deleted with their Jobs: once the Jobs are terminating and create no more pods. The
// garbage collector would need several requests for each.
func (s *sweep) deleteKind(ctx context.Context, k inventory.Kind) error {
	found, err := s.list(ctx, k)
	if err != nil {
		return err
	}
	s.addSeen(found)
	if err := s.deleteHidden(ctx, k); err != nil || len(found.objects) == 0 {
		return err
	}
	err = s.deleteObjects(ctx, found)
	if err == nil && k.Name == inventory.JobKind {
		err = s.deletePods(ctx)
	}
	if err != nil {
		s.addLeft(found)
		return err
	}
	if err := s.await(ctx, found); err != nil {
		s.addLeft(found)
		return fmt.Errorf("%d %ss still exist, among them %s: %w", len(found.objects), k.Name, found.example(), err)
	}
	return nil
}

// deleteHidden deletes what this process has created of a kind and no list returned, if it exists: its label can be removed.
func (s *sweep) deleteHidden(ctx context.Context, k inventory.Kind) error {
	s.mutex.Lock()
	hidden := slices.DeleteFunc(s.objects.Created.Of(s.runID),
		func(object preflight.Object) bool { return object.Kind != k.Name || s.seen[object] })
	s.mutex.Unlock()
	var requests []func() error
	for _, object := range hidden {
		uid, _ := s.objects.Created.UID(s.runID, object)
		requests = append(requests, func() error {
			return s.objects.Remove(ctx, k, &metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}, uid, inventory.Foreground())
		})
	}
	return errors.Join(inventory.Concurrently(requests)...)
}

func (s *sweep) deletePods(ctx context.Context) error {
	for _, k := range s.objects.Kinds() {
		if k.Name != inventory.PodKind {
			continue
		}
		found, err := s.list(ctx, k)
		if err != nil {
			return err
		}
		s.addSeen(found)
		return s.deleteEach(ctx, k, found.objects)
	}
	return nil
}

// deleteObjects deletes the objects of one kind, except pods that are deleted with their Job.
func (s *sweep) deleteObjects(ctx context.Context, found remains) error {
	direct := maps.Clone(found.objects)
	maps.DeleteFunc(direct, func(_ string, object metav1.Object) bool {
		return found.kind.Name == inventory.PodKind && metav1.GetControllerOfNoCopy(object) != nil
	})
	return s.deleteEach(ctx, found.kind, direct)
}

func (s *sweep) deleteEach(ctx context.Context, k inventory.Kind, objects map[string]metav1.Object) error {
	var requests []func() error
	for _, object := range objects {
		requests = append(requests, func() error {
			s.deleting <- struct{}{}
			defer func() { <-s.deleting }()
			options := inventory.Foreground()
			if s.over[object.GetUID()] {
				options = atOnce()
			}
			return s.objects.Remove(ctx, k, object, object.GetUID(), options)
		})
	}
	failed := slices.DeleteFunc(inventory.Concurrently(requests), func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d %ss: %w", len(failed), len(objects), k.Name, failed[0])
}

// verify lists all kinds again. A kind that cannot be listed is an error if the run created objects of it.
func (s *sweep) verify(ctx context.Context) error {
	all, err := listAll(ctx, s.objects, inventory.OfRun(s.runID))
	if err != nil {
		return err
	}
	created := s.objects.Created.Of(s.runID)
	for _, found := range all {
		s.separate(found)
		s.addSeen(found)
		s.addLeft(found)
		made := slices.ContainsFunc(created, func(object preflight.Object) bool { return object.Kind == found.kind.Name })
		if found.unseen && made {
			return fmt.Errorf("the run created a %s: %w", found.kind.Name, inventory.ErrUnseen)
		}
	}
	return nil
}

func (s *sweep) addSeen(found remains) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, object := range found.names() {
		s.seen[object] = true
	}
	if found.unseen {
		s.unseen[found.kind.Name] = true
	}
}

func (s *sweep) addLeft(found remains) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.left = append(s.left, found.names()...)
}

func (s *sweep) removal() Removal {
	for _, object := range s.left {
		delete(s.seen, object)
	}
	slices.SortFunc(s.left, inventory.Compare)
	return Removal{
		Deleted: slices.SortedFunc(maps.Keys(s.seen), inventory.Compare), Left: s.left,
		Foreign: slices.SortedFunc(maps.Keys(s.foreign), inventory.Compare), Unseen: slices.Sorted(maps.Keys(s.unseen)),
	}
}

type remains struct {
	kind    inventory.Kind
	objects map[string]metav1.Object
	// unseen is true when the kind cannot be listed.
	unseen bool
}

func (r remains) add(object runtime.Object) error {
	item, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	r.objects[item.GetNamespace()+"/"+item.GetName()] = item
	return nil
}

// example names one of the objects, with the finalizers that delay its deletion.
func (r remains) example() string {
	if len(r.objects) == 0 {
		return "none"
	}
	first := slices.Min(slices.Collect(maps.Keys(r.objects)))
	object := r.objects[first]
	name := inventory.Refer(r.kind.Name, object.GetNamespace(), object.GetName()).String()
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		return name + " with the finalizers " + strings.Join(finalizers, ", ")
	}
	return name
}

// await returns when none of the objects exists. It lists and watches, also through restarts of the API server.
func (s *sweep) await(ctx context.Context, r remains) error {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = inventory.OfRun(s.runID).LabelSelector
			return s.objects.Page(ctx, r.kind, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = inventory.OfRun(s.runID).LabelSelector
			return s.objects.Watch(ctx, r.kind, options)
		},
	}, s.objects.Metadata)
	listed := func(store cache.Store) (bool, error) {
		clear(r.objects)
		for _, item := range store.List() {
			if object, ok := item.(metav1.Object); ok {
				r.objects[object.GetNamespace()+"/"+object.GetName()] = object
			}
		}
		s.separate(r)
		return len(r.objects) == 0, nil
	}
	_, err := watchtools.UntilWithSync(ctx, source, &metav1.PartialObjectMetadata{}, listed, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(metav1.Object)
		if !ok {
			return false, nil
		}
		key := object.GetNamespace() + "/" + object.GetName()
		switch {
		case event.Type == watch.Deleted:
			delete(r.objects, key)
		case r.objects[key] != nil:
			r.objects[key] = object
		}
		return len(r.objects) == 0, nil
	})
	return err
}

func (r remains) names() []preflight.Object {
	var names []preflight.Object
	for _, object := range r.objects {
		names = append(names, r.kind.Object(object))
	}
	return names
}
