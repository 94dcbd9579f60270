// Package announcement answers: how are the recorded verdicts stated outside of their
// records?
//
// A [Signaler] applies the [Signals] of the controller, objects in the cluster, after each
// change and when a verdict expires, and [Metrics] exports the verdicts to Prometheus.
package announcement

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/blang/semver/v4"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

const (
	signalsName = "signals"
	// signalRetry and maxSignalRetry are the first and the longest time until signals that
	// could not be applied are applied again.
	signalRetry    = time.Second
	maxSignalRetry = time.Minute
)

// Signals show the verdicts as objects in the cluster.
type Signals interface {
	// Apply applies all. It is called again at next, unless that is zero, and is not
	// called concurrently.
	Apply(ctx context.Context, state guard.State) (next time.Time, err error)
}

// Signaler applies the signals while the manager leads, apart from the runs: an error is
// logged and retried, and delays no run.
type Signaler struct {
	signals Signals
	now     func() time.Time
	// changed has room for one value: there is another state.
	changed chan struct{}

	mutex sync.Mutex
	// known is false until the verdicts were read once: the signals of the former leader
	// stay until then.
	known bool
	state guard.State
}

// NewSignaler returns a Signaler that has no verdicts yet.
func NewSignaler(signals Signals, now func() time.Time) *Signaler {
	return &Signaler{signals: signals, now: now, changed: make(chan struct{}, 1)}
}

// Set replaces the content of the signals. If the verdicts could not be read, the last ones stay until they expire, and
// the cause is reported.
func (s *Signaler) Set(cause error, targets []runplan.Target, decided runplan.Verdicts) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if cause != nil {
		s.state.Degraded = fmt.Sprintf("the verdicts could not be read: %v", cause)
	} else {
		s.known, s.state = true, guard.State{Verdicts: signaled(targets, decided)}
	}
	Signal(s.changed)
}

// signaled are the verdicts on the targets, of which the first is the chosen one.
func signaled(targets []runplan.Target, decided runplan.Verdicts) []guard.Verdict {
	targets = targets[:min(len(targets), guard.MaxVerdicts)]
	stated := make([]guard.Verdict, 0, len(targets))
	for i, target := range targets {
		stored, found := decided[target.Covered()]
		verdict := guard.Verdict{Digest: validDigest(target), Version: firstVersion(target.Version, stored.Target.Version), Chosen: i == 0}
		if found {
			Complete(&verdict, stored)
		}
		stated = append(stated, verdict)
	}
	return stated
}

// validDigest is the digest of a target; empty for one of another form.
func validDigest(target runplan.Target) string {
	if _, err := v1.NewHash(target.Digest()); err != nil {
		return ""
	}
	return target.Digest()
}

// firstVersion is the first text that is a semantic version; empty if none is.
func firstVersion(texts ...string) string {
	for _, text := range texts {
		if _, err := semver.Parse(text); err == nil {
			return text
		}
	}
	return ""
}

// maxRemarks bounds the remarks on a verdict.
const maxRemarks = 3

// Complete fills in the verdict on a target from a report with its standing. A Ready permits the update only if the
// report does.
func Complete(verdict *guard.Verdict, stored report.Report) {
	verdict.Decision, verdict.Refusal = string(stored.Verdict.Decision), stored.Refusal()
	verdict.ValidUntil, _ = standing.ValidUntil(stored)
	if stored.Standing != nil {
		verdict.Remark = words.Clauses(stored.Standing.Remarks, maxRemarks)
	}
}

// Reconcile implements reconcile.Reconciler: it applies the signals.
func (s *Signaler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	s.mutex.Lock()
	known, state := s.known, s.state
	s.mutex.Unlock()
	if !known {
		return reconcile.Result{}, nil
	}
	next, err := s.signals.Apply(ctx, state)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("could not apply the signals: %w", err)
	}
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(time.Second, next.Sub(s.now()))}, nil
}

// Watch makes the manager apply each new state while it leads.
func (s *Signaler) Watch(m manager.Manager) error {
	retry := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](signalRetry, maxSignalRetry)
	return builder.ControllerManagedBy(m).Named(signalsName).
		WithOptions(runtimecontroller.Options{RateLimiter: retry}).
		WatchesRawSource(source.TypedFunc[reconcile.Request](Announce(s.changed, reconcile.Request{}))).
		Complete(s)
}

// Announce sends the request after each value, until ctx is done.
func Announce(values <-chan struct{}, request reconcile.Request) func(context.Context,
	workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-values:
					queue.Add(request)
				}
			}
		}()
		return nil
	}
}

// Signal sends a value, unless one is waiting already.
func Signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Metrics are the verdicts of the targets, for Prometheus. The number of series is
// bounded by the number of targets, which is at most MaxAhead and the selected one.
type Metrics struct {
	up, decision, findings, completion, after *prometheus.Desc

	mutex   sync.Mutex
	current bool
	targets []runplan.Target
	decided runplan.Verdicts
	// The release of the last update, and its judgement; empty for none.
	updated string
	judged  afterupdate.Decision
}

// NewMetrics returns metrics without verdicts.
func NewMetrics() *Metrics {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("update_preflight_"+name, help, labels, nil)
	}
	return &Metrics{
		up: describe("up", "1 while the controller leads and knows the verdicts."),
		decision: describe("verdict", "1 for the decision of the last valid preflight of a target; Undecided without one.", "target", "digest",
			"decision", "guard"),
		findings:   describe("findings", "Findings of the last preflight of a target.", "target", "outcome", "blocks"),
		completion: describe("completion_timestamp_seconds", "When the last preflight of a target ended.", "target"),
		after: describe("after_update", "1 for the decision about the last update, compared with the baseline from "+
			"before it.", "target",
			"decision"),
	}
}

// Set replaces the exported values. current is false if the verdicts could not be read. The first target is the
// guard's: other programs act on it.
func (m *Metrics) Set(current bool, targets []runplan.Target, decided runplan.Verdicts) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.current, m.targets, m.decided = current, targets, decided
}

// SetAfter replaces the judgement of the last update; an empty decision is none.
func (m *Metrics) SetAfter(version string, decision afterupdate.Decision) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.updated, m.judged = version, decision
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.up, m.decision, m.findings, m.completion, m.after} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	to <- gauge(m.up, number(m.current))
	if m.judged != "" {
		for _, each := range afterupdate.Decisions() {
			to <- gauge(m.after, number(each == m.judged), m.updated, string(each))
		}
	}
	seen := map[string]bool{}
	for i, target := range m.targets {
		if seen[target.Version] {
			continue // two images of one version would be the same series
		}
		seen[target.Version] = true
		decided, found := m.decided[target.Covered()]
		decision := verdict.Undecided
		if found && decided.Holds() && (decided.Permits() || decided.Verdict.Decision != verdict.Ready) {
			decision = decided.Verdict.Decision
		}
		for _, each := range []verdict.Decision{verdict.Ready, verdict.Blocked, verdict.Undecided} {
			to <- gauge(m.decision, number(each == decision), target.Version, target.Digest(), string(each), strconv.FormatBool(i == 0))
		}
		if found {
			m.collectFindings(to, target.Version, decided)
		}
	}
}

func (m *Metrics) collectFindings(to chan<- prometheus.Metric, target string, decided report.Report) {
	type kind struct {
		outcome string
		blocks  bool
	}
	counts := map[kind]int{}
	for _, f := range decided.Findings {
		counts[kind{string(f.Outcome), f.Blocks}]++
	}
	for kind, count := range counts {
		to <- gauge(m.findings, float64(count), target, kind.outcome, strconv.FormatBool(kind.blocks))
	}
	if ended, err := time.Parse(time.RFC3339, decided.Run.CompletionTime); err == nil {
		to <- gauge(m.completion, float64(ended.Unix()), target)
	}
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// number is 1 for true and 0 for false.
func number(truth bool) float64 {
	return map[bool]float64{true: 1}[truth]
}
