package launch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// Prepare creates the supporting objects of the plan. Objects that a killed
// runner of the same run has created are adopted if they equal the plan. The error names every object
// that could not be created.
func (l *Launcher) Prepare(ctx context.Context, plan jobplan.Plan) error {
	// The API server rejects a binding from most users unless its role exists.
	var roles, bindings []payload.Object
	for _, object := range plan.Supporting {
		if inventory.IsBinding(inventory.ReferenceTo(object).Kind) {
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
		requests[i] = func() error { return l.Create(ctx, object) }
	}
	return errors.Join(inventory.Concurrently(requests)...)
}

// Start creates the Job of one check, or adopts the one that this run has already
// created, if it equals the plan. It retries, until ctx is done, while the API server is unreachable or
// overloaded. Explain converts its errors into findings.
func (l *Launcher) Start(ctx context.Context, check jobplan.Check) error {
	select {
	case l.starting <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("could not create %s: %w", inventory.ReferenceTo(check.Job), ctx.Err())
	}
	defer func() { <-l.starting }()
	l.objects.Forget(check.Job)
	return l.Create(ctx, check.Job)
}

// Create creates one object, or adopts the one of its name if it equals the planned one. It retries like Start.
func (l *Launcher) Create(ctx context.Context, object payload.Object) error {
	k, err := inventory.KindOf(object)
	if err != nil {
		return err
	}
	if l.objects.IsPresent(k, object) {
		return nil
	}
	uid, err := retry.Get(ctx, func(ctx context.Context) (types.UID, error) {
		created, err := l.objects.Post(ctx, k, object, metav1.CreateOptions{})
		if err != nil {
			return l.orAdopt(ctx, k, object, err)
		}
		return created.GetUID(), rejectAltered(object, created)
	})
	if altered, ok := errors.AsType[*alteredError](err); ok && uid != "" {
		return errors.Join(altered, l.objects.Remove(ctx, k, object, uid, inventory.Foreground()))
	}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		return foreign
	}
	if err != nil {
		return fmt.Errorf("could not create %s: %w", inventory.ReferenceTo(object), err)
	}
	l.objects.Created.Add(object.GetLabels()[label.Run], k.Object(object), uid)
	return nil
}

// End deletes the Job of one check that this Launcher has created or adopted, with
// its pods: the Job exists until they are gone, which End does not wait for. No error
// means that the Job is gone or terminating. It retries like Start.
func (l *Launcher) End(ctx context.Context, check jobplan.Check) error {
	k, err := inventory.KindOf(check.Job)
	if err != nil {
		return err
	}
	l.objects.Forget(check.Job)
	uid := l.UID(check)
	if uid == "" {
		return nil
	}
	if err := l.objects.Remove(ctx, k, check.Job, uid, inventory.Foreground()); err != nil {
		return err
	}
	l.objects.Ended.Add(check.Job.Labels[label.Run], k.Object(check.Job), uid)
	return nil
}
