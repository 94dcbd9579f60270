package launch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/label"
)

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
	if err := l.remove(ctx, k, check.Job, uid, foreground()); err != nil {
		return err
	}
	l.note(l.ended, check.Job.Labels[label.Run], k.object(check.Job), uid)
	return nil
}

// remove deletes the object with this name and UID. No error means that it is gone or
// terminating; another object of the name is not deleted.
func (l *Launcher) remove(ctx context.Context, k kind, object metav1.Object, uid types.UID, options metav1.DeleteOptions) error {
	options.Preconditions = &metav1.Preconditions{UID: &uid}
	err := retry.Do(ctx, func(ctx context.Context) error {
		return l.objects(k, object.GetNamespace()).Delete(ctx, object.GetName(), options)
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("could not delete %s: %w", reference{k.name, object.GetNamespace(), object.GetName()}, err)
}

// foreground keeps an object until its dependents are gone.
func foreground() metav1.DeleteOptions {
	policy := metav1.DeletePropagationForeground
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}

// atOnce deletes an object that is over, and leaves its dependents, which are deleted by
// themselves, to the garbage collector.
func atOnce() metav1.DeleteOptions {
	policy := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &policy, GracePeriodSeconds: new(int64(0))}
}
