package recordstore

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

type objects struct {
	store *Store
	// owned returns ErrTakenOver if another process holds the run.
	owned func(context.Context) error
	id    string
	key   recordformat.LoadedKey
}

// put overwrites the object of that name, unless another process holds the run. A
// deleted object is created again if gone is nil; otherwise gone is returned.
func (o *objects) put(ctx context.Context, object *corev1.ConfigMap, gone error) (*corev1.ConfigMap, error) {
	saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		for range Conflicts {
			saved, err := o.send(ctx, object)
			if !Contested(err) {
				return saved, err
			}
			if err := o.rebase(ctx, object); err != nil {
				return nil, err
			}
			if object.UID == "" && gone != nil {
				return nil, gone
			}
		}
		return nil, retry.Mark(errors.New("another client repeatedly changed it"))
	})
	if err != nil && !errors.Is(err, ErrTakenOver) && !errors.Is(err, errGone) {
		return nil, fmt.Errorf("could not write %s of the record: %w", object.Name, err)
	}
	return saved, err
}

func (o *objects) send(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	o.key.Key.Seal(object, o.id)
	if object.ResourceVersion == "" {
		return o.store.Maps().Create(ctx, object, metav1.CreateOptions{})
	}
	return o.store.Maps().Update(ctx, object, metav1.UpdateOptions{})
}

// rebase sets the object up to replace the existing one.
func (o *objects) rebase(ctx context.Context, object *corev1.ConfigMap) error {
	if err := o.owned(ctx); err != nil {
		return err
	}
	found, err := o.store.Maps().Get(ctx, object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		object.UID, object.ResourceVersion = "", ""
		return nil
	case err != nil:
		return err
	}
	object.UID, object.ResourceVersion = found.UID, found.ResourceVersion
	return nil
}

// ErrTakenOver means that another process holds the run.
var ErrTakenOver = errors.New("the run was taken over by another process")
