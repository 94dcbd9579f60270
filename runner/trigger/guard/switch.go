package guard

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

// Switch is one way to have CVO honor verdicts. It has no state but its objects.
type Switch struct {
	objects owned.Objects
	now     func() time.Time
	build   builder
}

// builder makes the content of the objects for a state that is valid. The present content
// is nil where the object does not exist.
type builder func(state State, present []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error)

// objectsOf are the objects of a switch in the order in which they are applied.
func objectsOf(name string, client dynamic.Interface, objects ...owned.Object) owned.Objects {
	return owned.Objects{Switch: name, Client: client, All: objects}
}

// Name is "alert", "clusterOperator" or "admission".
func (s *Switch) Name() string { return s.objects.Switch }

// Apply makes the objects, or changes them to this state, by server-side apply. The same
// state changes nothing. Verdicts that have expired are left out; call Apply again when
// one expires. Verdicts that are not valid are an error, and so is an object with the
// name of one of the switch that does not have its label; it is not changed. The
// namespace of the objects must exist.
func (s *Switch) Apply(ctx context.Context, state State) error {
	if err := Check(state.Verdicts); err != nil {
		return err
	}
	present, err := s.objects.Read(ctx)
	if err != nil {
		return err
	}
	contents, err := s.build(state, present, s.now())
	if err != nil {
		return err
	}
	return s.objects.Apply(ctx, contents)
}

// Remove deletes the objects, those that guard first, and returns those that it has
// deleted. It is complete when the error is nil, and may be repeated. An object without
// the label of the switch is an error; it is not deleted, and neither is any other.
func (s *Switch) Remove(ctx context.Context) ([]preflight.Object, error) {
	return s.objects.Remove(ctx)
}

// List returns the objects of the switch that exist, in the order in which they are
// applied.
func (s *Switch) List(ctx context.Context) ([]preflight.Object, error) { return s.objects.List(ctx) }
