// Package collector answers: has every check reported?
//
// [Collect] runs all sources at once. A source that fails, panics or reports
// nothing becomes an Unknown finding instead of a gap, so that the number of
// results always equals the number of checks.
package collector

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
)

// Collection is the result of all sources.
type Collection struct {
	// Findings are in the order of the sources.
	Findings []finding.Finding
	// Expected counts the sources.
	Expected int
	// Missing names the sources that reported nothing of their own, sorted. Each
	// has an Unknown finding with the cause.
	Missing []string
}

// Collect runs all sources concurrently and returns when all have ended. It
// calls done with the findings of each source as it ends, one call at a time.
// Canceling ctx ends the sources; findings collected before are kept.
func Collect(ctx context.Context, sources []Source, done func(Source, []finding.Finding)) Collection {
	results := make([]result, len(sources))
	var wait sync.WaitGroup
	var mutex sync.Mutex
	for i, source := range sources {
		wait.Go(func() {
			results[i] = source.run(ctx)
			mutex.Lock()
			defer mutex.Unlock()
			done(source, results[i].findings)
		})
	}
	wait.Wait()
	collection := Collection{Expected: len(sources)}
	for i, result := range results {
		collection.Findings = append(collection.Findings, result.findings...)
		if !result.reported {
			collection.Missing = append(collection.Missing, sources[i].Name)
		}
	}
	slices.Sort(collection.Missing)
	return collection
}

// And is the result of the sources of both collections.
func (c Collection) And(other Collection) Collection {
	missing := slices.Concat(c.Missing, other.Missing)
	slices.Sort(missing)
	return Collection{Findings: slices.Concat(c.Findings, other.Findings), Expected: c.Expected + other.Expected, Missing: missing}
}

// Merged is the collection with one finding for the checks of a kind that miss the same resources
// of an archive, but for findings whose name is accepted. As many checks have reported as before.
func (c Collection) Merged(accepted map[string]string) Collection {
	c.Findings = check.MergeGaps(c.Findings, accepted)
	return c
}

// Expectation counts the sources, and the ones that have reported.
func (c Collection) Expectation() verdict.Expectation {
	return verdict.Expectation{Checks: c.Expected, Reported: c.Expected - len(c.Missing), Missing: c.Missing}
}

// Source is one check that is ready to run.
type Source struct {
	// Name is the name of the check. It names the Unknown finding of a check that was inconclusive.
	Name string
	Kind finding.Source
	// Collect returns at least one finding. A failing check is a finding. An error
	// means that the check was inconclusive, never that it failed.
	Collect func(context.Context) ([]finding.Finding, error)
}

// Known is a source whose findings are there already.
func Known(name string, kind finding.Source, findings ...finding.Finding) Source {
	return Source{Name: name, Kind: kind, Collect: func(context.Context) ([]finding.Finding, error) { return findings, nil }}
}

// Bind makes sources of built-in checks, for one update of one cluster.
func Bind(subject check.Subject, lists ...[]check.Check) []Source {
	var sources []Source
	for _, c := range slices.Concat(lists...) {
		sources = append(sources, Source{Name: c.Name, Kind: c.Kind, Collect: func(ctx context.Context) ([]finding.Finding, error) {
			return c.Examine(ctx, subject)
		}})
	}
	return sources
}

type result struct {
	findings []finding.Finding
	// reported is true when the source itself returned findings.
	reported bool
}

// The reasons for which a check itself is defective.
var (
	ReasonPanic = finding.NewReason("Panic", finding.Explanation{
		Meaning: "A check crashed.",
		Cause:   "The check has a bug.",
		Remedy:  "Report the bug to the authors of the check: the cluster is not at fault.",
	})
	ReasonNoResult = finding.NewReason("NoResult", finding.Explanation{
		Meaning: "A check ended without a result.",
		Cause:   "The check has a bug.",
		Remedy:  "Report the bug to the authors of the check: the cluster is not at fault.",
	})
)

func (s Source) run(ctx context.Context) (outcome result) {
	defer func() {
		if cause := recover(); cause != nil {
			crashed := finding.Unknown(ReasonPanic, "the check panicked: %v", cause)
			outcome = result{findings: s.complete(crashed)}
		}
	}()
	findings, err := s.Collect(ctx)
	if err != nil {
		return result{findings: s.complete(append(findings, inconclusive(err))...)}
	}
	if len(findings) == 0 {
		return result{findings: s.complete(finding.Unknown(ReasonNoResult, "the check returned no findings"))}
	}
	return result{findings: s.complete(findings...), reported: true}
}

// complete sets the kind of check, whether the finding blocks, and the name where there is none.
func (s Source) complete(findings ...finding.Finding) []finding.Finding {
	for i := range findings {
		findings[i] = findings[i].From(s.Kind).Judged(findings[i].Outcome)
		if findings[i].Name == "" {
			findings[i].Name = s.Name
		}
	}
	return findings
}

// The reasons for which a check ended with an error.
var (
	ReasonInterrupted = finding.NewReason("Interrupted", finding.Explanation{
		Meaning: "A check was still running when the run was canceled.",
		Cause:   "Ctrl-C, \"cancel\", or the end of the process that ran the preflight.",
		Remedy:  "Run the preflight again and let it finish.",
	})
	ReasonTimeout = finding.NewReason("Timeout", finding.Explanation{
		Meaning: "A check did not finish before the deadline of the run.",
		Cause:   "The check is slow or waits for a node, or the timeout is too short.",
		Remedy:  "Run the preflight again with a longer timeout.",
	})
	ReasonForbidden = finding.NewReason("Forbidden", finding.Explanation{
		Meaning: "A check tried to read something that it has no permission to read.",
		Cause:   "The user or ServiceAccount that runs the check lacks a role.",
		Remedy:  "Bind the roles that \"auth\" prints.",
	})
	ReasonUnauthorized = finding.NewReason("Unauthorized", finding.Explanation{
		Meaning: "The API server rejects the credentials.",
		Cause:   "The token has expired or was revoked.",
		Remedy:  "Log in again.",
	})
	ReasonError = finding.NewReason("Error", finding.Explanation{
		Meaning: "A check could not be completed, for a cause that has no reason of its own. The message names the cause.",
		Cause:   "An object could not be read, or a server did not respond.",
		Remedy:  "Fix the cause in the message, then run the preflight again.",
	})
)

func inconclusive(err error) finding.Finding {
	switch {
	case errors.Is(err, context.Canceled):
		return finding.Unknown(ReasonInterrupted, "%v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return finding.Unknown(ReasonTimeout, "%v", err).Do(finding.Retry(finding.OptionTimeout))
	case apierrors.IsForbidden(err):
		return finding.Unknown(ReasonForbidden, "%v", err).
			Remedy("Run the preflight as a user with permission to read the objects in the message.").Do(finding.Roles())
	case apierrors.IsUnauthorized(err):
		return finding.Unknown(ReasonUnauthorized, "%v", err).Do(finding.OnThisMachine("oc login"))
	}
	return finding.Unknown(ReasonError, "%v", err)
}
