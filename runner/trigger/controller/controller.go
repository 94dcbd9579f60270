// Package controller answers: which preflights run automatically in this cluster, and when?
//
// [Add] adds it to a manager: it observes the cluster and executes the plan of package runplan, one run at a time, by
// the public functions of package runner.
//
// The controller has no state but the records of the runs, and the UpdatePreflights of administrators (package
// v1alpha1), which are requests. If the process of a run in progress was killed, the next leader continues the run,
// with its results so far. The controller writes the objects of its runs, its signals, UpdatePreflights and their
// events, and the published verdicts (package published), but never ClusterVersion.
//
// The signals show the verdicts in the cluster (package announcement). The leader applies them after each
// reconciliation and when a verdict expires, independently of the runs.
package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sigstore/sigstore/pkg/signature"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/followup"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
	"github.com/openshift/update-preflight/runner/trigger/upgradeconfig"
)

// Options configure the controller. All fields but Key are required.
type Options struct {
	// Ahead is how many offered targets to run ahead, at most MaxAhead; 0 for none.
	Ahead int
	// Delay returns by how long to delay a new run ahead.
	Delay func() time.Duration
	// Run are the options of each run; Requester, OnInterrupt and Monitoring are the
	// controller's.
	Run runner.Options
	// Monitoring finds the metrics and alerts, which each run reads anew.
	Monitoring monitoring.Finder
	// JudgePause is the shortest time between two judgements of the recorded verdicts;
	// 0 for none.
	JudgePause time.Duration
	// After are the times between two looks at the cluster after an update.
	After followup.Pauses
	// Signals show the verdicts, and Console shows them in the web console.
	Signals announcement.Signals
	Console *console.Keeper
	// Key signs the verdicts of the UpdatePreflights of administrators; nil signs none.
	Key    signature.Signer
	Logger *slog.Logger
	// Registry gets the metrics.
	Registry prometheus.Registerer
}

// controller plans at each event, and has its conductor follow the plan.
type controller struct {
	cluster *cluster.Cluster
	records *recordstore.Store
	reader  client.Reader
	options Options
	// selection is the coverage of the runs, and selects returns the coverage for a mode of the images, as in a Target.
	selection string
	selects   func(image.Mode) string
	asked     selection.Asked
	conductor *conductor
	metrics   *announcement.Metrics
	signaler  *announcement.Signaler
	objects   *objects
	writer    updatepreflight.Writer
	upgrades  *upgradeconfig.Reader
	again     *reevaluation
	inputs    *inputs
	after     *after
	// starts are when delayed runs start, by digest. Only Reconcile uses it, which is not
	// called concurrently.
	starts map[string]time.Time
}

// Add adds the controller to a manager, whose cache has the options of Cache. It acts
// while the manager leads.
func Add(m manager.Manager, cluster *cluster.Cluster, options Options) error {
	c := &controller{
		cluster: cluster, records: recordstore.New(cluster.Kubernetes), reader: m.GetCache(), options: options,
		selection: options.Run.Coverage(), selects: plannedrun.Selection(options.Run), asked: options.Run.Asked("the controller"),
		metrics: announcement.NewMetrics(), starts: map[string]time.Time{},
		signaler: announcement.NewSignaler(options.Signals, cluster.Now),
	}
	c.conductor = newConductor(onCluster{cluster: cluster, options: options.Run, monitoring: options.Monitoring}, cluster.Now, options.Logger)
	if err := options.Registry.Register(c.metrics); err != nil {
		return fmt.Errorf("could not register the metrics: %w", err)
	}
	if err := m.Add(c.conductor); err != nil {
		return fmt.Errorf("could not add the runs: %w", err)
	}
	c.again = &reevaluation{
		cluster: cluster, records: c.records, options: options.Run, monitoring: options.Monitoring, logger: options.Logger,
		pause: options.JudgePause, pending: make(chan struct{}, 1),
	}
	if options.JudgePause > 0 {
		if err := m.Add(c.again); err != nil {
			return fmt.Errorf("could not add the reevaluation of verdicts: %w", err)
		}
	}
	c.after = newAfter(cluster, options, c.metrics, m.GetEventRecorder(recorderName), func() { announcement.Signal(c.conductor.ended) })
	if err := m.Add(c.after.follower); err != nil {
		return fmt.Errorf("could not add the evaluation of updates: %w", err)
	}
	c.inputs = &inputs{cache: m.GetCache(), changed: c.again.changed, watched: map[kind]bool{}}
	built, err := watch(m, c, c.conductor.ended, c.inputs.sources())
	if err != nil {
		return fmt.Errorf("could not watch the cluster: %w", err)
	}
	c.inputs.watch = built.Watch
	if err := c.signaler.Watch(m); err != nil {
		return fmt.Errorf("could not add the signals: %w", err)
	}
	if err := m.Add(options.Console); err != nil {
		return fmt.Errorf("could not add the objects for the console: %w", err)
	}
	c.objects = &objects{cache: m.GetCache(), logger: options.Logger, watch: built.Watch}
	c.writer = updatepreflight.Writer{
		Client: m.GetClient(), Reporter: updatepreflight.NewReporter(cluster, options.Key, options.Logger, c.after.follower.Latest),
		Recorder: m.GetEventRecorder(recorderName),
	}
	c.upgrades = upgradeconfig.New(cluster, m.GetCache(),
		func(object *unstructured.Unstructured, changes predicate.TypedPredicate[*unstructured.Unstructured]) error {
			return built.Watch(source.Kind(m.GetCache(), object, plan[*unstructured.Unstructured](), changes))
		}, options.Logger)
	return nil
}

// observed is the cluster as a plan and the UpdatePreflights depend on it.
type observed struct {
	state   runplan.State
	targets []runplan.Target
	decided runplan.Verdicts
	// records are those to publish, newest first. Ended is also why a verdict does not count that its record does not
	// state to have ended.
	records []record.Record
	// unjudged is true where it is unknown whether a published verdict holds.
	unjudged bool
}

// sealing is how long after its creation a record may have no MAC yet, which covers the UID
// that the API server has assigned.
const sealing = 10 * time.Second

// unjudgedPause is the time until a published verdict with unknown validity is evaluated again. There may be no event
// when the missing data can be read again.
const unjudgedPause = time.Minute

// retry is when to observe again what could not be read; zero for nothing.
func (o observed) retry() time.Time {
	switch {
	case o.unsealed():
		return o.state.Now.Add(time.Second)
	case o.unjudged:
		return o.state.Now.Add(unjudgedPause)
	}
	return time.Time{}
}

// unsealed reports whether a run has just begun and its record has no MAC yet. No event
// follows when it has one.
func (o observed) unsealed() bool {
	return slices.ContainsFunc(o.records, func(recorded record.Record) bool {
		return recorded.Phase == record.Running && recorded.Verified() != nil && o.state.Now.Sub(recorded.StartTime) < sealing
	})
}

// observe reads what a plan depends on. The targets are the objects of the controller, and the
// subjects' own.
func (c *controller) observe(ctx context.Context, version *configv1.ClusterVersion, wanted []runplan.Target,
	subjects []runplan.Subject,
) (observed, error) {
	draining, err := c.anyDraining(ctx)
	if err != nil {
		return observed{}, fmt.Errorf("could not list the nodes: %w", err)
	}
	all := slices.Clone(wanted)
	for _, subject := range subjects {
		if subject.Unknown == "" {
			all = append(all, subject.Target)
		}
	}
	listed, err := c.records.List(ctx)
	if err != nil {
		return observed{}, err
	}
	question := standing.Question{
		Present: standing.Present{Cluster: snapshot.Of(c.cluster), Now: c.cluster.Now()}, Asked: c.asked,
		Runs: listed,
	}
	unjudged := false
	read, err := question.Read(ctx, c.records.Get, func(run string, err error) {
		c.options.Logger.Warn("a verdict could not be read", "run", run, "error", err)
		unjudged = true
	})
	if err != nil {
		return observed{}, err
	}
	for _, recorded := range listed {
		if stored, found := read.Report(recorded.ID); found {
			c.outdate(ctx, recorded, stored.Standing.Ended, question.Now)
			unjudged = unjudged || recorded.Ended == "" && isUnknown(stored, question.Now)
		}
	}
	decided := runplan.Verdicts{}
	for _, target := range all {
		if stored, found := read.On(target.Digest(), c.askedOf(target)); found {
			decided[target.Covered()] = stored
		}
	}
	state := runplan.State{
		Now: question.Now, ClusterVersion: version, Draining: draining, Ahead: c.options.Ahead,
		Runs: c.runs(listed, all, decided), Requests: runplan.RequestsOf(subjects, decided),
	}
	return observed{state: state, targets: all, decided: decided, records: read.Published(), unjudged: unjudged}, nil
}

// anyDraining reports whether a node is being drained.
func (c *controller) anyDraining(ctx context.Context) (bool, error) {
	var all corev1.NodeList
	if err := c.reader.List(ctx, &all); err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, draining), nil
}

// isUnknown reports whether it is unknown if a verdict holds: nothing has certainly changed, and its time has not ended.
func isUnknown(stored report.Report, now time.Time) bool {
	until, _ := standing.ValidUntil(stored)
	return !stored.Holds() && !slices.ContainsFunc(stored.Standing.Ended, fingerprint.IsChange) && until.After(now)
}

// askedOf returns the coverage that a target requires of a verdict: the controller's, with the images of the target.
func (c *controller) askedOf(target runplan.Target) selection.Asked {
	asked := c.asked
	if images := target.Object.Images; images != "" {
		asked.Covers.Images = string(images)
	}
	return asked
}

// runs are the recorded runs that cover the runs of the controller or of a request. The newest run of a target carries
// the standing of the verdict that counts, even if that verdict belongs to a run which does not take its place, such as
// another version's.
func (c *controller) runs(listed []record.Record, targets []runplan.Target, decided runplan.Verdicts) []runplan.Run {
	selections := map[string]bool{"": true}
	for _, target := range targets {
		selections[target.Selection] = true
	}
	var runs []runplan.Run
	newest := map[runplan.Covered]int{}
	for _, recorded := range listed {
		run := c.runOf(recorded)
		if !selections[run.Selection] || recorded.Verified() != nil {
			continue
		}
		at, known := newest[run.Covered()]
		if recorded.Phase == record.Complete && (!known || run.Ended.After(runs[at].Ended)) {
			newest[run.Covered()] = len(runs)
		}
		runs = append(runs, run)
	}
	for of, at := range newest {
		if stored, found := decided[of]; found {
			runs[at] = worth(runs[at], stored)
		}
	}
	return runs
}

// worth is a run with what a verdict is worth.
func worth(run runplan.Run, stored report.Report) runplan.Run {
	run.Decision, run.Accepts = runplan.DecisionOf(stored), len(stored.Verdict.Accepted) > 0
	run.ValidUntil, _ = standing.ValidUntil(stored)
	again := func(cause string) bool { return strings.HasPrefix(cause, judgedAgain) }
	run.Differs = slices.ContainsFunc(stored.Standing.Ended, again)
	run.Changed = slices.ContainsFunc(stored.Standing.Ended, func(cause string) bool { return !again(cause) })
	return run
}

// runOf is a run without what only its report has.
func (c *controller) runOf(recorded record.Record) runplan.Run {
	run := runplan.Run{
		ID: recorded.ID, Target: recorded.Target, Requester: recorded.Requester, Generation: recorded.Generation, Began: recorded.StartTime,
		Selection: recorded.Selection, Ended: recorded.CompletionTime,
	}
	switch {
	case recorded.Phase.Final() && recorded.ToolVersion != c.options.Run.Hooks.ToolVersion:
		run.Selection += " by version " + recorded.ToolVersion // another version may find something else
	case run.Selection == c.selection:
		run.Selection = ""
	}
	return run
}

// outdate states in the record that its verdict has ended because the cluster has changed,
// for the readers that only compare times, such as the cluster-version operator. What could
// not be read may be unchanged, and does not end a verdict for good.
func (c *controller) outdate(ctx context.Context, recorded record.Record, causes []string, now time.Time) {
	i := slices.IndexFunc(causes, func(cause string) bool { return fingerprint.IsChange(cause) })
	if i < 0 || recorded.Ended != "" {
		return
	}
	if err := c.records.Outdate(ctx, recorded.ID, causes[i], now); err != nil {
		c.options.Logger.Warn("the end of a verdict could not be recorded", "run", recorded.ID, "cause", causes[i], "error", err)
	}
}

// withAttempts adds the runs of this process that the records do not have.
func withAttempts(recorded, own []runplan.Run) []runplan.Run {
	all := slices.Clone(recorded)
	for _, run := range own {
		known := slices.ContainsFunc(recorded, func(r runplan.Run) bool {
			same := r.Covered() == run.Covered()
			return same && (run.InProgress() && r.InProgress() && r.Ours() || run.ID != "" && r.ID == run.ID)
		})
		if !known {
			all = append(all, run)
		}
	}
	return all
}

// after evaluates the last update, and publishes the judgement in the metrics and in an event about ClusterVersion.
type after struct {
	follower *followup.Follower
	metrics  *announcement.Metrics
	recorder events.EventRecorder
	// changed has the statuses of the UpdatePreflights written.
	changed func()
	// began is when the process began, by the clock of the cluster: an event is only about a later judgement.
	began time.Time
	// history is the history of ClusterVersion for which the follower was woken. Only Reconcile uses it.
	history string
}

func newAfter(c *cluster.Cluster, options Options, metrics *announcement.Metrics, recorder events.EventRecorder, changed func()) *after {
	a := &after{metrics: metrics, recorder: recorder, changed: changed, began: c.Now().Truncate(time.Second)}
	a.follower = followup.New(c, followup.Options{
		Inspection: inspection.Options{Watched: true, Monitoring: options.Monitoring, Settings: options.Run.Settings()},
		Pauses:     options.After, Logger: options.Logger, Changed: a.state,
	})
	return a
}

// observe has the last update evaluated again when the history of ClusterVersion has changed.
func (a *after) observe(version *configv1.ClusterVersion) {
	history := ""
	if past := version.Status.History; len(past) > 0 {
		history = fmt.Sprint(past[0].State, past[0].Image, past[0].StartedTime, past[0].CompletionTime)
	}
	if history != a.history {
		a.history = history
		a.follower.Wake()
	}
}

// maxNote bounds the text of an event, in bytes: the API server accepts 1024.
const maxNote = 800

// state states a judgement.
func (a *after) state(made afterupdate.Report) {
	a.metrics.SetAfter(made.Update.To, made.Decision)
	a.changed()
	if judged, err := time.Parse(time.RFC3339, made.Samples.Last); err != nil || judged.Before(a.began) || !made.Decision.Final() {
		return
	}
	kind := corev1.EventTypeWarning
	if made.Decision == afterupdate.Good {
		kind = corev1.EventTypeNormal
	}
	about := &configv1.ClusterVersion{}
	about.Name = name
	about.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
	a.recorder.Eventf(about, nil, kind, "Update"+string(made.Decision), "AfterUpdate", "%s: %s", words.Line(made.Update.To, maxNote),
		words.Line(made.Message, maxNote/2))
}
