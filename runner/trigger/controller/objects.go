package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// definition is the name of the CustomResourceDefinition of UpdatePreflights.
const definition = ownsignal.Definition

// objects are the UpdatePreflights. Only Reconcile uses them, which is not called
// concurrently.
type objects struct {
	cache  cache.Cache
	logger *slog.Logger
	// watch has each event of a source reconcile.
	watch func(source.Source) error
	// watched is true while the objects are watched, and missing while it is known that
	// the CustomResourceDefinition does not exist.
	watched, missing bool
	// last are the objects of the last list.
	last []v1alpha1.UpdatePreflight
}

// list returns the objects that are not being deleted, or those of the last list with an
// error. It returns none where the CustomResourceDefinition does not exist: its creation
// reconciles.
func (o *objects) list(ctx context.Context) ([]v1alpha1.UpdatePreflight, error) {
	defined := definitions()
	err := o.cache.Get(ctx, client.ObjectKey{Name: definition}, defined)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !defined.DeletionTimestamp.IsZero():
		return nil, o.unwatch(ctx)
	case err != nil:
		return o.last, fmt.Errorf("could not read CustomResourceDefinition %q: %w", definition, err)
	}
	if err := o.read(ctx); err != nil {
		return o.last, err
	}
	return o.last, o.startWatch()
}

// read sets last.
func (o *objects) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all v1alpha1.UpdatePreflightList
	if err := o.cache.List(ctx, &all); err != nil {
		return fmt.Errorf("could not list the UpdatePreflights: %w", err)
	}
	o.last = slices.DeleteFunc(all.Items, func(object v1alpha1.UpdatePreflight) bool {
		return !object.DeletionTimestamp.IsZero() || object.Spec.HostedCluster != nil // those are package hostedruns's
	})
	if len(o.last) > runplan.MaxObjects {
		o.logger.Warn("there are too many UpdatePreflights: the newest have no status", "number", len(o.last), "limit", runplan.MaxObjects)
	}
	return nil
}

// startWatch has each change of a spec or a label reconcile.
func (o *objects) startWatch() error {
	if o.watched {
		return nil
	}
	changed := predicate.Or(
		predicate.TypedGenerationChangedPredicate[*v1alpha1.UpdatePreflight]{}, predicate.TypedLabelChangedPredicate[*v1alpha1.UpdatePreflight]{})
	if err := o.watch(source.Kind(o.cache, &v1alpha1.UpdatePreflight{}, plan[*v1alpha1.UpdatePreflight](), changed)); err != nil {
		return fmt.Errorf("could not watch the UpdatePreflights: %w", err)
	}
	o.watched, o.missing = true, false
	o.logger.Info("watching the UpdatePreflights")
	return nil
}

// unwatch ends the watch of objects that no longer exist.
func (o *objects) unwatch(ctx context.Context) error {
	if !o.missing {
		o.logger.Warn("CustomResourceDefinition does not exist: the controller runs without UpdatePreflights until it is created", "name", definition)
	}
	o.missing = true
	if !o.watched {
		return nil
	}
	o.watched, o.last = false, nil
	return o.cache.RemoveInformer(ctx, &v1alpha1.UpdatePreflight{})
}
