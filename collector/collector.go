// Package collector answers: has every check reported?
//
// [Collect] runs all sources at once. A source that fails, panics or reports
// nothing becomes an Unknown finding instead of a gap, so that the number of
// results always equals the number of checks.
package collector

import (
	"context"
	"slices"
	"sync"

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

// Expectation counts the sources and those that have reported.
func (c Collection) Expectation() verdict.Expectation {
	return verdict.Expectation{Checks: c.Expected, Reported: c.Expected - len(c.Missing), Missing: c.Missing}
}
