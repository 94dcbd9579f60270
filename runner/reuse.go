package runner

import (
	"context"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/fingerprint"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
)

// reuse takes over the results of the last run of this release, if all its checks
// passed and still hold. What anybody may have put right since is asked again.
func (s *session) reuse(ctx context.Context) bool {
	if s.config.Rerun || len(s.plan.Checks) == 0 {
		return false
	}
	records := record.New(s.config.Cluster.Kubernetes)
	last, found, err := records.Latest(ctx, s.digest())
	if err != nil || !found || !s.covers(last) {
		return false
	}
	told, err := Stored(last)
	if err != nil {
		return false
	}
	if causes := ended(ctx, last, told, s.snapshot, s.now()); len(causes) > 0 {
		s.step("run %s of %s does not hold any more: %s", last.ID, told.Run.CompletionTime, causes[0])
		return false
	}
	s.answers = map[string][]finding.Finding{}
	for _, result := range last.Results {
		s.answers[result.Check] = result.Findings
	}
	s.earlier = &last
	s.earlierUntil, _ = holdsUntil(told) // which was not over, so it is known
	if err := records.Bury(ctx, last); err != nil {
		s.step("%v", err) // which keeps nobody from anything
	}
	s.step("the checks of the release passed in run %s of %s, which still holds; --rerun runs them again", last.ID, told.Run.CompletionTime)
	return true
}

// covers says whether a run looked at the same, and all of it was well.
func (s *session) covers(last record.Record) bool {
	if last.Selection != s.selection() || last.ToolVersion != s.config.ToolVersion {
		return false
	}
	passed := map[string]bool{}
	for _, result := range last.Results {
		passed[result.Check] = settled(result.Findings) && !slices.ContainsFunc(result.Findings, func(f finding.Finding) bool {
			return f.Outcome == preflight.Fail
		})
	}
	for _, check := range s.plan.Checks {
		if !passed[check.Name] {
			return false
		}
	}
	return true
}

// taken are the results that were taken over, as sources of this run.
func (s *session) taken() []collector.Source {
	var sources []collector.Source
	for _, check := range s.plan.Checks {
		sources = append(sources, collector.Known(check.Name, finding.SourceJob, s.answers[check.Name]...))
	}
	return sources
}

// validUntil is when a verdict that is made now ends to hold, if nothing ends it
// sooner: the results that it rests on may be older, and an acceptance may expire.
func (s *session) validUntil(accepted []string) string {
	until := s.now().Add(fingerprint.MaxAge)
	if s.earlier != nil {
		until = s.earlierUntil
	}
	if expiry := s.account(s.target.version).Until(accepted); !expiry.IsZero() && expiry.Before(until) {
		until = expiry
	}
	return until.UTC().Format(time.RFC3339)
}

// checksFrom is the run whose results were taken over, if any.
func (s *session) checksFrom() string {
	if s.earlier == nil {
		return ""
	}
	return s.earlier.ID
}

// left is how much time the run has.
func (s *session) left() time.Duration { return s.deadline.Sub(s.now()) }
