package writeguard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/runner/payload"
)

// created is a creator that creates nothing.
type created struct{}

func (created) Create(context.Context, payload.Object) error { return nil }

// A policy of the cluster may deny the probe of the guard, so that the API server does not report the guard.
func TestProbeIsDeniedByAnotherPolicy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := fake.NewClientset()
	probes := 0
	client.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		if probes++; probes > 1 { // the last request is interrupted by the end of the wait
			cancel()
			return true, nil, context.Canceled
		}
		return true, nil, apierrors.NewForbidden(batchv1.Resource("jobs"), "x",
			errors.New("ValidatingAdmissionPolicy 'no-jobs' with binding 'no-jobs' denied request: no Jobs on Fridays"))
	})
	plan := releasetest.Plan(releasetest.Run(), releasetest.Release(releasetest.Job(func(*batchv1.Job) {})))
	guard := writeguard.New(inventory.New(client, nil), created{}, plan.Run)
	guard.Begin(ctx, plan)
	f := guard.Await(ctx, plan)
	if f.Outcome != preflight.Warn || !strings.Contains(f.Message, "unknown whether the guard is in effect") ||
		!strings.Contains(f.Message, "'no-jobs'") || !strings.Contains(f.Remediation, "Exempt") {
		t.Errorf("%+v, want a warning that names the policy, with a remedy", f)
	}
}
