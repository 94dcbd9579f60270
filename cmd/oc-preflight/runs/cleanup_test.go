package runs_test

import (
	"testing"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/records"
)

// history prints a prefix of each ID, so cleanup must accept it, also for a run that has
// objects but no record.
func TestCleanupTakesAPrefix(t *testing.T) {
	w := newWorld(t)
	for name, id := range map[string]string{
		"Recorded":    w.Completed('1', records.Report(records.Passed("Etcd.Quorum")), w.Fingerprint()),
		"NotRecorded": uuid.NewString(),
	} {
		t.Run(name, func(t *testing.T) {
			job := w.StartJob(id, "Etcd.Quorum")
			w.contains(w.call(exit.Ready, "cleanup", id[:8]).Stdout, "deleted Job default/"+job.Name+"\n",
				"run "+id+" has no objects in the cluster\n")
			if _, err := w.Client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{}); err == nil {
				t.Errorf("Job %s still exists", job.Name)
			}
		})
	}
}

// A mistyped ID must not be reported as a run without objects.
func TestCleanupOfAnUnknownRunIsAnError(t *testing.T) {
	w := newWorld(t)
	id := uuid.NewString()
	w.StartJob(id, "Etcd.Quorum")
	for name, unknown := range map[string]string{"Other": uuid.NewString(), "TooShort": id[:3], "NoID": "everything"} {
		t.Run(name, func(t *testing.T) {
			got := w.call(exit.BadInput, "cleanup", unknown)
			w.contains(got.Stderr, unknown)
			if got.Stdout != "" {
				t.Errorf("output %q for an unknown run, want none", got.Stdout)
			}
		})
	}
	w.call(exit.Ready, "cleanup", id)
}
