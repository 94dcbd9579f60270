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
)

// Source is one check that is ready to run.
type Source struct {
	// Name is the name of the check. It names the Unknown finding of a check that
	// was inconclusive.
	Name string
	// Kind is the kind of check, as the report has it.
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
