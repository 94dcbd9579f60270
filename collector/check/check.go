// Package check answers: what is a built-in check? It is a name, the updates
// that it concerns, and one function that looks; gates, risks and health checks
// are made of it.
package check

import (
	"context"
	"fmt"

	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Check looks at one thing before one update of one cluster. It is a
// collector.Source.
type Check struct {
	// Title is the name of the check, and of every finding that has none. Where
	// CVO has a name for it, it is that.
	Title string
	// Kind says what may bypass its findings.
	Kind preflight.Source
	// Update is what the check is asked about.
	Update update.Update
	// Concerns says which updates the check is about; nil means all. Others get
	// a Skipped finding.
	Concerns func(update.Update) bool
	// Look answers with at least one finding. Fail and Unknown stand in the way
	// of the update; what is worth knowing but does not is a Warn. An error
	// means "could not tell".
	Look func(context.Context) ([]preflight.Finding, error)
}

// Name implements collector.Source.
func (c Check) Name() string { return c.Title }

// Source implements collector.Source.
func (c Check) Source() preflight.Source { return c.Kind }

// Collect implements collector.Source. It names the target in every finding
// that stands in its way.
func (c Check) Collect(ctx context.Context) ([]preflight.Finding, error) {
	if c.Concerns != nil && !c.Concerns(c.Update) {
		return []preflight.Finding{{
			Name: c.Title, Outcome: preflight.Skipped, Reason: "NotConcerned",
			Message: fmt.Sprintf("it does not concern the update from %s to %s (%s)", c.Update.From, c.Update.To, c.Update.Kind()),
		}}, nil
	}
	found, err := c.Look(ctx)
	findings := make([]preflight.Finding, 0, len(found))
	for _, finding := range found {
		findings = append(findings, c.complete(finding))
	}
	return findings, err
}

// complete fills in what is the same for all findings.
func (c Check) complete(finding preflight.Finding) preflight.Finding {
	if finding.Name == "" {
		finding.Name = c.Title
	}
	switch finding.Outcome {
	case preflight.Fail, preflight.Unknown:
		finding.Blocks = true
		finding.BlockedTargets = []string{c.Update.To.String()}
	case preflight.Pass, preflight.Warn, preflight.Skipped:
	}
	return finding
}
