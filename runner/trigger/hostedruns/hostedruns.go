// Package hostedruns answers: which preflights of hosted clusters run automatically in their management cluster, and
// when?
//
// [Add] adds them to a manager. Each hosted cluster (HyperShift) has its own plan by package runplan, as if its
// HostedCluster were a ClusterVersion: the release that is requested, the requests of administrators, and the updates
// that are offered. Among the hosted clusters with a due run, the one with the oldest last run comes first; a hosted
// cluster has one run at a time. UpdatePreflights with spec.hostedCluster show the verdicts, and package hostedguard
// enforces them.
//
// Only verdicts of runs that this process has made or joined count: the records are in the guests, whose administrators
// could forge them, and are not read otherwise. Another leader runs the preflights again, and leaves the policies
// unchanged until it has tried each hosted cluster once, for at most half an hour. A verdict counts for at most
// [MaxAge], since the guest is not observed after the run, and not after the release that runs, the condition
// ClusterVersionUpgradeable or the annotation that forces an update has changed.
package hostedruns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
)

const (
	// MaxClusters bounds Options.Clusters.
	MaxClusters = hostedguard.MaxClusters
	// MaxRuns bounds Options.Runs.
	MaxRuns = 10
	// MaxAge bounds the validity of a verdict after its run.
	MaxAge = 4 * time.Hour
	// Interval is the time between two lists of the hosted clusters.
	Interval = time.Minute
	// listTimeout bounds each list.
	listTimeout = 30 * time.Second
)

// Preflight runs the preflight of an update of a hosted cluster. Without a report, it returns an error. When ctx ends,
// so does the run.
type Preflight func(ctx context.Context, of *hypershift.HostedCluster, target runplan.Target) (report.Report, error)

// Options configure the runs. All fields are required.
type Options struct {
	// Clusters is how many hosted clusters have runs, the oldest first, 1 to MaxClusters. Others
	// are logged.
	Clusters int
	// Runs is how many runs are made side by side, 1 to MaxRuns.
	Runs int
	// Ahead is how many offered targets of each hosted cluster to run ahead, at most runplan.MaxAhead.
	Ahead     int
	Preflight Preflight
	// Selection returns the coverage of the runs with a mode of the images, as in a runplan.Target.
	Selection func(image.Mode) string
	Guard     *hostedguard.Switch
	// Interval is the longest time between two lists of the hosted clusters.
	Interval time.Duration
	Logger   *slog.Logger
}

func (o Options) validate() error {
	switch {
	case o.Clusters < 1 || o.Clusters > MaxClusters:
		return fmt.Errorf("the number of hosted clusters is %d; it must be 1 to %d", o.Clusters, MaxClusters)
	case o.Runs < 1 || o.Runs > MaxRuns:
		return fmt.Errorf("the number of parallel runs is %d; it must be 1 to %d", o.Runs, MaxRuns)
	case o.Ahead < 0 || o.Ahead > runplan.MaxAhead:
		return fmt.Errorf("the number of targets ahead is %d; it must be 0 to %d", o.Ahead, runplan.MaxAhead)
	case o.Preflight == nil || o.Selection == nil || o.Guard == nil || o.Interval <= 0 || o.Logger == nil:
		return errors.New("a required option is missing")
	}
	return nil
}

// Add adds the runs to a manager of the management cluster. They are made while it leads.
func Add(m manager.Manager, management *cluster.Cluster, options Options) error {
	if err := options.validate(); err != nil {
		return err
	}
	return m.Add(&fleet{
		management: management, options: options, reader: m.GetAPIReader(), writer: updatepreflight.Writer{Client: m.GetClient()},
		members: map[v1alpha1.HostedCluster]*member{}, ended: make(chan struct{}, 1),
	})
}

// Needs are the permissions in the management cluster besides the controller's, for hosted clusters in any namespace.
// The Secrets contain the kubeconfigs of the guests; the HostedClusters contain their names.
func Needs() access.Needs {
	const namespace, name = "namespace", "name"
	anywhere := func(requests []access.Request) []access.Request {
		for i, request := range requests {
			if request.Namespace == namespace || request.Namespace == hypershift.ControlPlaneNamespace(namespace, name) {
				requests[i].Namespace = ""
			}
			if request.Name == name {
				requests[i].Name = ""
			}
		}
		return requests
	}
	reads := hosted.Reads(namespace, name)
	needs := access.Needs{Required: anywhere(reads.Required), Optional: anywhere(reads.Optional)}
	needs.Required = append(needs.Required,
		access.Request{Verb: "list", Group: hypershift.Group, Resource: "hostedclusters"}, access.Request{Verb: "get", Resource: "secrets"})
	return needs
}

// fleet are the hosted clusters of a management cluster.
type fleet struct {
	management *cluster.Cluster
	options    Options
	// reader and writer are for the UpdatePreflights.
	reader client.Reader
	writer updatepreflight.Writer
	// members are the hosted clusters that have runs. Only Start uses them.
	members map[v1alpha1.HostedCluster]*member
	// ended has room for one value: a run has ended.
	ended chan struct{}
	// guarded is true when the policies were applied once since started.
	guarded bool
	started time.Time
	// left is how many hosted clusters were left out at the last list.
	left int
}

// OnGuests uses package runner with these options for the runs in the guests, which are reached with the kubeconfigs
// that the HostedClusters name. The report on a guest that cannot be reached is Undecided, and contains the findings
// about the management cluster.
func OnGuests(management *cluster.Cluster, options runner.Options) Preflight {
	return func(ctx context.Context, of *hypershift.HostedCluster, target runplan.Target) (report.Report, error) {
		connect := func(config *rest.Config) (*cluster.Cluster, error) {
			return cluster.Connect(config, "preflight-controller/"+options.Hooks.ToolVersion)
		}
		guest, estate, err := hosted.Reach(ctx, management, hosted.Selection{Namespace: of.Namespace, Name: of.Name}, connect)
		if err != nil {
			return report.Report{}, err
		}
		options := plannedrun.Options(ctx, options, target)
		options.Estate = estate
		return runner.Run(ctx, guest, runner.Target{Image: target.Image}, options)
	}
}

// Off removes the policies of a switch that is off, while the manager leads, if there are no runs. It retries failed
// removals once a minute.
func Off(off *hostedguard.Switch, logger *slog.Logger) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		for ctx.Err() == nil {
			_, err := off.Apply(ctx, nil)
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				logger.Warn("the admission policies of hosted clusters could not be removed", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(Interval):
			}
		}
		return nil
	})
}

// The hosted clusters of a page, and the most that are listed: more than HyperShift supports in one cluster.
const pageSize, maxListed = 500, 20_000

// Start implements manager.Runnable: it starts the runs until ctx is done, and returns when the runs in progress have
// ended.
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
		f.options.Logger.Warn("hosted clusters have no preflights: their number exceeds the configured limit", "hostedClusters", len(all), "most",
			f.options.Clusters)
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
			f.options.Logger.Warn("a HostedCluster cannot be decoded: it has no preflights", "namespace", listed.GetNamespace(), "name",
				listed.GetName(), "error", err)
			return nil
		}
		all = append(all, object)
		return nil
	})
	return all, err
}

// follow makes the members match these objects. The run of a removed member is ended.
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
				result = plannedrun.Result{Err: errors.New("the hosted cluster changed during the run")}
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
	f.options.Logger.Info("running the preflight", "hostedCluster", m.of, "version", target.Version, "image", target.Image, "requester",
		target.Requester)
	m.current = plannedrun.Start(ctx, target, run, func(running context.Context, target runplan.Target) (report.Report, error) {
		return f.options.Preflight(running, object, target)
	}, func() { announcement.Signal(f.ended) })
}

// guard applies the policies. The former leader's policies stay until each hosted cluster was tried once.
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
