package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/fingerprint"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
)

// Interruption says what becomes of a run that the user ends before its time.
type Interruption string

// The ways to end a run before its time.
const (
	// CleanUp deletes what the run has in the cluster.
	CleanUp Interruption = "clean"
	// Detach leaves the checks at work: the next Run for the release, on
	// whatever machine, goes on with them.
	Detach Interruption = "detach"
)

// recorded conducts the run as its holder, with a record in the cluster. Where
// somebody else is at it already, it tells what they come to, and goes on in
// their place when they are gone.
func (s *session) recorded(ctx, limited context.Context) (report.Report, error) {
	s.records = record.New(s.config.Cluster.Kubernetes)
	held, finished, err := s.claim(limited)
	if err != nil {
		return report.Report{}, err
	}
	if held == nil {
		return s.attached(finished)
	}
	told, err := s.hold(ctx, limited, held)
	if !errors.Is(err, record.ErrTakenOver) {
		return told, err
	}
	s.step("somebody else has taken run %s over: waiting for what it comes to", s.id)
	finished, err = s.records.Follow(limited, s.id, s.heard())
	if err != nil {
		return report.Report{}, fmt.Errorf("run %s was taken over by somebody else; run the preflight again: %w", s.id, err)
	}
	return s.attached(finished)
}

// claim makes this process the holder of the run, or waits for what another
// holder comes to: one of the two is returned.
func (s *session) claim(ctx context.Context) (*record.Held, record.Record, error) {
	holder := holder()
	for {
		held, err := s.records.Begin(ctx, s.intent(), holder)
		busy, isBusy := errors.AsType[*record.BusyError](err)
		if !isBusy {
			return held, record.Record{}, s.unclaimed(err)
		}
		s.config.Progress(Event{Run: busy.ID})
		s.step("run %s of this release is held by %s: waiting for what it comes to", busy.ID, busy.Holder)
		finished, err := s.records.Follow(ctx, busy.ID, s.heard())
		if !errors.Is(err, record.ErrAbandoned) {
			return nil, finished, err
		}
		s.step("run %s was left by %s: taking it over", busy.ID, busy.Holder)
	}
}

// unclaimed explains why a run could not begin.
func (s *session) unclaimed(err error) error {
	if other, ok := errors.AsType[*record.SelectionError](err); ok {
		return badInput("run %s of this release is on its way, and looks at something else (%s instead of %s). Attach to it: oc preflight attach %[1]s; or end it: oc preflight cancel %[1]s",
			other.ID, other.Selection, s.selection())
	}
	return err
}

// holder names this process among all that may want to hold a run.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return host + "_" + uuid.NewString()
}

// heard passes on what another holder has heard, each result once.
func (s *session) heard() func(record.Record) {
	told := map[string]bool{}
	return func(now record.Record) {
		for _, result := range now.Results {
			if !told[result.Check] {
				told[result.Check] = true
				s.config.Progress(Event{Answered: result.Findings})
			}
		}
	}
}

// intent is what is recorded before the first Job exists.
func (s *session) intent() record.Intent {
	intent := record.Intent{
		ID: s.id, Digest: s.digest(), Image: s.target.image, From: s.cluster.Version, To: s.target.version,
		ToolVersion: s.config.ToolVersion, Selection: s.selection(),
	}
	for _, check := range s.plan.Checks {
		intent.Checks = append(intent.Checks, check.Name)
	}
	return intent
}

// digest is that of the release. One that could not be read has it in its pull
// spec.
func (s *session) digest() string {
	if s.payload != nil {
		return s.payload.Digest
	}
	_, digest, _ := strings.Cut(s.target.image, "@")
	return digest
}

// selected is what a run looks at, of all that there is. Runs of one release that
// differ in it are not the same.
type selected struct {
	Only              []string `json:"only,omitempty"`
	Skip              []string `json:"skip,omitempty"`
	Images            string   `json:"images"`
	IgnoredAlerts     []string `json:"ignoredAlerts,omitempty"`
	IgnoredNamespaces []string `json:"ignoredNamespaces,omitempty"`
}

func (s *session) selection() string {
	sorted := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	text, err := json.Marshal(selected{
		Only: sorted(s.config.Only), Skip: sorted(s.config.Skip), Images: string(s.config.Images),
		IgnoredAlerts: sorted(s.config.IgnoredAlerts), IgnoredNamespaces: sorted(s.config.IgnoredNamespaces),
	})
	if err != nil {
		return err.Error() // lists of strings: there is nothing that could fail
	}
	return string(text)
}

// hold conducts the run until it is told, and sees to its record.
func (s *session) hold(ctx, limited context.Context, held *record.Held) (report.Report, error) {
	bound, cancel := s.bound(ctx, limited, held)
	defer cancel()
	holding, release := held.Hold(bound)
	defer release()
	s.take(held)
	told, err := s.conduct(holding)
	why := context.Cause(holding)
	if errors.Is(why, record.ErrTakenOver) {
		return report.Report{}, fmt.Errorf("run %s: %w", s.id, why)
	}
	if err := flush(ctx, held); errors.Is(err, record.ErrTakenOver) {
		return report.Report{}, fmt.Errorf("run %s: %w", s.id, err)
	}
	interrupted := ctx.Err() != nil && told.Run.Phase == report.PhaseInterrupted
	if interrupted && s.interrupted() == Detach {
		return s.detach(ctx, held, told)
	}
	told, failed := s.finish(ctx, told, err)
	return told, errors.Join(failed, s.close(ctx, held, told, why))
}

// bound is limited, the time of this run, or as much again from now on for a run
// that was taken over: waiting for its last holder does not count.
func (s *session) bound(ctx, limited context.Context, held *record.Held) (context.Context, context.CancelFunc) {
	if !held.Resumed() {
		return limited, func() {}
	}
	s.deadline = s.now().Add(s.config.Timeout)
	return context.WithTimeout(ctx, s.config.Timeout)
}

// take goes on with the run that is held: with its ID, its start, and the
// results that are in.
func (s *session) take(held *record.Held) {
	taken := held.Record()
	s.held, s.id, s.start = held, taken.ID, taken.StartTime
	s.answers = map[string][]finding.Finding{}
	for _, result := range taken.Results {
		if settled(result.Findings) {
			s.answers[result.Check] = result.Findings
		}
	}
	s.config.Progress(Event{Run: s.id})
	if held.Resumed() {
		s.step("going on with run %s: %d of %d checks have answered", s.id, len(s.answers), len(taken.Checks))
	}
	s.replan()
}

// settled results are not asked for again. What could not be told may be known
// by now.
func settled(findings []finding.Finding) bool {
	return len(findings) > 0 && !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Outcome == preflight.Unknown })
}

// answered records what one source said, and passes it on. An interruption is no
// result.
func (s *session) answered(source collector.Source, findings []finding.Finding) {
	if _, known := s.answers[source.Name]; s.held != nil && s.awaited[source.Name] && !known && !interruption(findings) {
		s.held.Put(record.Result{Check: source.Name, Findings: findings})
	}
	s.look.answered(source, findings)
}

func interruption(findings []finding.Finding) bool {
	return slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Reason == "Interrupted" })
}

// flush has the results recorded before the Jobs go that they were read from, so
// that nobody who goes on with this run has to ask again. An error that is not a
// takeover is met again when the record is closed.
func flush(ctx context.Context, held *record.Held) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return held.Flush(ctx)
}

// interrupted asks what is to become of the run.
func (s *session) interrupted() Interruption {
	if s.config.Interrupted == nil {
		return CleanUp
	}
	return s.config.Interrupted(s.id)
}

// detach leaves the checks at work, for whoever comes back.
func (s *session) detach(ctx context.Context, held *record.Held, told report.Report) (report.Report, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if s.config.Verdict != nil {
		s.config.Verdict(told)
	}
	return told, held.Detach(ctx)
}

// recordTimeout bounds the last words about a run.
const recordTimeout = 30 * time.Second

// close writes the end of the run into its record.
func (s *session) close(ctx context.Context, held *record.Held, told report.Report, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	phase := record.Phase(told.Run.Phase)
	switch {
	case errors.Is(why, record.ErrCanceled):
		phase = record.Canceled
	case told.Run.Phase == "": // there is no report
		return held.Finish(ctx, record.Interrupted, "", nil, nil)
	}
	text, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("the report cannot be recorded: %w", err)
	}
	return held.Finish(ctx, phase, string(told.Verdict.Decision), text, fingerprint.Read(ctx, s.snapshot))
}

// attached tells what another holder came to, judged by what this user accepts.
func (s *session) attached(finished record.Record) (report.Report, error) {
	told, err := Stored(finished)
	if err != nil {
		return report.Report{}, err
	}
	if len(finished.Report) > 0 {
		told = s.refold(told)
	}
	if s.config.Verdict != nil {
		s.config.Verdict(told)
	}
	return told, nil
}

// Attach makes of config what goes on with that run: its release, and what it
// looks at.
func Attach(config Config, run record.Record) (Config, error) {
	var chosen selected
	if err := json.Unmarshal([]byte(run.Selection), &chosen); err != nil {
		return Config{}, fmt.Errorf("the record of run %s does not say what it looks at: %w", run.ID, err)
	}
	config.Target = Target{Image: run.Image}
	config.Only, config.Skip, config.Images = chosen.Only, chosen.Skip, image.Mode(chosen.Images)
	config.IgnoredAlerts, config.IgnoredNamespaces = chosen.IgnoredAlerts, chosen.IgnoredNamespaces
	return config, nil
}
