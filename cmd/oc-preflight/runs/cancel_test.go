package runs_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/records"
)

func TestCancelOfAHeldRun(t *testing.T) {
	w := newWorld(t)
	held := w.Begin('1', "Etcd.Quorum")
	holding, release := held.Hold(t.Context())
	var holder sync.WaitGroup
	defer holder.Wait()
	holder.Go(func() {
		defer release()
		<-holding.Done()
		if !errors.Is(context.Cause(holding), lease.ErrCanceled) {
			t.Errorf("the cause is %v, want %v", context.Cause(holding), lease.ErrCanceled)
		}
		if err := held.Finish(context.WithoutCancel(holding),
			record.Ending{Phase: record.Canceled, Verdict: verdict.Verdict{Decision: verdict.Undecided}}); err != nil {
			t.Error(err)
		}
	})
	got := w.call(exit.Ready, "cancel", held.Record().ID[:8])
	w.contains(got.Stdout, "run "+held.Record().ID+" was canceled; 0 of 1 check had reported\n")
	w.contains(got.Stderr, "cancellation of run "+held.Record().ID+" was requested: waiting for it to end\n")
	w.expectCanceled(held.Record().ID)
	w.contains(w.call(exit.Failed, "cancel", held.Record().ID).Stderr, "has ended in phase Canceled", "oc preflight status "+held.Record().ID)
	// Its holder recorded no report: status makes it from the results.
	w.contains(w.call(exit.Interrupted, "status", held.Record().ID).Stdout, "The run was canceled.", "UNKNOWN  Etcd.Quorum", " (Canceled)\n")
}

// Cancel deletes the Jobs of a run whose holder was killed or has detached.
func TestCancelEndsAnAbandonedRun(t *testing.T) {
	for name, leave := range map[string]func(world, *lease.Held){
		"Detached": func(w world, held *lease.Held) {
			if err := held.Detach(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		},
		"Killed": func(world, *lease.Held) {},
		"WithoutLease": func(w world, _ *lease.Held) {
			err := w.Client.CoordinationV1().Leases(record.Namespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			held := w.Begin('1', "Etcd.Quorum", "Etcd.Space")
			held.Put(records.Result("Etcd.Space", records.Passed("Etcd.Space")))
			job := w.StartJob(held.Record().ID, "Etcd.Quorum")
			leave(w, held)
			got := w.call(exit.Ready, "cancel", held.Record().ID)
			w.contains(got.Stderr, "run "+held.Record().ID+" was abandoned: ending it here\n", " of run "+held.Record().ID+"\n")
			w.expectCanceled(held.Record().ID)
			if _, err := w.Client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{}); err == nil {
				t.Errorf("Job %s still exists", job.Name)
			}
			w.contains(w.call(exit.Interrupted, "status", held.Record().ID).Stdout, "UNDECIDED  ", "The run was canceled.", "UNKNOWN  Etcd.Quorum",
				" (Canceled)\n")
		})
	}
}

func TestCancelOfAHolderThatDoesNotEnd(t *testing.T) {
	w := newWorld(t)
	held := w.Begin('1', "Etcd.Quorum")
	_, release := held.Hold(t.Context())
	defer release()
	got := w.call(exit.Failed, "cancel", held.Record().ID, "--timeout", "2s")
	w.contains(got.Stderr, "error: the run did not end within 2s; the cancellation stays requested")
}
