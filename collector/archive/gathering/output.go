package gathering

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/redaction"
	"github.com/openshift/update-preflight/collector/archive/reduction"
)

type destination interface {
	// single takes an object that has a file of its own.
	single(content map[string]any, of source) error
	list(of source) sink
}

// sink is where the objects of a list go.
type sink interface {
	add(content map[string]any) error
	// finish completes the list, whose last page had a resourceVersion, and abandon leaves it incomplete.
	finish(revision string) error
	abandon() error
}

type output struct {
	files Files
	index inventory.Collection
	// names replaces names; nil where nothing is redacted.
	names *redaction.Names
}

func (o *output) text(text string) string {
	text = reduction.WithoutUsers(text)
	if o.names != nil {
		text = o.names.Text(text)
	}
	return text
}

func (o *output) value(data json.RawMessage) (json.RawMessage, error) {
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	value = reduction.WithoutUsersIn(value)
	if o.names != nil {
		value = o.names.Object(value)
	}
	return json.Marshal(value)
}

func (o *output) learn(data json.RawMessage) error {
	if o.names == nil {
		return nil
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return err
	}
	o.names.Learn(value)
	return nil
}

func (o *output) list(of source) sink {
	return &lists{output: o, source: of, ended: map[string]bool{}}
}

func (o *output) single(content map[string]any, of source) error {
	made, err := encode(content)
	if err != nil {
		return err
	}
	place := layout.Place{Group: of.resource.Group, Resource: of.resource.Name, Namespace: made.namespace, Name: made.name}
	return o.write(place.Path(), made.text)
}

// writeAlerts writes the alerts; nil for none.
func (o *output) writeAlerts(alerts json.RawMessage) error {
	if alerts == nil {
		return nil
	}
	alerts, err := o.value(alerts)
	if err != nil {
		return err
	}
	return o.write(alertsFile, fmt.Appendf(nil, `{"status":"success","data":%s}`+"\n", alerts))
}

func (o *output) writeIndex() error {
	if err := o.replaceNames(); err != nil {
		return err
	}
	slices.Sort(o.index.Complete)
	slices.Sort(o.index.Unserved)
	content, err := json.MarshalIndent(o.index, "", "  ")
	if err != nil {
		return err
	}
	return o.write(inventory.CollectionFile, append(content, '\n'))
}

func (o *output) replaceNames() error {
	o.index.Metrics = o.text(o.index.Metrics)
	for i, name := range o.index.Nonexistent {
		o.index.Nonexistent[i] = o.text(name)
	}
	for i := range o.index.Missing {
		missing := &o.index.Missing[i]
		missing.Namespace, missing.Name, missing.Cause = o.text(missing.Namespace), o.text(missing.Name), o.text(missing.Cause)
	}
	queries := o.index.Queries
	if queries == nil {
		return nil
	}
	o.index.Queries = make(map[string]json.RawMessage, len(queries))
	for query, data := range queries {
		result, err := o.value(data)
		if err != nil {
			return err
		}
		o.index.Queries[o.text(query)] = result
	}
	return nil
}

func (o *output) write(name string, content []byte) error {
	if err := o.files.Begin(name); err != nil {
		return &writeError{err}
	}
	if _, err := o.files.Write(content); err != nil {
		return &writeError{errors.Join(err, o.files.Drop())}
	}
	if err := o.files.End(); err != nil {
		return &writeError{err}
	}
	return nil
}

// writeError is an error of the archive, and not of the cluster.
type writeError struct{ err error }

func (e *writeError) Error() string { return "the archive cannot be written: " + e.err.Error() }

func (e *writeError) Unwrap() error { return e.err }
