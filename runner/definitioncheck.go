package runner

import (
	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/runner/definition"
)

// definitionCheck is the check of the release's CustomResourceDefinitions; none for a
// release without any, or one that may not be read.
func (e execution) definitionCheck() []collector.Source {
	definitions := e.contents.definitions()
	if len(definitions) == 0 {
		return nil
	}
	subject, err := e.subject(e.target.Version)
	if err != nil {
		return nil // builtin reports it
	}
	return collector.Bind(subject, []check.Check{definition.Check(e.cluster.Dynamic, definitions)})
}
