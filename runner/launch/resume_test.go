package launch_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch"
)

// fillWith creates a quota that the existing Jobs use up.
func fillWith(t *testing.T, namespace string, jobs int64) {
	t.Helper()
	name := corev1.ResourceName("count/jobs.batch")
	watching, err := api.CoreV1().ResourceQuotas(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "filled"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: *resource.NewQuantity(jobs, resource.DecimalSI)}},
	}
	if _, err := api.CoreV1().ResourceQuotas(namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range watching.ResultChan() {
		quota, ok := event.Object.(*corev1.ResourceQuota)
		if used := quota.Status.Used[name]; ok && used.Value() == jobs {
			return
		}
	}
	t.Fatal("the quota has no status")
}

func TestResumedRun(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		resume bool // the second runner calls Resume
		most   int32
	}{
		// A list for each kind, or for each of two Jobs, seven supporting objects, two policies
		// and bindings a creation and a read, twice; and the probe. Policies and bindings are
		// read, and so are the original of the copied account and all bindings.
		"Resume":        {"known objects need no requests", true, 10 + 1 + 4 + 3},
		"WithoutResume": {"existing objects are adopted without Resume", false, 9*2 + 9*2 + 4*2 + 1 + 4 + 3},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			plan := releasetest.Plan(newRun(), aFullRelease(namespace))
			first := newLauncher(t, config)
			copied := first.CopyAccounts(t.Context(), plan)
			first.Guard(t.Context(), copied)
			create(t, first, copied)
			fillWith(t, namespace, 2)

			var requests atomic.Int32
			second := behind(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				requests.Add(1)
				next.ServeHTTP(w, r)
			})
			plan = second.CopyAccounts(t.Context(), plan)
			if tc.resume {
				if err := second.Resume(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
			}
			findings, valid := second.Validate(t.Context(), plan)
			if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" || len(valid.Checks) != 2 || len(valid.Supporting) != 7 {
				t.Fatalf("%s, but existing objects are rejected, %d checks left (-want, +got):\n%s", tc.reason, len(valid.Checks), diff)
			}
			if guard := second.Guard(t.Context(), valid); guard.Outcome != preflight.Pass {
				t.Errorf("%s: guard %+v", tc.reason, guard)
			}
			if err := second.Prepare(t.Context(), valid); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if got := requests.Load(); got > tc.most {
				t.Errorf("%s: %d requests, want at most %d", tc.reason, got, tc.most)
			}
			for _, check := range valid.Checks {
				if err := second.Start(t.Context(), check); err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
			}
			if diff := cmp.Diff(first.Created(plan.Run.ID), second.Created(plan.Run.ID)); diff != "" {
				t.Errorf("%s; objects (-first, +second):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestResumeWithoutObjects(t *testing.T) {
	namespace := newNamespace(t)
	launcher := newLauncher(t, config)
	plan := releasetest.Plan(newRun(), aFullRelease(namespace))
	if err := launcher.Resume(t.Context(), launcher.CopyAccounts(t.Context(), plan)); err != nil {
		t.Fatal(err)
	}
	create(t, launcher, plan)
	if got := residue(t, plan.Run.ID); len(got) != 8 {
		t.Errorf("want all objects created, got %v", got)
	}
}

func TestQuotaUsedByOthers(t *testing.T) {
	namespace := newNamespace(t)
	fill(t, namespace)
	plan := releasetest.Plan(newRun(), aFullRelease(namespace))
	err := newLauncher(t, config).Start(t.Context(), plan.Checks[1])
	if f := launch.Explain(plan.Checks[1], err); f.Reason != "QuotaExceeded" {
		t.Errorf("want the quota as the cause, got %+v", f)
	}
}

func TestEndDeletesOneJob(t *testing.T) {
	namespace := newNamespace(t)
	launcher := newLauncher(t, config)
	plan := releasetest.Plan(newRun(), aFullRelease(namespace))
	create(t, launcher, plan)
	watching, err := api.BatchV1().Jobs(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if err := launcher.End(t.Context(), plan.Checks[1]); err != nil {
		t.Fatal(err)
	}
	for event := range watching.ResultChan() {
		if event.Type == watch.Deleted {
			break
		}
	}
	left, err := api.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != plan.Checks[0].Job.Name {
		t.Errorf("want the other Job kept, got %d: %v", len(left.Items), err)
	}
	if err := launcher.End(t.Context(), plan.Checks[1]); err != nil {
		t.Errorf("deleting a deleted Job fails: %v", err)
	}
	if err := launcher.Start(t.Context(), plan.Checks[1]); err != nil {
		t.Errorf("the Job cannot be created again: %v", err)
	}
	if err := launcher.End(t.Context(), plan.Checks[1]); err != nil {
		t.Fatal(err)
	}
	removal, err := launcher.Cleanup(bounded(t), plan.Run.ID)
	jobs := 0
	for _, object := range removal.Deleted {
		if object.Kind == "Job" {
			jobs++
		}
	}
	if err != nil || jobs != 2 {
		t.Errorf("want both Jobs reported as deleted, got %v: %v", removal.Deleted, err)
	}
}

func TestSerial(t *testing.T) {
	for value, tc := range map[string]struct {
		reason string
		want   bool
	}{
		"true":  {"the check must not run beside other serial checks", true},
		"false": {"the check is not serial", false},
		"yes":   {"only the value true is serial", false},
	} {
		t.Run(value, func(t *testing.T) {
			job := releasetest.Job(func(job *batchv1.Job) { job.Annotations["preflight.openshift.io/serial"] = value })
			check := releasetest.Plan(newRun(), releasetest.Release(job)).Checks[0]
			if check.Serial != tc.want || check.Job.Annotations["preflight.openshift.io/serial"] != value {
				t.Errorf("%s: serial %t, annotations %v", tc.reason, check.Serial, check.Job.Annotations)
			}
		})
	}
	if releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(nil))).Checks[0].Serial {
		t.Error("a check without the annotation is serial")
	}
}
