package recordstore

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// Beside writes ConfigMaps that belong to a run and are not part of its record: its header owns them, so that they are
// deleted with it, and they have a MAC.
type Beside struct {
	// Key is the key of the records.
	Key recordformat.Key

	objects objects
	owner   metav1.OwnerReference
}

// Beside reads the header of a run, which may be in progress, and the key of the records. The error is a
// *record.NotFoundError for a run without a record, and an *record.UnauthenticError without the key, since what is written
// could not be verified.
func (s *Store) Beside(ctx context.Context, id string) (*Beside, error) {
	header, err := s.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	loaded, err := s.Key(ctx)
	if err != nil {
		return nil, err
	}
	id = header.Labels[record.Label]
	if loaded.Key == nil {
		return nil, &record.UnauthenticError{ID: id, Authentication: loaded.Without}
	}
	held := func(context.Context) error { return nil } // what is beside a record is not held
	return &Beside{
		Key: loaded.Key, objects: objects{store: s, owned: held, id: id, key: loaded},
		owner: metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: header.Name, UID: header.UID},
	}, nil
}

// Run is the ID of the run.
func (b *Beside) Run() string { return b.objects.id }

// Write writes a ConfigMap, also over one of its name.
func (b *Beside) Write(ctx context.Context, object *corev1.ConfigMap) error {
	_, err := b.objects.put(ctx, b.owned(object), nil)
	return err
}

// Change writes the ConfigMap that change returns of the authentic one of that name, which is nil for none; nothing
// where it returns nil. It is called again where another client has changed the ConfigMap meanwhile.
func (b *Beside) Change(ctx context.Context, name string, change func(found *corev1.ConfigMap) (*corev1.ConfigMap, error)) error {
	return retry.Do(ctx, func(ctx context.Context) error {
		for range Conflicts {
			found, err := b.objects.store.Object(ctx, name)
			if err != nil {
				return err
			}
			changed, err := change(b.authentic(found))
			if err != nil || changed == nil {
				return err
			}
			if found != nil {
				changed.UID, changed.ResourceVersion = found.UID, found.ResourceVersion
			}
			if _, err := b.objects.send(ctx, b.owned(changed)); !Contested(err) {
				return err
			}
		}
		return retry.Mark(errors.New("another client repeatedly changed it"))
	})
}

// authentic is the object, if its MAC is that of a ConfigMap beside the record.
func (b *Beside) authentic(object *corev1.ConfigMap) *corev1.ConfigMap {
	if object == nil || b.objects.key.Verify(object, b.objects.id, b.owner.UID).State != record.Authentic {
		return nil
	}
	return object
}

func (b *Beside) owned(object *corev1.ConfigMap) *corev1.ConfigMap {
	object.Namespace, object.OwnerReferences = record.Namespace, []metav1.OwnerReference{b.owner}
	return object
}

// VerifyBeside verifies a ConfigMap beside the record of a run, by the header that it states as its owner.
func VerifyBeside(object *corev1.ConfigMap, id string, loaded recordformat.LoadedKey) record.Authentication {
	if len(object.OwnerReferences) != 1 {
		return recordformat.Unauthentic(object.Name, fmt.Sprintf("has %d owners", len(object.OwnerReferences)))
	}
	return loaded.Verify(object, id, object.OwnerReferences[0].UID)
}
