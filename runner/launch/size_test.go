package launch_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
)

// A run of a thousand checks, each with arguments of its own, has a guard.
func TestGuardOfManyChecks(t *testing.T) {
	namespace, release := newNamespace(t), releasetest.Release()
	for i := range 1000 {
		release.Jobs = append(release.Jobs, releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
			job.Namespace, job.Name = namespace, fmt.Sprint("check-", i)
			job.Spec.Template.Spec.Containers[0].Args = []string{fmt.Sprint("--check=", i)}
		})).Jobs...)
	}
	plan, began := releasetest.Plan(newRun(), release), time.Now()
	objects, err := writeguard.Objects(plan)
	if err != nil || len(plan.Checks) != 1000 {
		t.Fatalf("%d checks, error %v", len(plan.Checks), err)
	}
	size := 0
	for _, object := range objects {
		size += len(fmt.Sprint(object))
	}
	t.Logf("%d bytes in %s", size, time.Since(began))
	launcher := newLauncher(t, config)
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Errorf("guard: %.500s", fmt.Sprint(f))
	}
	if left, err := launcher.Cleanup(bounded(t), plan.Run.ID); err != nil {
		t.Errorf("left %v: %v", left, err)
	}
	t.Logf("in force and deleted after %s", time.Since(began))
}
