// Package progress answers: what is a run doing right now?
//
// A program implements [Observer]; the stages of a run report to a [Serial].
package progress

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/jobs"
)

// Observer follows a run. Its methods are called one at a time, and must return quickly.
type Observer interface {
	// Started reports the ID of the run as soon as it is recorded.
	Started(run string)
	// Step reports the next step of the run, in words.
	Step(step string)
	// Status reports a change of one check.
	Status(status jobs.Status)
	// Reported reports the findings of one check that has ended.
	Reported(findings []finding.Finding)
	// Decided reports the verdict, before the objects of the run are deleted.
	Decided(decided report.Report)
}

// Serial is an Observer that calls another one, one call at a time, and logs. Its own methods
// may be called concurrently.
type Serial struct {
	mutex    sync.Mutex
	observer Observer
	logger   *slog.Logger
}

// New returns a Serial for an observer and a logger, which may be nil.
func New(observer Observer, logger *slog.Logger) *Serial {
	if observer == nil {
		observer = discard{}
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Serial{observer: observer, logger: logger}
}

// Stepf is Step with a format.
func (s *Serial) Stepf(format string, args ...any) { s.Step(fmt.Sprintf(format, args...)) }

// Started implements Observer.
func (s *Serial) Started(run string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.logger.Debug("run recorded", "run", run)
	s.observer.Started(run)
}

// Step implements Observer.
func (s *Serial) Step(step string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.logger.Debug(step)
	s.observer.Step(step)
}

// Status implements Observer.
func (s *Serial) Status(status jobs.Status) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.logger.Debug("check", "check", status.Check, "state", status.State, "detail", status.Detail)
	s.observer.Status(status)
}

// Reported implements Observer.
func (s *Serial) Reported(findings []finding.Finding) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, f := range findings {
		s.logger.Debug("finding", "name", f.Name, "outcome", f.Outcome, "reason", f.Reason)
	}
	s.observer.Reported(findings)
}

// Decided implements Observer.
func (s *Serial) Decided(decided report.Report) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.logger.Debug("verdict", "decision", decided.Verdict.Decision)
	s.observer.Decided(decided)
}

type discard struct{}

func (discard) Started(string) {}

func (discard) Step(string) {}

func (discard) Status(jobs.Status) {}

func (discard) Reported([]finding.Finding) {}

func (discard) Decided(report.Report) {}
