package announcement

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

// Metrics are the verdicts of the targets, for Prometheus. The number of series is
// bounded by the number of targets, which is at most MaxAhead and the selected one.
type Metrics struct {
	up, decision, findings, completion, after *prometheus.Desc

	mutex   sync.Mutex
	current bool
	targets []runplan.Target
	decided runplan.Verdicts
	// updated is the release of the last update, and judged its judgement; empty for none.
	updated string
	judged  afterupdate.Decision
}

// NewMetrics returns metrics without verdicts.
func NewMetrics() *Metrics {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("update_preflight_"+name, help, labels, nil)
	}
	return &Metrics{
		up:         describe("up", "1 while the controller leads and knows the verdicts."),
		decision:   describe("verdict", "1 for the decision of the last valid preflight of a target; Undecided without one.", "target", "digest", "decision", "guard"),
		findings:   describe("findings", "Findings of the last preflight of a target.", "target", "outcome", "blocks"),
		completion: describe("completion_timestamp_seconds", "When the last preflight of a target ended.", "target"),
		after:      describe("after_update", "1 for the decision about the last update, in comparison with the baseline before it.", "target", "decision"),
	}
}

// Set replaces what is exported. current is false when the verdicts could not be read.
// The first target is the guard: the one that other programs act on.
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
