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
	"github.com/openshift/update-preflight/runner/launch"
)

// crowd gives a namespace a quota that is used up by the Jobs that are there.
func crowd(t *testing.T, namespace string, jobs int64) {
	t.Helper()
	name := corev1.ResourceName("count/jobs.batch")
	watching, err := api.CoreV1().ResourceQuotas(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "crowded"},
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
	t.Fatal("the quota was never in force")
}

func TestARunIsTakenOver(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		look   bool // the second runner looks first
		most   int32
	}{
		// Two Jobs, six supporting objects, policy and binding, and the probe.
		"Looking":        {"what is known to be there is not asked about", true, 10 + 1},
		"WithoutLooking": {"what is there is adopted all the same", false, 8*2 + 8*2 + 2*2 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			plan := planned(newRun(), aFullRelease(namespace))
			first := launch.New(api)
			first.Guard(t.Context(), plan)
			create(t, first, plan)
			crowd(t, namespace, 2) // our own two Jobs use it up

			var requests atomic.Int32
			second := behind(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				requests.Add(1)
				next.ServeHTTP(w, r)
			})
			if tc.look {
				if err := second.Resume(t.Context(), plan.Run.ID); err != nil {
					t.Fatal(err)
				}
			}
			findings, valid := second.Validate(t.Context(), plan)
			if diff := cmp.Diff([]finding.Finding(nil), findings); diff != "" || len(valid.Checks) != 2 || len(valid.Supporting) != 6 {
				t.Fatalf("%s, but a run is refused what it has, %d checks left (-want, +got):\n%s", tc.reason, len(valid.Checks), diff)
			}
			if guard := second.Guard(t.Context(), valid); guard.Outcome != preflight.Pass {
				t.Errorf("%s, but not the guard: %+v", tc.reason, guard)
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
				t.Errorf("%s; what it has (-first, +second):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestResumeOfNothing(t *testing.T) {
	namespace := newNamespace(t)
	launcher := launch.New(api)
	plan := planned(newRun(), aFullRelease(namespace))
	if err := launcher.Resume(t.Context(), plan.Run.ID); err != nil {
		t.Fatal(err)
	}
	create(t, launcher, plan)
	if got := residue(t, plan.Run.ID); len(got) != 8 {
		t.Errorf("want everything created, got %v", got)
	}
}

func TestAQuotaThatOthersUsedUpStillRefuses(t *testing.T) {
	namespace := newNamespace(t)
	fill(t, namespace)
	plan := planned(newRun(), aFullRelease(namespace))
	err := launch.New(api).Start(t.Context(), plan.Checks[1])
	if f := launch.Explain(plan.Checks[1], err); f.Reason != "QuotaExceeded" {
		t.Errorf("want the quota as the cause, got %+v", f)
	}
}

func TestEndTakesOneJobAway(t *testing.T) {
	namespace := newNamespace(t)
	launcher := launch.New(api)
	plan := planned(newRun(), aFullRelease(namespace))
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
		t.Errorf("want the other Job left alone, got %d: %v", len(left.Items), err)
	}
	if err := launcher.End(t.Context(), plan.Checks[1]); err != nil {
		t.Errorf("what is gone cannot be deleted again: %v", err)
	}
	if err := launcher.Start(t.Context(), plan.Checks[1]); err != nil {
		t.Errorf("it cannot be started again: %v", err)
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
		t.Errorf("want both Jobs told as deleted, got %v: %v", removal.Deleted, err)
	}
}

func TestSerial(t *testing.T) {
	for value, tc := range map[string]struct {
		reason string
		want   bool
	}{
		"true":  {"the author wants it to run alone among its like", true},
		"false": {"the author says that it need not", false},
		"yes":   {"there is one word for it", false},
	} {
		t.Run(value, func(t *testing.T) {
			job := aJob(func(job *batchv1.Job) { job.Annotations["preflight.openshift.io/serial"] = value })
			check := planned(newRun(), aRelease(job)).Checks[0]
			if check.Serial != tc.want || check.Job.Annotations["preflight.openshift.io/serial"] != value {
				t.Errorf("%s: serial %t, annotations %v", tc.reason, check.Serial, check.Job.Annotations)
			}
		})
	}
	if planned(newRun(), aRelease(aJob(nil))).Checks[0].Serial {
		t.Error("a check is serial though nobody said so")
	}
}
