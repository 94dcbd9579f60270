package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// FieldManager owns the fields of the objects.
	FieldManager = "update-preflight"
	// Label is on every object of a switch; its value is the name of the switch.
	Label = "preflight.openshift.io/switch"
)

// Switch is one way to have CVO honor verdicts. It has no state but its objects.
type Switch struct {
	name   string
	client dynamic.Interface
	now    func() time.Time
	// objects are in the order in which they are applied; they are removed in reverse.
	objects []object
	// optional is true when nothing is applied where the API of an object is not served.
	optional bool
	build    builder
}

// builder makes the content of the objects for a state that is valid. The present content
// is nil where the object does not exist.
type builder func(state State, present []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error)

// object names an object of a switch.
type object struct {
	schema.GroupVersionResource

	kind, namespace, name string
	// hasStatus is true when the content has a status, which is applied by its own
	// request.
	hasStatus bool
}

func (o object) named() preflight.Object {
	return preflight.Object{APIVersion: o.GroupVersion().String(), Kind: o.kind, Namespace: o.namespace, Name: o.name}
}

func (o object) describe() string {
	if o.namespace == "" {
		return fmt.Sprintf("%s %q", o.kind, o.name)
	}
	return fmt.Sprintf("%s %s/%s", o.kind, o.namespace, o.name)
}

// Name is "alert", "clusterOperator" or "admission".
func (s *Switch) Name() string { return s.name }

// Apply makes the objects, or changes them to this state, by server-side apply. The same
// state changes nothing. Verdicts that have expired are left out; call Apply again when
// one expires. Verdicts that are not valid are an error, and so is an object with the
// name of one of the switch that does not have its label; it is not changed. The
// namespace of the objects must exist.
func (s *Switch) Apply(ctx context.Context, state State) error {
	if err := check(state.Verdicts); err != nil {
		return err
	}
	present, err := s.read(ctx)
	if err != nil {
		return err
	}
	contents, err := s.build(state, present, s.now())
	if err != nil {
		return err
	}
	for i, content := range contents {
		err := s.apply(ctx, s.objects[i], content)
		if s.optional && apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("could not apply %s: %w", s.objects[i].describe(), err)
		}
	}
	return nil
}

// Remove deletes the objects, those that guard first, and returns those that it has
// deleted. It is complete when the error is nil, and may be repeated. An object without
// the label of the switch is an error; it is not deleted, and neither is any other.
func (s *Switch) Remove(ctx context.Context) ([]preflight.Object, error) {
	present, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	var deleted []preflight.Object
	for i, object := range slices.Backward(s.objects) {
		if present[i] == nil {
			continue
		}
		uid := present[i].GetUID()
		err := s.resource(object).Delete(ctx, object.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return deleted, fmt.Errorf("could not delete %s: %w", object.describe(), err)
		}
		deleted = append(deleted, object.named())
	}
	return deleted, nil
}

// List returns the objects of the switch that exist, in the order in which they are
// applied.
func (s *Switch) List(ctx context.Context) ([]preflight.Object, error) {
	present, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	var found []preflight.Object
	for i, object := range s.objects {
		if present[i] != nil {
			found = append(found, object.named())
		}
	}
	return found, nil
}

// read reads all objects; one that does not exist, or whose API does not, is nil.
func (s *Switch) read(ctx context.Context) ([]*unstructured.Unstructured, error) {
	present := make([]*unstructured.Unstructured, len(s.objects))
	for i, object := range s.objects {
		found, err := s.resource(object).Get(ctx, object.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return nil, fmt.Errorf("could not read %s: %w", object.describe(), err)
		case found.GetLabels()[Label] != s.name:
			return nil, fmt.Errorf("%s is not of the preflight: it does not have the label %s=%s", object.describe(), Label, s.name)
		default:
			present[i] = found
		}
	}
	return present, nil
}

func (s *Switch) apply(ctx context.Context, object object, content *unstructured.Unstructured) error {
	content.SetLabels(map[string]string{Label: s.name})
	data, err := content.MarshalJSON()
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: FieldManager, Force: new(true), FieldValidation: metav1.FieldValidationStrict}
	if _, err := s.resource(object).Patch(ctx, object.name, types.ApplyPatchType, data, options); err != nil || !object.hasStatus {
		return err
	}
	_, err = s.resource(object).Patch(ctx, object.name, types.ApplyPatchType, data, options, "status")
	return err
}

func (s *Switch) resource(object object) dynamic.ResourceInterface {
	resources := s.client.Resource(object.GroupVersionResource)
	if object.namespace == "" {
		return resources
	}
	return resources.Namespace(object.namespace)
}

func parse(manifests ...string) ([]*unstructured.Unstructured, error) {
	var parsed []*unstructured.Unstructured
	for _, manifest := range manifests {
		content := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &content.Object); err != nil {
			return nil, err
		}
		parsed = append(parsed, content)
	}
	return parsed, nil
}
