package recordstore

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/runner/record"
)

// Watch calls changed for each record and for each change of one, one call at a time,
// until ctx is done. The error is that of a user who may not watch. Leases are not watched:
// their holders renew them every few seconds.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	watching, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	check := func(err error) error {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			fail(err)
		}
		return err
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = record.Label
			listed, err := s.Maps().List(ctx, options)
			return listed, check(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = record.Label
			events, err := s.Maps().Watch(ctx, options)
			return events, check(err)
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(source, s.client),
		ObjectType:    &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		},
	})
	informer.RunWithContext(watching)
	if ctx.Err() == nil {
		return fmt.Errorf("could not watch the records: %w", context.Cause(watching))
	}
	return nil
}
