package hostedruns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// The hosted clusters of a page, and the most that are listed: more than HyperShift supports in one cluster.
const pageSize, maxListed = 500, 20_000

// Start implements manager.Runnable: it makes the runs until ctx is done, and returns when those in
// progress have ended.
func (f *fleet) Start(ctx context.Context) error {
	defer f.land()
	f.started = f.management.Now()
	for {
		next, err := f.pass(ctx)
		if err != nil && ctx.Err() == nil {
			f.options.Logger.Warn("the preflights of hosted clusters could not be planned", "error", err)
		}
		wait := f.options.Interval
		if now := f.management.Now(); !next.IsZero() {
			wait = min(wait, max(time.Second, next.Sub(now)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.ended:
		case <-time.After(wait):
		}
	}
}

// land waits for the runs in progress, which end with their context.
func (f *fleet) land() {
	for _, m := range f.members {
		if m.current != nil {
			m.current.Cancel(nil)
			<-m.current.Ended()
		}
	}
}

// pass observes, plans, begins runs and writes what is known. It returns when to do so again, if
// nothing ends before; zero for the interval.
func (f *fleet) pass(ctx context.Context) (time.Time, error) {
	objects, err := f.list(ctx)
	if err != nil {
		return time.Time{}, err
	}
	f.follow(objects)
	now := f.management.Now()
	f.conclude(now)
	requested, requestsErr := f.requests(ctx)
	var next runplan.Plan
	for of, m := range f.members {
		m.subjects = runplan.Subjects(requested[of], m.version, f.options.Selection, now)
		m.forget(f.options.Ahead)
		m.plan = runplan.Decide(m.state(now, f.options.Ahead))
		next.Wait(m.plan.Next)
		f.endUnneeded(m)
	}
	f.begin(ctx)
	shown, showErr := f.show(ctx, requested, now)
	next.Wait(shown)
	expires, guardErr := f.guard(ctx, now)
	next.Wait(expires)
	return next.Next, errors.Join(requestsErr, showErr, guardErr)
}

// list are the hosted clusters that have runs. A cluster that does not serve them has none.
func (f *fleet) list(ctx context.Context) ([]*hypershift.HostedCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := f.decoded(ctx)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not list the HostedClusters: %w", err)
	}
	slices.SortFunc(all, func(a, b *hypershift.HostedCluster) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	most := min(len(all), f.options.Clusters)
	if left := len(all) - most; left != f.left {
		f.left = left
		f.options.Logger.Warn("hosted clusters have no preflights: there are more than are configured", "hostedClusters", len(all), "most", f.options.Clusters)
	}
	return all[:most], nil
}

// decoded are all hosted clusters that can be decoded.
func (f *fleet) decoded(ctx context.Context) ([]*hypershift.HostedCluster, error) {
	var all []*hypershift.HostedCluster
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return f.management.Dynamic.Resource(hypershift.GroupVersion().WithResource("hostedclusters")).List(ctx, options)
	})
	pages.PageSize, pages.PageBufferSize = pageSize, 1
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		listed, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the list has a %T", item)
		}
		if len(all) == maxListed {
			return fmt.Errorf("there are more than %d", maxListed)
		}
		object := &hypershift.HostedCluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(listed.Object, object); err != nil {
			f.options.Logger.Warn("a HostedCluster cannot be decoded: it has no preflights", "namespace", listed.GetNamespace(), "name", listed.GetName(), "error", err)
			return nil
		}
		all = append(all, object)
		return nil
	})
	return all, err
}

// follow makes the members those of these objects. The run of one that is gone is ended.
func (f *fleet) follow(objects []*hypershift.HostedCluster) {
	present := map[v1alpha1.HostedCluster]bool{}
	for _, object := range objects {
		of := v1alpha1.HostedCluster{Namespace: object.Namespace, Name: object.Name}
		present[of] = true
		if f.members[of] == nil {
			f.members[of] = &member{of: of, verdicts: runplan.Verdicts{}}
		}
		f.members[of].see(object)
	}
	for of, m := range f.members {
		if present[of] {
			continue
		}
		if m.current == nil {
			delete(f.members, of)
			continue
		}
		gone := *m.object         // the run reads the other one
		gone.Status.Version = nil // nothing is offered any more
		m.see(&gone)
	}
}

// conclude takes the results of the runs that have ended.
func (f *fleet) conclude(now time.Time) {
	for _, m := range f.members {
		if m.current == nil {
			continue
		}
		select {
		case result := <-m.current.Ended():
			ended := m.current
			m.current = nil
			if result.Cause != nil {
				result = plannedrun.Result{Err: result.Cause} // what is known of a run that was ended early is no verdict
			}
			if m.begunAt != stateOf(m.object) {
				result = plannedrun.Result{Err: errors.New("the hosted cluster has changed during the run")}
			}
			m.conclude(ended.Planned, result.Report, result.Err, now)
			f.options.Logger.Info("the preflight has ended", "hostedCluster", m.of, "version", ended.Target.Version,
				"run", result.Report.Run.ID, "decision", result.Report.Verdict.Decision, "error", result.Err)
		default:
		}
	}
}

// endUnneeded ends the run in progress of a member whose plan has another one.
func (f *fleet) endUnneeded(m *member) {
	if m.current != nil && (m.plan.Run == nil || m.plan.Run.Covered() != m.current.Planned.Covered() || m.begunAt != stateOf(m.object)) {
		m.current.Cancel(plannedrun.ErrNotNeeded)
	}
}

// begin begins the runs that are due, as many as may be in progress.
func (f *fleet) begin(ctx context.Context) {
	free := f.options.Runs
	for _, m := range f.members {
		if m.current != nil {
			free--
		}
	}
	waiting := due(f.members)
	for _, m := range waiting[:max(0, min(free, len(waiting)))] {
		f.fly(ctx, m)
	}
}

func (f *fleet) fly(ctx context.Context, m *member) {
	target, object := *m.plan.Run, m.object
	target.Hosted = m.of
	run := runplan.Begun(target, m.version.Generation)
	run.Began, m.begunAt = f.management.Now(), stateOf(object)
	f.options.Logger.Info("running the preflight", "hostedCluster", m.of, "version", target.Version, "image", target.Image, "requester", target.Requester)
	m.current = plannedrun.Start(ctx, target, run, func(running context.Context, target runplan.Target) (report.Report, error) {
		return f.options.Preflight(running, object, target)
	}, func() { announcement.Signal(f.ended) })
}

// guard applies the policies. Those of the former leader stay until each hosted cluster was tried once.
func (f *fleet) guard(ctx context.Context, now time.Time) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	if !f.guarded && f.options.Guard.On() {
		former, err := f.options.Guard.List(ctx)
		if err != nil || len(former) > 0 && f.untried(now) {
			return time.Time{}, err
		}
	}
	f.guarded = true
	var clusters []hostedguard.Cluster
	names := slices.SortedFunc(maps.Keys(f.members), func(a, b v1alpha1.HostedCluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, of := range names {
		clusters = append(clusters, f.members[of].guarded(f.options.Ahead, guard.MaxVerdicts/MaxClusters))
	}
	next, err := f.options.Guard.Apply(ctx, clusters)
	if err != nil {
		return now.Add(time.Second), errors.New(words.Line("could not apply the admission policies of hosted clusters: "+err.Error(), maxError))
	}
	return next, nil
}

// untried reports whether a hosted cluster has not been tried yet, for a bounded time.
func (f *fleet) untried(now time.Time) bool {
	waiting := func(m *member) bool { return m.current != nil || m.plan.Run != nil }
	return now.Sub(f.started) < maxUntried && slices.ContainsFunc(slices.Collect(maps.Values(f.members)), waiting)
}

const (
	// maxUntried bounds the time for which the policies of the former leader stay.
	maxUntried = 30 * time.Minute
	// guardTimeout bounds an application of the policies.
	guardTimeout = time.Minute
)

// maxError bounds an error that may have the text of a policy, in bytes.
const maxError = 4096
