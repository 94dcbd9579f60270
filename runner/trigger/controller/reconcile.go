package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/console"
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
		c.publish(nil, &version, nil, nil)
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
	c.publish(err, &version, wanted, seen.decided)
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
// read: the notices stay until they end then.
func (c *controller) publish(err error, version *configv1.ClusterVersion, wanted []runplan.Target, decided runplan.Verdicts) {
	c.metrics.Set(err == nil, wanted, decided)
	c.signaler.Set(err, wanted, decided)
	if err == nil {
		c.options.Console.Set(console.Notices(wanted, decided, c.after.follower.Latest(version))...)
	}
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

// controllerName is the name of the controller in logs and metrics, recorderName that of
// the controller in events.
const (
	controllerName = "preflight"
	recorderName   = "update-preflight"
)

// watch has each event that may change the plan reconcile the one request. Those of
// UpdatePreflights are watched later, when the API server serves them. ended has a value when
// a run has ended. The inputs reconcile nothing.
func watch(m manager.Manager, reconciler reconcile.Reconciler, ended <-chan struct{}, inputs []source.Source) (runtimecontroller.Controller, error) {
	// All metadata but the annotations about drains is trimmed.
	drains := predicate.TypedAnnotationChangedPredicate[*corev1.Node]{}
	// The record of a run in progress is written once a second, that of an ended run only
	// where another client edits it, or ends its verdict.
	edits := predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) ||
				e.ObjectNew.ResourceVersion != e.ObjectOld.ResourceVersion && (record.Ended(e.ObjectNew.Labels) || e.ObjectNew.Namespace == published.Namespace)
		},
	}
	// What is published is restored when another client changes or deletes it.
	recorded := predicate.NewTypedPredicateFuncs(func(object *metav1.PartialObjectMetadata) bool {
		return object.Namespace == record.Namespace || object.Namespace == published.Namespace && object.Name == published.Name
	})
	schemas := predicate.TypedGenerationChangedPredicate[*metav1.PartialObjectMetadata]{}
	changes := predicate.TypedFuncs[*configv1.ClusterVersion]{
		UpdateFunc: func(e event.TypedUpdateEvent[*configv1.ClusterVersion]) bool {
			return !runplan.SameInputs(e.ObjectOld, e.ObjectNew)
		},
	}
	caches := m.GetCache()
	built := builder.ControllerManagedBy(m).Named(controllerName).
		WatchesRawSource(source.Kind(caches, &configv1.ClusterVersion{}, plan[*configv1.ClusterVersion](), changes)).
		WatchesRawSource(source.Kind(caches, records(), plan[*metav1.PartialObjectMetadata](), recorded, edits)).
		WatchesRawSource(source.Kind(caches, &corev1.Node{}, plan[*corev1.Node](), drains)).
		WatchesRawSource(source.Kind(caches, definitions(), plan[*metav1.PartialObjectMetadata](), schemas)).
		WatchesRawSource(source.TypedFunc[reconcile.Request](announcement.Announce(ended, request())))
	for _, each := range inputs {
		built = built.WatchesRawSource(each)
	}
	return built.Build(reconciler)
}

// request is the one request: everything is planned together.
func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// plan has every event of a kind reconcile the one request.
func plan[T any]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, T) []reconcile.Request { return []reconcile.Request{request()} })
}
