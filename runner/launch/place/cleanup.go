package place

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// Removal of the objects of a run in all its places, each list in the order of the places.
type Removal struct {
	// Deleted, Left and Foreign are as in cleanup.Removal.
	Deleted, Left, Foreign []report.Object
	// Unseen are the kinds that the user may not list in some place, sorted.
	Unseen []string
}

// Cleanup deletes all objects of a run in all places, and waits until they are gone (cleanup.Run). The
// error names the places in which they are not.
func Cleanup(ctx context.Context, places []Place, runID string) (Removal, error) {
	removals := make([]cleanup.Removal, len(places))
	requests := make([]func() error, len(places))
	for i, p := range places {
		requests[i] = func() (err error) {
			removals[i], err = cleanup.Run(ctx, p.Objects, runID)
			return p.located(err)
		}
	}
	err := errors.Join(inventory.Concurrently(requests)...)
	var all Removal
	for i, p := range places {
		done := removals[i]
		all.Deleted, all.Left, all.Foreign = append(all.Deleted, p.objects(done.Deleted)...), append(all.Left, p.objects(done.Left)...), append(all.Foreign, p.objects(done.Foreign)...)
		all.Unseen = append(all.Unseen, done.Unseen...)
	}
	slices.Sort(all.Unseen)
	all.Unseen = slices.Compact(all.Unseen)
	return all, err
}

// Runs returns the IDs of all runs that have objects in the places. The value is true for a run of another
// hosted cluster than that of the places, if any: its record and its Lease are in no place (cleanup.Runs).
func Runs(ctx context.Context, places []Place) (map[string]bool, error) {
	all := map[string]bool{}
	for _, p := range places {
		runs, err := cleanup.Runs(ctx, p.Objects)
		if err != nil {
			return nil, p.located(err)
		}
		for id, elsewhere := range runs {
			all[id] = all[id] || elsewhere && p.name() == ""
		}
	}
	return all, nil
}

// Created are the objects that this process has created of a run, in the order of the places.
func Created(places []Place, runID string) []report.Object {
	var all []report.Object
	for _, p := range places {
		all = append(all, p.objects(p.Objects.Created.Of(runID))...)
	}
	return all
}

func (p Place) objects(in []preflight.Object) []report.Object {
	var all []report.Object
	for _, object := range in {
		all = append(all, report.Object{Object: object, Cluster: p.name()})
	}
	return all
}

func (p Place) located(err error) error {
	if err == nil || p.name() == "" {
		return err
	}
	return fmt.Errorf("in the %s cluster: %w", p.name(), err)
}
