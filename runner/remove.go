package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/cleanup"
)

// The deletion of a run's objects is bounded by removeTimeout, and removeShare
// more for each object: for every Job and its pod, the garbage collector and the
// Job controller make about five requests, and Kubernetes limits each of them to
// 20 a second by default.
const (
	removeTimeout = time.Minute
	removeShare   = time.Second / 4
)

// RemovalError is what could not be deleted of a run.
type RemovalError struct {
	// Run is its ID, Left counts its objects that are still in the cluster.
	Run  string
	Left int
	Err  error
}

// Error implements error.
func (e *RemovalError) Error() string {
	return fmt.Sprintf("%s of run %s left in the cluster: %v", words.Count(e.Left, "object"), e.Run, e.Err)
}

// Unwrap is the cause.
func (e *RemovalError) Unwrap() error { return e.Err }

// remove deletes what the run created. It outlives the cancellation of ctx, so an
// interrupted run leaves nothing behind either.
func (e execution) remove(ctx context.Context) (*report.Removal, error) {
	if !e.creates() || e.options.Keep {
		return nil, nil //nolint:nilnil // nothing was deleted, and nothing was to be
	}
	e.progress.step("deleting the objects of the run")
	limit := removeTimeout + removeShare*time.Duration(len(e.created()))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	done, err := cleanup.Run(ctx, e.objects, e.id)
	if err != nil {
		err = &RemovalError{Run: e.id, Left: len(done.Left), Err: err}
	}
	return removalOf(done), err
}

// creates reports whether the run may have created objects.
func (e execution) creates() bool {
	return e.launcher != nil && (e.options.Images.Pulls() && e.contents.readable() || len(e.planned.Checks) > 0 && e.reused.id == "")
}

// created are the objects that the run has created so far.
func (e execution) created() []finding.Object {
	if e.launcher == nil {
		return []finding.Object{}
	}
	return append([]finding.Object{}, e.objects.Created.Of(e.id)...)
}

func removalOf(done cleanup.Removal) *report.Removal {
	return &report.Removal{Deleted: append([]finding.Object{}, done.Deleted...), Left: append([]finding.Object{}, done.Left...), Foreign: done.Foreign}
}
