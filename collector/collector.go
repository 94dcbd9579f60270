// Package collector answers: has every check been heard? It asks all sources
// at once and makes sure that each of them is answered for: one that fails, or
// says nothing, becomes an Unknown finding instead of a gap.
package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Source is one check: the only thing that the collector knows how to ask.
type Source interface {
	// Name is the name of the check. It names the Unknown finding when the
	// check could not tell.
	Name() string
	// Source is the kind of source, as the report has it.
	Source() preflight.Source
	// Collect looks, and returns at least one finding. A failing check is a
	// finding. An error means "could not tell", never "no".
	Collect(ctx context.Context) ([]preflight.Finding, error)
}

// Collection is what all sources said.
type Collection struct {
	// Findings are in the order of the sources.
	Findings []preflight.Finding
	// Expected counts the sources asked.
	Expected int
	// Missing names the sources that gave no answer of their own, sorted. Each
	// has an Unknown finding that says why.
	Missing []string
}

// Collect asks all sources concurrently and returns when all have answered. It
// calls done, one call at a time, with the findings of each source as it
// answers. Canceling ctx makes the sources return; it does not lose the
// findings that are in already.
func Collect(ctx context.Context, sources []Source, done func(Source, []preflight.Finding)) Collection {
	answers := make([][]preflight.Finding, len(sources))
	attested := make([]bool, len(sources))
	var wait sync.WaitGroup
	var mutex sync.Mutex
	for i, source := range sources {
		wait.Go(func() {
			answers[i], attested[i] = ask(ctx, source)
			mutex.Lock()
			defer mutex.Unlock()
			done(source, answers[i])
		})
	}
	wait.Wait()
	collection := Collection{Expected: len(sources)}
	for i, answer := range answers {
		collection.Findings = append(collection.Findings, answer...)
		if !attested[i] {
			collection.Missing = append(collection.Missing, sources[i].Name())
		}
	}
	slices.Sort(collection.Missing)
	return collection
}

// ask returns what the source found, and whether the source itself said so.
func ask(ctx context.Context, source Source) (findings []preflight.Finding, attested bool) {
	defer func() {
		if cause := recover(); cause != nil {
			findings, attested = []preflight.Finding{unknown(source, "Panic", fmt.Sprintf("the check crashed: %v", cause))}, false
		}
	}()
	findings, err := source.Collect(ctx)
	for i := range findings {
		findings[i].Source = source.Source()
	}
	if err != nil {
		return append(findings, unknown(source, reasonFor(err), err.Error())), false
	}
	if len(findings) == 0 {
		return []preflight.Finding{unknown(source, "NoResult", "the check ended without saying anything")}, false
	}
	return findings, true
}

func unknown(source Source, reason, message string) preflight.Finding {
	return preflight.Finding{
		Name: source.Name(), Source: source.Source(), Outcome: preflight.Unknown, Reason: reason,
		Message: message, Remediation: remedyFor(reason), Blocks: true,
	}
}

func reasonFor(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "Interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		return "Timeout"
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsUnauthorized(err):
		return "Unauthorized"
	}
	return "Error"
}

func remedyFor(reason string) string {
	switch reason {
	case "Interrupted":
		return "Run the preflight again and let it finish."
	case "Timeout":
		return "Run the preflight again with a longer --timeout."
	case "Forbidden":
		return "Run the preflight as a user who may read what the message names."
	case "Unauthorized":
		return "Log in again: oc login"
	case "Panic", "NoResult":
		return "Report it to the authors of the check: this is a defect of the check, not of the cluster."
	}
	return "Put right what the message names, then run the preflight again."
}
