package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// Reconcile plans, and has the plan followed.
func (c *controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	round, own := c.conductor.present()
	var version configv1.ClusterVersion
	err := c.reader.Get(ctx, client.ObjectKey{Name: name}, &version)
	if apierrors.IsNotFound(err) {
		c.options.Logger.Warn("this cluster has no ClusterVersion \"version\": no preflight runs")
		c.conductor.follow(round, order{})
		c.publish(nil, nil, nil)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("could not read ClusterVersion %q: %w", name, err)
	}
	c.warn(&version)
	listed, listErr := c.objects.list(ctx)
	subjects := runplan.Subjects(listed, &version, c.selectionOf, c.cluster.Now())
	scheduled, unscheduled, scheduleErr := c.upgrades.Scheduled(ctx, &version)
	wanted := targets(&version, scheduled, c.options.Ahead)
	seen, err := c.observe(ctx, &version, wanted, subjects)
	seen.state.Scheduled, seen.state.Unscheduled = scheduled, unscheduled
	c.publish(err, wanted, seen.decided)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, listErr, scheduleErr)
	}
	// A verdict that has ended is withdrawn before its target runs again. The run follows also
	// where that fails: its verdict replaces what is published.
	next, publishErr := published.Apply(ctx, c.cluster.Kubernetes, seen.records, seen.state.Now)
	c.again.set(judged(seen.state.Runs))
	inputsErr := c.inputs.follow(ctx)
	c.conductor.forget(seen.targets)
	seen.state.Runs = withAttempts(seen.state.Runs, own)
	plan := c.delay(runplan.Decide(seen.state), seen.state.Now)
	c.conductor.follow(round, order{Plan: plan, generation: version.Generation})
	plan.Wait(next)
	plan.Wait(seen.retry())
	if listErr == nil && c.objects.watched {
		next, listErr = c.project(ctx, runplan.Reconciled(listed, wanted, &version), subjects, seen)
		plan.Wait(next)
	}
	if failed := errors.Join(listErr, scheduleErr, inputsErr, publishErr); plan.Next.IsZero() || failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: max(time.Second, plan.Next.Sub(seen.state.Now))}, nil
}

// project makes these changes, and writes the statuses of the subjects and of the created
// objects. It returns when to do so again; zero for the next event.
func (c *controller) project(ctx context.Context, changes runplan.Changes, subjects []runplan.Subject, seen observed) (time.Time, error) {
	created, changed := c.objects.change(ctx, changes)
	// Hundreds of others must not delay the first status of those.
	subjects = append(runplan.Subjects(created, seen.state.ClusterVersion, c.selectionOf, seen.state.Now), subjects...)
	next, projected := c.objects.project(ctx, subjects, seen.state, seen.decided, c.options.Run.Limits.Timeout)
	if changes.More {
		next = seen.state.Now
	}
	return next, errors.Join(changed, projected)
}

// publish has the metrics and the signals state the verdicts, or that they could not be
// read.
func (c *controller) publish(err error, wanted []runplan.Target, decided runplan.Verdicts) {
	c.metrics.Set(err == nil, wanted, decided)
	c.signaler.Set(err, wanted, decided)
}

// delay removes a new run ahead from a plan until its random delay has passed.
func (c *controller) delay(plan runplan.Plan, now time.Time) runplan.Plan {
	if !plan.Delay {
		clear(c.starts)
		return plan
	}
	digest := plan.Run.Digest()
	start, chosen := c.starts[digest]
	if !chosen {
		start = now.Add(c.options.Delay())
		clear(c.starts)
		c.starts[digest] = start
	}
	if start.After(now) {
		plan.Run = nil
		plan.Wait(start)
	}
	return plan
}

// warn logs a request that CVO may not treat as the administrator expects.
func (c *controller) warn(version *configv1.ClusterVersion) {
	if desired := version.Spec.DesiredUpdate; desired != nil && desired.Mode == configv1.UpdateModePreflight {
		c.options.Logger.Warn("spec.desiredUpdate of ClusterVersion has mode Preflight: a CVO that ignores the mode starts the update")
	}
}
