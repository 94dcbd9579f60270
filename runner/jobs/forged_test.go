package jobs_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/label"
)

// Names and labels can be copied: only pods of the Job that was created count.
func TestPodsOfOtherJobsDoNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		owners []metav1.OwnerReference
	}{
		"NoOwner":      {"the pod was created by a user", nil},
		"OtherJob":     {"the pod is of another Job of the name", []metav1.OwnerReference{{Kind: "Job", UID: "another", Controller: new(true)}}},
		"NoController": {"an owner that is no controller did not create the pod", []metav1.OwnerReference{{Kind: "Job", UID: "another"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := func(s *simulation, job *batchv1.Job) {
					forged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
						Name: "forged", Namespace: job.Namespace, UID: types.UID(uuid.NewString()), OwnerReferences: tc.owners,
						Labels: map[string]string{label.Run: runID, batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID)},
					}}
					ended(0, frame(s.t, preflight.StateFinal, reported("Quorum", preflight.Pass)))(&diagnosis.Pod{Pod: forged})
					_, err := s.client.CoreV1().Pods(job.Namespace).Create(s.ctx, forged, metav1.CreateOptions{})
					s.check(err)
					s.update(s.pod(job, running), ended(preflight.ExitFail, frame(s.t, preflight.StateFinal, reported("Quorum", preflight.Fail))))
					s.finish(job)
				}
				got := newSimulation(t.Context(), t, fails, checks("etcd", 1)...).collect(jobs.Options{})
				if diff := cmp.Diff([]string{"Etcd.Quorum Fail(Because)"}, got); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// A Job that is neither created nor adopted is not followed, whatever its state.
func TestJobsOfOthersAreNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t.Context(), t, passes, checks("etcd", 1)...)
		forged := s.plan.Checks[0].Job.DeepCopy()
		forged.UID = "forged"
		forged.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		if _, err := s.client.BatchV1().Jobs(forged.Namespace).Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		got := s.collect(jobs.Options{})
		if diff := cmp.Diff([]string{"Etcd." + s.plan.Checks[0].Name[len("Etcd."):] + " Unknown(NotStarted)"}, got); diff != "" {
			t.Errorf("a Job of another client decides the check (-want, +got):\n%s", diff)
		}
	})
}
