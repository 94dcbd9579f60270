package snapshot

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
)

// maxObjects bounds the objects of one resource: ten times as many as the nodes that
// Kubernetes supports, and more than of any other resource that is read.
const maxObjects = 50_000

// list reads all pages of a list; keep drops the fields of an object that are not
// kept. More than maxObjects are an error, since a part of them would look like all.
func list[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}](ctx context.Context, page pager.ListPageFunc, keep func(P)) ([]T, error) {
	var all []T
	err := each(ctx, page, func(object P) error {
		trim(object)
		keep(object)
		all = append(all, *object)
		return nil
	})
	return all, err
}

// listAs is list for an API without a typed client: every object is decoded as a T.
// One that cannot be is an error that names it.
func listAs[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, keep func(*T)) ([]T, error) {
	return listPages(ctx, client, resource, 0, func(object *T) bool {
		keep(object)
		return true
	})
}

// listPages is listAs with pages of that size (0: the default); it keeps the objects for which keep is true.
func listPages[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, size int64, keep func(*T) bool) ([]T, error) {
	page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if size > 0 {
			options.Limit = size
		}
		return client.Resource(resource).List(ctx, options)
	}
	var all []T
	err := each(ctx, page, func(object *unstructured.Unstructured) error {
		trim(object)
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
			return fmt.Errorf("%s %s/%s cannot be decoded: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
		}
		if keep(&typed) {
			all = append(all, typed)
		}
		return nil
	})
	return all, err
}

func each[P any](ctx context.Context, page pager.ListPageFunc, do func(P) error) error {
	pages := pager.New(page)
	pages.PageBufferSize = 1
	count := 0
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, ok := item.(P)
		if !ok {
			return fmt.Errorf("the list has a %T", item)
		}
		if count++; count > maxObjects {
			return fmt.Errorf("the list has more than %d objects", maxObjects)
		}
		return do(object)
	})
}

// trim drops fields of an object that no check reads.
func trim(object metav1.Object) {
	if !judgedByWriters(object) {
		object.SetManagedFields(nil)
	}
	annotations := object.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	object.SetAnnotations(annotations)
}

// judgedByWriters is true for an object of which checks read who has written it: see PausedBy and HandMade.
func judgedByWriters(object metav1.Object) bool {
	of, ok := object.(*unstructured.Unstructured)
	return ok && slices.Contains([]string{"MachineConfigPool", "SecurityContextConstraints", "NetworkPolicy", "ResourceQuota", "LimitRange"}, of.GetKind())
}
