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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/retry"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// errVanished means that an existing object of the name was deleted before it was
// read.
var errVanished = errors.New("an object of that name existed and has just been deleted")

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
	// End has deleted, present those that Resume has found; by the ID of the run.
	created, ended, present objectSets
	// guards has the state of each guard by the ID of the run.
	guards sync.Map
}

// objectSets are sets of objects by the ID of a run.
type objectSets map[string]map[preflight.Object]bool

// New returns a Launcher. The clients should have no rate limit
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface, objects metadata.Interface) *Launcher {
	return &Launcher{
		client: client, metadata: objects, starting: make(chan struct{}, maxParallel),
		created: objectSets{}, ended: objectSets{}, present: objectSets{},
	}
}

// Created returns the objects that this Launcher has created or adopted for a run,
// sorted. The pods, which Kubernetes creates, are not included.
func (l *Launcher) Created(runID string) []preflight.Object {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(l.created[runID]), compareObjects)
}

// note adds an object to one of the sets.
func (l *Launcher) note(sets objectSets, runID string, object preflight.Object) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if sets[runID] == nil {
		sets[runID] = map[preflight.Object]bool{}
	}
	sets[runID][object] = true
}

// Resume lists the objects that another runner has created for a run, with one
// request per kind, so that Validate, Guard and Prepare send no request for each.
// It is optional: existing objects are adopted without it.
func (l *Launcher) Resume(ctx context.Context, runID string) error {
	var listed []remains
	err := retry.Do(ctx, func(ctx context.Context) (err error) {
		listed, err = l.listAll(ctx, metav1.ListOptions{LabelSelector: labels.Set{label.Run: runID}.String()})
		return err
	})
	if err != nil {
		return fmt.Errorf("could not list the objects of run %s: %w", runID, err)
	}
	for _, found := range listed {
		for _, object := range found.objects {
			if found.kind.name == podKind || object.GetDeletionTimestamp() != nil {
				continue
			}
			l.note(l.created, runID, found.kind.object(object))
			l.note(l.present, runID, found.kind.object(object))
		}
	}
	return nil
}

// isPresent is true for an object that Resume has found.
func (l *Launcher) isPresent(k kind, object payload.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.present[object.GetLabels()[label.Run]][k.object(object)]
}

// Prepare creates the supporting objects of the plan. Objects that a killed
// runner of the same run has created are adopted. The error names every object
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
// created. It retries, until ctx is done, while the API server is unreachable or
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

// End deletes the Job of one check with its pods: the Job exists until they are
// gone, which End does not wait for. No error means that the Job is gone or
// terminating. It retries like Start.
func (l *Launcher) End(ctx context.Context, check Check) error {
	k, err := kindOf(check.Job)
	if err != nil {
		return err
	}
	l.forget(check.Job)
	// Cleanup has this permission already, delete would be another.
	selection := metav1.ListOptions{
		LabelSelector: labels.Set{label.Run: check.Job.Labels[label.Run]}.String(),
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, check.Job.Name).String(),
	}
	err = retry.Do(ctx, func(ctx context.Context) error {
		return l.objects(k, check.Job.Namespace).DeleteCollection(ctx, foreground(), selection)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("could not delete %s: %w", referenceTo(check.Job), err)
	}
	l.note(l.ended, check.Job.Labels[label.Run], k.object(check.Job))
	return nil
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
	err = retry.Do(ctx, func(ctx context.Context) error {
		return l.orAdopt(ctx, k, object, l.post(ctx, k, object, metav1.CreateOptions{}))
	})
	if err != nil {
		return fmt.Errorf("could not create %s: %w", referenceTo(object), err)
	}
	l.note(l.created, object.GetLabels()[label.Run], k.object(object))
	return nil
}

// orAdopt returns the error of a request to create an object; nil if the object
// exists and belongs to the run. Admission precedes the check for an existing
// object: a quota may be used up by the object itself.
func (l *Launcher) orAdopt(ctx context.Context, k kind, object payload.Object, rejection error) error {
	if rejection == nil || retry.Temporary(rejection) {
		return rejection
	}
	err := l.adopt(ctx, k, object)
	if err == nil || retry.Temporary(err) && !errors.Is(err, errVanished) || apierrors.IsAlreadyExists(rejection) {
		return err
	}
	return rejection
}

// adopt returns nil if the existing object of the name belongs to the run and is
// not being deleted.
func (l *Launcher) adopt(ctx context.Context, k kind, object payload.Object) error {
	found, err := l.objects(k, object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return retry.Mark(errVanished)
	case err != nil:
		return err
	case found.GetLabels()[label.Run] != object.GetLabels()[label.Run]:
		return errors.New("an object of that name exists and does not belong to this run")
	case found.GetDeletionTimestamp() != nil:
		return errors.New("this run had created it already, and it is being deleted")
	}
	return nil
}
