package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
)

// Cleanup deletes everything that carries the label of the run, wherever it is,
// and waits until it is gone, pods included. It needs nothing but the ID, so it
// works for runs whose runner was killed. It is bounded by ctx: give it one of
// its own, since that of an interrupted run is done. What is left then is
// returned with the error.
func (l *Launcher) Cleanup(ctx context.Context, runID string) ([]preflight.Object, error) {
	if runID == "" {
		return nil, errors.New("cleaning up needs the ID of a run")
	}
	selection := metav1.ListOptions{LabelSelector: labels.Set{LabelRun: runID}.String()}
	left := make([][]preflight.Object, len(l.kinds))
	questions := make([]func() error, len(l.kinds))
	for i, k := range l.kinds {
		questions[i] = func() (err error) {
			left[i], err = l.clean(ctx, k, selection)
			return err
		}
	}
	if err := errors.Join(askAll(questions)...); err != nil {
		return slices.Concat(left...), fmt.Errorf("could not delete everything of run %s: %w", runID, err)
	}
	return nil, nil
}

// Runs returns the IDs of all runs that have objects in the cluster, sorted:
// those on their way, those that were kept, and what crashed ones left.
func (l *Launcher) Runs(ctx context.Context) ([]string, error) {
	runs := make([][]string, len(l.kinds))
	questions := make([]func() error, len(l.kinds))
	for i, k := range l.kinds {
		questions[i] = func() error {
			listed, err := k.list(ctx, metav1.ListOptions{LabelSelector: LabelRun})
			if err != nil {
				return fmt.Errorf("could not list %ss: %w", k.name, err)
			}
			return meta.EachListItem(listed, func(object runtime.Object) error {
				item, err := meta.Accessor(object)
				if err == nil {
					runs[i] = append(runs[i], item.GetLabels()[LabelRun])
				}
				return err
			})
		}
	}
	err := errors.Join(askAll(questions)...)
	found := slices.Concat(runs...)
	slices.Sort(found)
	return slices.Compact(found), err
}

// clean deletes what is selected of one kind and waits until it is gone.
func (l *Launcher) clean(ctx context.Context, k kind, selection metav1.ListOptions) ([]preflight.Object, error) {
	listed, err := k.list(ctx, selection)
	if err != nil {
		return nil, fmt.Errorf("could not list %ss: %w", k.name, err)
	}
	found := remains{kind: k, objects: map[string]payload.Object{}}
	if err := meta.EachListItem(listed, found.add); err != nil {
		return nil, fmt.Errorf("could not read the list of %ss: %w", k.name, err)
	}
	if len(found.objects) == 0 {
		return nil, nil
	}
	for _, namespace := range found.namespaces() {
		if err := k.remove(ctx, namespace, foreground(), selection); err != nil && !apierrors.IsNotFound(err) {
			return found.names(), fmt.Errorf("could not delete %ss in namespace %q: %w", k.name, namespace, err)
		}
	}
	if err := found.wait(ctx, l.client, selection); err != nil {
		return found.names(), fmt.Errorf("%d %ss are still there: %w", len(found.objects), k.name, err)
	}
	return nil, nil
}

// foreground has an object stay until what it owns is gone.
func foreground() metav1.DeleteOptions {
	policy := metav1.DeletePropagationForeground
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}

// remains are the objects of one kind that are not gone yet.
type remains struct {
	kind    kind
	objects map[string]payload.Object
}

func (r remains) add(object runtime.Object) error {
	item, ok := object.(payload.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	r.objects[item.GetNamespace()+"/"+item.GetName()] = item
	return nil
}

func (r remains) namespaces() []string {
	var namespaces []string
	for _, object := range r.objects {
		if r.ownDeletion(object) {
			namespaces = append(namespaces, object.GetNamespace())
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// ownDeletion is false for pods that go with their Job. Only those that have
// lost it are to be deleted themselves.
func (r remains) ownDeletion(object payload.Object) bool {
	return r.kind.name != podKind || metav1.GetControllerOfNoCopy(object) == nil
}

// wait returns when nothing remains. It lists and watches, through restarts of
// the API server too.
func (r remains) wait(ctx context.Context, api kubernetes.Interface, selection metav1.ListOptions) error {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selection.LabelSelector
			return r.kind.list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selection.LabelSelector
			return r.kind.watch(ctx, options)
		},
	}, api)
	gone := func(store cache.Store) (bool, error) {
		clear(r.objects)
		for _, item := range store.List() {
			if object, ok := item.(payload.Object); ok {
				r.objects[object.GetNamespace()+"/"+object.GetName()] = object
			}
		}
		return len(r.objects) == 0, nil
	}
	_, err := watchtools.UntilWithSync(ctx, source, r.any(), gone, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(payload.Object)
		if ok && event.Type == watch.Deleted {
			delete(r.objects, object.GetNamespace()+"/"+object.GetName())
		}
		return len(r.objects) == 0, nil
	})
	return err
}

// any is an object of the kind.
func (r remains) any() runtime.Object {
	for _, object := range r.objects {
		return object
	}
	return nil
}

// names says what remains, and has the same order each time.
func (r remains) names() []preflight.Object {
	var names []preflight.Object
	for _, object := range r.objects {
		names = append(names, preflight.Object{
			APIVersion: r.kind.version, Kind: r.kind.name, Namespace: object.GetNamespace(), Name: object.GetName(),
		})
	}
	slices.SortFunc(names, func(a, b preflight.Object) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return names
}
