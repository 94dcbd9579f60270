package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/insist"
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

	mutex sync.Mutex
	// created is what was created, by the ID of the run.
	created map[string][]preflight.Object
}

// New makes a Launcher. The client should have no rate limit of its own
// (rest.Config.QPS -1): the requests of a run are few and bounded.
func New(client kubernetes.Interface) *Launcher {
	return &Launcher{client: client, kinds: kindsOf(client), created: map[string][]preflight.Object{}}
}

// Created is what this Launcher has created for a run, sorted. The pods, which
// Kubernetes makes of Jobs, are not among it.
func (l *Launcher) Created(runID string) []preflight.Object {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	created := slices.Clone(l.created[runID])
	slices.SortFunc(created, compareObjects)
	return created
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
	return l.create(ctx, check.Job)
}

func (l *Launcher) create(ctx context.Context, object payload.Object) error {
	k, err := l.kindOf(object)
	if err != nil {
		return err
	}
	err = insist.On(ctx, func(ctx context.Context) error {
		err := k.create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return l.adopt(ctx, k, object)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("could not create %s: %w", referenceTo(object), err)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	run := object.GetLabels()[LabelRun]
	l.created[run] = append(l.created[run], k.object(object))
	return nil
}

// adopt takes over an object of this run. One of the same name that is not this
// run's, or is on its way out, is an error.
func (l *Launcher) adopt(ctx context.Context, k kind, object payload.Object) error {
	found, err := k.get(ctx, object.GetNamespace(), object.GetName())
	switch {
	case apierrors.IsNotFound(err):
		return insist.Again(errVanished)
	case err != nil:
		return err
	case found.GetLabels()[LabelRun] != object.GetLabels()[LabelRun]:
		return errors.New("there is one of that name which does not belong to this run")
	case found.GetDeletionTimestamp() != nil:
		return errors.New("this run had created it already, and it is being deleted")
	}
	return nil
}
