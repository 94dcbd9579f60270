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

	"github.com/openshift/update-preflight/collector/retry"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// errVanished means that an object was in the way, and has just gone.
var errVanished = errors.New("there was one of that name, which has just gone")

// parallel bounds the requests that are under way at one time.
const parallel = 32

// Launcher takes plans to one cluster.
type Launcher struct {
	client kubernetes.Interface
	kinds  []kind
	// starting bounds the Jobs that are being created at one time: thousands of
	// requests at once take memory here, and no less time there.
	starting chan struct{}

	mutex sync.Mutex
	// created is what was created or adopted, ended what of it End has deleted,
	// present what Resume has found: each by the ID of the run.
	created, ended, present objectSets
}

// objectSets are sets of objects by the ID of a run.
type objectSets map[string]map[preflight.Object]bool

// New makes a Launcher. The client should have no rate limit of its own
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface) *Launcher {
	return &Launcher{client: client, kinds: kindsOf(client), starting: make(chan struct{}, parallel), created: objectSets{}, ended: objectSets{}, present: objectSets{}}
}

// Created is what this Launcher has created for a run or taken over, sorted.
// The pods, which Kubernetes makes of Jobs, are not among it.
func (l *Launcher) Created(runID string) []preflight.Object {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.SortedFunc(maps.Keys(l.created[runID]), compareObjects)
}

// note adds an object to one of the sets that a Launcher has for each run.
func (l *Launcher) note(sets objectSets, runID string, object preflight.Object) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if sets[runID] == nil {
		sets[runID] = map[preflight.Object]bool{}
	}
	sets[runID][object] = true
}

// Resume looks for what another runner has created for a run, with one request
// per kind, so that Validate, Guard and Prepare need not ask about each of these
// objects. It is not needed for them to adopt what is there: it saves requests.
func (l *Launcher) Resume(ctx context.Context, runID string) error {
	var found []remains
	err := retry.Do(ctx, func(ctx context.Context) (err error) {
		found, err = l.listAll(ctx, metav1.ListOptions{LabelSelector: labels.Set{label.Run: runID}.String()})
		return err
	})
	if err != nil {
		return fmt.Errorf("could not see what run %s has in the cluster: %w", runID, err)
	}
	for _, there := range found {
		for _, object := range there.objects {
			if there.kind.name == podKind || object.GetDeletionTimestamp() != nil {
				continue
			}
			l.note(l.created, runID, there.kind.object(object))
			l.note(l.present, runID, there.kind.object(object))
		}
	}
	return nil
}

// there is true for an object that Resume has found.
func (l *Launcher) there(k kind, object payload.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.present[object.GetLabels()[label.Run]][k.object(object)]
}

// Prepare creates the supporting objects of the plan. What a killed run of the
// same ID has left is taken over. The error names every object that could not
// be created.
func (l *Launcher) Prepare(ctx context.Context, plan Plan) error {
	// A binding is refused to most users unless its role is there.
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
	questions := make([]func() error, len(objects))
	for i, object := range objects {
		questions[i] = func() error { return l.create(ctx, object) }
	}
	return errors.Join(askAll(questions)...)
}

// askAll calls all functions, at most parallel at one time, and returns what
// they returned, in their order.
func askAll(questions []func() error) []error {
	answers := make([]error, len(questions))
	slots := make(chan struct{}, parallel)
	var pending sync.WaitGroup
	for i, question := range questions {
		slots <- struct{}{}
		pending.Go(func() {
			defer func() { <-slots }()
			answers[i] = question()
		})
	}
	pending.Wait()
	return answers
}

// Start creates the Job of one check, or takes over the one that this run had
// already created. It tries again, until ctx is done, while the API server
// cannot be reached or has no time. Explain makes a finding of its errors.
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

// End deletes the Job of one check, and its pods with it: the Job is there until
// they are gone, which End does not wait for. No error means that it is there no
// more, or about to go. It tries again like Start.
func (l *Launcher) End(ctx context.Context, check Check) error {
	k, err := l.kindOf(check.Job)
	if err != nil {
		return err
	}
	l.forget(check.Job)
	// What cleans up may delete one too: no permission more is needed.
	only := metav1.ListOptions{
		LabelSelector: labels.Set{label.Run: check.Job.Labels[label.Run]}.String(),
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, check.Job.Name).String(),
	}
	err = retry.Do(ctx, func(ctx context.Context) error { return k.remove(ctx, check.Job.Namespace, foreground(), only) })
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("could not delete %s: %w", referenceTo(check.Job), err)
	}
	l.note(l.ended, check.Job.Labels[label.Run], k.object(check.Job))
	return nil
}

// forget has an object looked for again.
func (l *Launcher) forget(object payload.Object) {
	if k, err := l.kindOf(object); err == nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.present[object.GetLabels()[label.Run]], k.object(object))
	}
}

func (l *Launcher) create(ctx context.Context, object payload.Object) error {
	k, err := l.kindOf(object)
	if err != nil {
		return err
	}
	if l.there(k, object) {
		return nil
	}
	err = retry.Do(ctx, func(ctx context.Context) error {
		return l.orAdopt(ctx, k, object, k.create(ctx, object, metav1.CreateOptions{}))
	})
	if err != nil {
		return fmt.Errorf("could not create %s: %w", referenceTo(object), err)
	}
	l.note(l.created, object.GetLabels()[label.Run], k.object(object))
	return nil
}

// orAdopt is the error of a request to create an object; none where the object
// is there and this run's. Admission comes before the API server looks whether
// there is one of the name: the quota of a namespace may be used up by just the
// object that is asked for.
func (l *Launcher) orAdopt(ctx context.Context, k kind, object payload.Object, refusal error) error {
	if refusal == nil || retry.Temporary(refusal) {
		return refusal
	}
	err := l.adopt(ctx, k, object)
	if err == nil || retry.Temporary(err) && !errors.Is(err, errVanished) || apierrors.IsAlreadyExists(refusal) {
		return err
	}
	return refusal
}

// adopt takes over an object of this run. One of the same name that is not this
// run's, or is on its way out, is an error.
func (l *Launcher) adopt(ctx context.Context, k kind, object payload.Object) error {
	found, err := k.get(ctx, object.GetNamespace(), object.GetName())
	switch {
	case apierrors.IsNotFound(err):
		return retry.Mark(errVanished)
	case err != nil:
		return err
	case found.GetLabels()[label.Run] != object.GetLabels()[label.Run]:
		return errors.New("there is one of that name which does not belong to this run")
	case found.GetDeletionTimestamp() != nil:
		return errors.New("this run had created it already, and it is being deleted")
	}
	return nil
}
