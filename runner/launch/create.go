package launch

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

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
		return errors.Join(altered, l.remove(ctx, k, object, uid, foreground()))
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
