package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/retry"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// maxParallel bounds the concurrent requests.
const maxParallel = 32

// Launcher creates and deletes the objects of runs in one cluster. Its methods may
// be called concurrently.
type Launcher struct {
	client   kubernetes.Interface
	metadata metadata.Interface
	// starting bounds the Jobs that are created concurrently: thousands of
	// concurrent requests would use memory without being faster.
	starting chan struct{}

	mutex sync.Mutex
	// created are the objects that were created or adopted, ended those of them that
	// End has deleted, present those that Resume has found, foreign those that differ
	// from the plan; by the ID of the run.
	created, ended, present, foreign objectSets
	// guards has the state of each guard by the ID of the run.
	guards sync.Map
}

// objectSets are sets of objects, with their UIDs, by the ID of a run.
type objectSets map[string]map[preflight.Object]types.UID

// New returns a Launcher. The clients should have no rate limit
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface, objects metadata.Interface) *Launcher {
	return &Launcher{
		client: client, metadata: objects, starting: make(chan struct{}, maxParallel),
		created: objectSets{}, ended: objectSets{}, present: objectSets{}, foreign: objectSets{},
	}
}

// Created returns the objects that this Launcher has created or adopted for a run,
// sorted. The pods, which Kubernetes creates, are not included.
func (l *Launcher) Created(runID string) []preflight.Object {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(l.created[runID]), compareObjects)
}

// UID returns the UID of the Job of a check that this Launcher has created, or
// adopted after comparing it with the plan; empty before. Another Job of that name is
// not the run's.
func (l *Launcher) UID(check Check) types.UID {
	k, err := kindOf(check.Job)
	if err != nil {
		return ""
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.created[check.Job.Labels[label.Run]][k.object(check.Job)]
}

// note adds an object to one of the sets.
func (l *Launcher) note(sets objectSets, runID string, object preflight.Object, uid types.UID) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if sets[runID] == nil {
		sets[runID] = map[preflight.Object]types.UID{}
	}
	sets[runID][object] = uid
}

// isForeign is true for an object, or the pod of a Job, that differs from the plan.
func (l *Launcher) isForeign(runID string, object metav1.Object) bool {
	uids := []types.UID{object.GetUID()}
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		uids = append(uids, controller.UID)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, uid := range l.foreign[runID] {
		if slices.Contains(uids, uid) {
			return true
		}
	}
	return false
}

// isPresent is true for an object that Resume has found.
func (l *Launcher) isPresent(k kind, object payload.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, present := l.present[object.GetLabels()[label.Run]][k.object(object)]
	return present
}

// Prepare creates the supporting objects of the plan. Objects that a killed
// runner of the same run has created are adopted if they equal the plan. The error names every object
// that could not be created.
func (l *Launcher) Prepare(ctx context.Context, plan Plan) error {
	// The API server rejects a binding from most users unless its role exists.
	var roles, bindings []payload.Object
	for _, object := range plan.Supporting {
		if rank(referenceTo(object).kind) > 0 {
			bindings = append(bindings, object)
			continue
		}
		roles = append(roles, object)
	}
	return errors.Join(l.createAll(ctx, roles), l.createAll(ctx, bindings))
}

func (l *Launcher) createAll(ctx context.Context, objects []payload.Object) error {
	requests := make([]func() error, len(objects))
	for i, object := range objects {
		requests[i] = func() error { return l.create(ctx, object) }
	}
	return errors.Join(doAll(requests)...)
}

// doAll calls all functions, at most maxParallel concurrently, and returns their
// errors in the same order.
func doAll(requests []func() error) []error {
	errs := make([]error, len(requests))
	slots := make(chan struct{}, maxParallel)
	var pending sync.WaitGroup
	for i, request := range requests {
		slots <- struct{}{}
		pending.Go(func() {
			defer func() { <-slots }()
			errs[i] = request()
		})
	}
	pending.Wait()
	return errs
}

// Start creates the Job of one check, or adopts the one that this run has already
// created, if it equals the plan. It retries, until ctx is done, while the API server is unreachable or
// overloaded. Explain converts its errors into findings.
func (l *Launcher) Start(ctx context.Context, check Check) error {
	select {
	case l.starting <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("could not create %s: %w", referenceTo(check.Job), ctx.Err())
	}
	defer func() { <-l.starting }()
	l.forget(check.Job)
	return l.create(ctx, check.Job)
}

// End deletes the Job of one check that this Launcher has created or adopted, with
// its pods: the Job exists until they are gone, which End does not wait for. No error
// means that the Job is gone or terminating. It retries like Start.
func (l *Launcher) End(ctx context.Context, check Check) error {
	k, err := kindOf(check.Job)
	if err != nil {
		return err
	}
	l.forget(check.Job)
	uid := l.UID(check)
	if uid == "" {
		return nil
	}
	if err := l.remove(ctx, k, check.Job, uid); err != nil {
		return err
	}
	l.note(l.ended, check.Job.Labels[label.Run], k.object(check.Job), uid)
	return nil
}

// remove deletes the object with this name and UID. No error means that it is gone or
// terminating; another object of the name is not deleted.
func (l *Launcher) remove(ctx context.Context, k kind, object metav1.Object, uid types.UID) error {
	options := foreground()
	options.Preconditions = &metav1.Preconditions{UID: &uid}
	err := retry.Do(ctx, func(ctx context.Context) error {
		return l.objects(k, object.GetNamespace()).Delete(ctx, object.GetName(), options)
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("could not delete %s: %w", reference{k.name, object.GetNamespace(), object.GetName()}, err)
}

// forget removes an object from those that Resume has found.
func (l *Launcher) forget(object payload.Object) {
	if k, err := kindOf(object); err == nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.present[object.GetLabels()[label.Run]], k.object(object))
	}
}

func (l *Launcher) create(ctx context.Context, object payload.Object) error {
	k, err := kindOf(object)
	if err != nil {
		return err
	}
	if l.isPresent(k, object) {
		return nil
	}
	uid, err := retry.Get(ctx, func(ctx context.Context) (types.UID, error) {
		created, err := l.post(ctx, k, object, metav1.CreateOptions{})
		if err != nil {
			return l.orAdopt(ctx, k, object, err)
		}
		return created.GetUID(), rejectAltered(object, created)
	})
	if altered, ok := errors.AsType[*alteredError](err); ok && uid != "" {
		return errors.Join(altered, l.remove(ctx, k, object, uid))
	}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		return foreign
	}
	if err != nil {
		return fmt.Errorf("could not create %s: %w", referenceTo(object), err)
	}
	l.note(l.created, object.GetLabels()[label.Run], k.object(object), uid)
	return nil
}
