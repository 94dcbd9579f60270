package commands_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/test/exit"
)

// startJob creates the Job of a check of a run. The Job controller ignores it, so only the
// test creates its pods.
func (w world) startJob(runID, check string) *batchv1.Job {
	w.t.Helper()
	name := "quorum-" + jobplan.Run{ID: runID}.Suffix()
	job, err := w.client.BatchV1().Jobs("default").Create(w.t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{label.Run: runID}, Annotations: map[string]string{label.AnnotationCheck: check},
		},
		Spec: batchv1.JobSpec{ManagedBy: new("example.com/test"), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label.Run: runID}},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "check", Image: "registry/check"}},
			},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// expectCanceled verifies the phase of a recorded run.
func (w world) expectCanceled(id string) {
	w.t.Helper()
	found, err := w.records.Get(w.t.Context(), id)
	if err != nil || found.Phase != record.Canceled || found.CompletionTime.IsZero() {
		w.t.Errorf("the record of run %s is in phase %s, completed at %s; want Canceled: %v", id, found.Phase, found.CompletionTime, err)
	}
}

func TestCancelOfAHeldRun(t *testing.T) {
	w := newWorld(t)
	held := w.begin('1', "Etcd.Quorum")
	holding, release := held.Hold(t.Context())
	var holder sync.WaitGroup
	defer holder.Wait()
	holder.Go(func() {
		defer release()
		<-holding.Done()
		if !errors.Is(context.Cause(holding), lease.ErrCanceled) {
			t.Errorf("the cause is %v, want %v", context.Cause(holding), lease.ErrCanceled)
		}
		if err := held.Finish(context.WithoutCancel(holding), record.Ending{Phase: record.Canceled, Verdict: verdict.Verdict{Decision: verdict.Undecided}}); err != nil {
			t.Error(err)
		}
	})
	got := w.call(exit.Ready, "cancel", held.Record().ID[:8])
	w.contains(got.Stdout, "run "+held.Record().ID+" was canceled; 0 of 1 check had reported\n")
	w.contains(got.Stderr, "cancellation of run "+held.Record().ID+" was requested: waiting for its end\n")
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
			err := w.client.CoordinationV1().Leases(record.Namespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			held := w.begin('1', "Etcd.Quorum", "Etcd.Space")
			held.Put(result("Etcd.Space", newFinding("Etcd.Space", preflight.Pass, "Passed")))
			job := w.startJob(held.Record().ID, "Etcd.Quorum")
			leave(w, held)
			got := w.call(exit.Ready, "cancel", held.Record().ID)
			w.contains(got.Stderr, "run "+held.Record().ID+" was abandoned: ending it here\n", " of run "+held.Record().ID+"\n")
			w.expectCanceled(held.Record().ID)
			if _, err := w.client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{}); err == nil {
				t.Errorf("Job %s still exists", job.Name)
			}
			w.contains(w.call(exit.Interrupted, "status", held.Record().ID).Stdout, "UNDECIDED  ", "The run was canceled.", "UNKNOWN  Etcd.Quorum", " (Canceled)\n")
		})
	}
}

func TestCancelOfAHolderThatDoesNotEnd(t *testing.T) {
	w := newWorld(t)
	held := w.begin('1', "Etcd.Quorum")
	_, release := held.Hold(t.Context())
	defer release()
	got := w.call(exit.Failed, "cancel", held.Record().ID, "--timeout", "2s")
	w.contains(got.Stderr, "error: the run did not end within 2s; the cancellation stays requested")
}
