package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/payload"
)

// ReasonReadOnly is reported when the API server denies the writes that it receives from
// the run's pods with the identity of the pod. Other credentials, and requests to other
// servers, are not covered; the ServiceAccounts of the checks have only read access.
//
// Cause: the admission policy of the run is in effect, and was unchanged when the
// checks had ended.
//
// Remedy: none needed.
const ReasonReadOnly finding.Reason = "ReadOnly"

// ReasonNoReadOnlyGuard is reported when the checks run without the admission
// policy that denies their writes.
//
// Cause: Kubernetes before 1.30 has no ValidatingAdmissionPolicy, the user may not
// create one, or it was not in effect in time.
//
// Remedy: fix what the message names, and grant the ServiceAccounts of the checks
// no more than read access.
const ReasonNoReadOnlyGuard finding.Reason = "NoReadOnlyGuard"

// Guard makes the API server deny every write of the run's pods, regardless of the
// permissions of their ServiceAccounts, except reviews of permissions and tokens,
// which store nothing. The pods are identified by the pod name in the identity of
// their tokens (authentication.kubernetes.io/pod-name), so the guard does not apply
// to other credentials. It does not apply to what access.Unguarded returns either.
//
// API servers load new policies once a second, so Guard waits until one of them
// denies a probe: a Job of the plan under another name, as a dry run. The others
// have the policy within about a second.
//
// The finding is a Warn if the cluster has no such API (Kubernetes before 1.30), the
// user may not use it, or it is not in effect within 10 seconds: the checks run
// without the guard then. The plan must have at least one check.
func (l *Launcher) Guard(ctx context.Context, plan Plan) finding.Finding {
	return l.BeginGuard(ctx, plan.Run).Await(ctx, plan)
}

// BegunGuard is a guard that is being created.
type BegunGuard struct {
	launcher *Launcher
	run      Run
	policy   payload.Object
	// late is true where Jobs of the run exist without the guard.
	late    bool
	created func() error
}

// BeginGuard creates the guard of a run in the background, so that the API server loads it
// while the Jobs are validated: it needs no more than the run. Created must be called
// before the objects of the run are deleted.
func (l *Launcher) BeginGuard(ctx context.Context, run Run) *BegunGuard {
	policy, binding := guardPolicy(run), guardBinding(run)
	begun := &BegunGuard{launcher: l, run: run, policy: policy, late: l.startsLate(run, policy)}
	ended := make(chan error, 1)
	go func() {
		err := l.create(ctx, policy)
		if err == nil {
			err = l.create(ctx, binding)
		}
		ended <- err
	}()
	begun.created = sync.OnceValue(func() error { return <-ended })
	return begun
}

// Created returns when the objects of the guard have been created, or could not be.
func (g *BegunGuard) Created() error { return g.created() }

// Await is the finding of Guard.
func (g *BegunGuard) Await(ctx context.Context, plan Plan) finding.Finding {
	for _, step := range []func() error{
		g.Created,
		func() error { return g.launcher.awaitGuard(ctx, plan) },
		func() error { return g.launcher.readGuard(ctx, g.run, g.late) },
	} {
		if err := step(); err != nil {
			return notGuarded(err)
		}
	}
	return finding.Pass(ReasonReadOnly, "%s %s denies the writes that this API server receives from the run's pods", policyKind, g.policy.GetName()).
		Named(guardName).
		From(finding.SourceJob)
}

const (
	// guardTime bounds the wait for the guard, probeInterval is the time between two
	// probes.
	guardTime     = 10 * time.Second
	probeInterval = 50 * time.Millisecond
)

// awaitGuard waits until the guard denies its probe.
func (l *Launcher) awaitGuard(ctx context.Context, plan Plan) error {
	probe := plan.Checks[0].Job.DeepCopy()
	probe.Name = guardProbe(plan.Run)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, probeInterval, guardTime, true, func(ctx context.Context) (bool, error) {
		_, err := l.client.BatchV1().Jobs(probe.Namespace).Create(ctx, probe, dryRun)
		if err != nil && strings.Contains(err.Error(), probeDenied) {
			return true, nil
		}
		last = cmp.Or(err, errors.New("the API server accepts the probe of the guard"))
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the guard is not in effect after %s: %w", guardTime, last)
	}
	return nil
}

func notGuarded(err error) finding.Finding {
	f := finding.Warn(ReasonNoReadOnlyGuard, "only their own permissions prevent writes of the checks: %s", err.Error()).
		Named(guardName).
		From(finding.SourceJob).
		Remedy("Fix what the message names, and grant the ServiceAccounts of the checks no more than read access.")
	if apierrors.IsNotFound(err) {
		return f.Remedy("Grant the ServiceAccounts of the checks no more than read access: Kubernetes has %s since 1.30.", policyKind)
	}
	return f
}
