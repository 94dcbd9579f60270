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
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
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
	c.after.observe(&version)
	listed, listErr := c.objects.list(ctx)
	subjects := runplan.Subjects(listed, &version, c.selects, c.cluster.Now())
	scheduled, unscheduled, scheduleErr := c.upgrades.Scheduled(ctx, &version)
	wanted := runplan.Targets(&version, scheduled, c.options.Ahead)
	seen, err := c.observe(ctx, &version, wanted, subjects)
	seen.state.Scheduled, seen.state.Unscheduled = scheduled, unscheduled
	c.publish(err, wanted, seen.decided)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, listErr, scheduleErr)
	}
	// A verdict that has ended is withdrawn before its target runs again. The run follows also
	// where that fails: its verdict replaces what is published.
	next, publishErr := published.Apply(ctx, c.cluster.Kubernetes, seen.records, c.asked.String(), seen.state.Now)
	c.again.set(seen.standingRuns())
	inputsErr := c.inputs.follow(ctx)
	c.conductor.forget(seen.targets)
	seen.state.Runs = withAttempts(seen.state.Runs, own)
	plan := c.delay(runplan.Decide(seen.state), seen.state.Now)
	c.conductor.follow(round, order{Plan: plan, generation: version.Generation})
	plan.Wait(next)
	plan.Wait(seen.retry())
	if listErr == nil && c.objects.watched {
		pass := c.writer.Begin()
		pass.Reconcile(ctx, updatepreflight.Cluster{
			Objects: listed, Subjects: subjects, Targets: wanted, State: seen.state, Verdicts: seen.decided,
			Selection: c.selects, Timeout: c.options.Run.Limits.Timeout,
		})
		next, listErr = pass.End()
		plan.Wait(next)
	}
	if failed := errors.Join(listErr, scheduleErr, inputsErr, publishErr); plan.Next.IsZero() || failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: max(time.Second, plan.Next.Sub(seen.state.Now))}, nil
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
