package inventory

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch watches the objects of a kind in all namespaces of the runs.
func (o *Objects) Watch(ctx context.Context, k Kind, options metav1.ListOptions) (watch.Interface, error) {
	from, err := o.metadataOf(k, o.within(k)).Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	t := &trimming{from: from, trimmed: make(chan watch.Event), stopped: make(chan struct{})}
	go t.forward()
	return t, nil
}

// trimming is a watch whose objects are trimmed. It ends when it is stopped, also if nothing receives the present
// event; that of watch.Filter does not.
type trimming struct {
	from    watch.Interface
	trimmed chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements watch.Interface.
func (t *trimming) ResultChan() <-chan watch.Event { return t.trimmed }

// Stop implements watch.Interface.
func (t *trimming) Stop() {
	t.once.Do(func() { close(t.stopped) })
	t.from.Stop()
}

func (t *trimming) forward() {
	defer close(t.trimmed)
	for event := range t.from.ResultChan() {
		if object, ok := event.Object.(*metav1.PartialObjectMetadata); ok {
			trim(object)
		}
		select {
		case t.trimmed <- event:
		case <-t.stopped:
			return
		}
	}
}

// trim removes the large fields that are not used, since thousands of objects may
// be held. The annotations of a bookmark are kept: they end the initial events.
func trim(object *metav1.PartialObjectMetadata) {
	object.ManagedFields = nil
	if object.Name != "" {
		object.Annotations = nil
	}
}
