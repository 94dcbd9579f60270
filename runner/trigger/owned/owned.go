// Package owned answers: how are the few objects of a switch created, changed and removed?
//
// [Objects] are the objects of one switch: [Objects.Apply] writes their content, and [Objects.Remove] deletes them. An
// object with the same name but without the label of the switch belongs to another client: it is neither changed nor
// deleted.
package owned

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/access"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// FieldManager owns the fields of the objects.
	FieldManager = "update-preflight"
	// Label is on every object of a switch; its value is the name of the switch.
	Label = "preflight.openshift.io/switch"
)

// Objects are the objects of a switch. They are its only state.
type Objects struct {
	// Switch is the name of the switch.
	Switch string
	Client dynamic.Interface
	// All are in the order in which they are applied; they are removed in reverse.
	All []Object
	// Optional is true if nothing is applied when the API of an object is not served.
	Optional bool
}

// Read reads all objects. An object that does not exist, or whose API is not served, is nil.
func (o Objects) Read(ctx context.Context) ([]*unstructured.Unstructured, error) {
	present := make([]*unstructured.Unstructured, len(o.All))
	for i, object := range o.All {
		found, err := o.resource(object).Get(ctx, object.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return nil, fmt.Errorf("could not read %s: %w", object.Describe(), err)
		case found.GetLabels()[Label] != o.Switch:
			return nil, fmt.Errorf("%s does not belong to the preflight: it does not have the label %s=%s", object.Describe(), Label, o.Switch)
		default:
			present[i] = found
		}
	}
	return present, nil
}

// Apply gives the objects these contents, in the same order, by server-side apply. The same content changes nothing.
// Call Read first: Apply also changes the object of another client.
func (o Objects) Apply(ctx context.Context, contents []*unstructured.Unstructured) error {
	for i, content := range contents {
		err := o.apply(ctx, o.All[i], content)
		if o.Optional && apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("could not apply %s: %w", o.All[i].Describe(), err)
		}
	}
	return nil
}

// Remove deletes the objects, and returns those that it has deleted. It is complete when
// the error is nil, and may be repeated. An object without the label of the switch is an
// error; it is not deleted, and neither is any other.
func (o Objects) Remove(ctx context.Context) ([]preflight.Object, error) {
	present, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	var deleted []preflight.Object
	for i, object := range slices.Backward(o.All) {
		if present[i] == nil {
			continue
		}
		uid := present[i].GetUID()
		err := o.resource(object).Delete(ctx, object.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return deleted, fmt.Errorf("could not delete %s: %w", object.Describe(), err)
		}
		deleted = append(deleted, object.named())
	}
	return deleted, nil
}

// List returns the objects that exist, in the order in which they are applied.
func (o Objects) List(ctx context.Context) ([]preflight.Object, error) {
	present, err := o.Read(ctx)
	if err != nil {
		return nil, err
	}
	var found []preflight.Object
	for i, object := range o.All {
		if present[i] != nil {
			found = append(found, object.named())
		}
	}
	return found, nil
}

func (o Objects) apply(ctx context.Context, object Object, content *unstructured.Unstructured) error {
	labels := map[string]string{Label: o.Switch}
	maps.Copy(labels, content.GetLabels())
	content.SetLabels(labels)
	data, err := content.MarshalJSON()
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: FieldManager, Force: new(true), FieldValidation: metav1.FieldValidationStrict}
	if _, err := o.resource(object).Patch(ctx, object.Name, types.ApplyPatchType, data, options); err != nil || !object.HasStatus {
		return err
	}
	_, err = o.resource(object).Patch(ctx, object.Name, types.ApplyPatchType, data, options, "status")
	return err
}

func (o Objects) resource(object Object) dynamic.ResourceInterface {
	resources := o.Client.Resource(object.GroupVersionResource)
	if object.Namespace == "" {
		return resources
	}
	return resources.Namespace(object.Namespace)
}

// Object names an object of a switch.
type Object struct {
	schema.GroupVersionResource

	// Namespace is empty for an object of the cluster.
	Kind, Namespace, Name string
	// HasStatus is true when the content has a status, which is applied by its own
	// request.
	HasStatus bool
}

func (o Object) named() preflight.Object {
	return preflight.Object{APIVersion: o.GroupVersion().String(), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// Describe names the object in a message.
func (o Object) Describe() string {
	if o.Namespace == "" {
		return fmt.Sprintf("%s %q", o.Kind, o.Name)
	}
	return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
}

// Requests are those with these verbs for the object and, to patch, for its status.
func (o Object) Requests(verbs ...string) []access.Request {
	like := access.Request{Group: o.Group, Resource: o.Resource, Namespace: o.Namespace, Name: o.Name}
	requests := access.Verbs(like, verbs...)
	for _, request := range requests {
		if request.Verb == "patch" && o.HasStatus {
			request.Subresource = "status"
			requests = append(requests, request)
		}
	}
	return requests
}

// Parse parses the contents of objects, one manifest each.
func Parse(manifests ...string) ([]*unstructured.Unstructured, error) {
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
