package record

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reader reads what a record has besides its head. A part with results never
// changes, so it is read once.
type reader struct {
	get   func(ctx context.Context, name string) (*corev1.ConfigMap, error)
	owner types.UID
	parts []part
	used  budget
}

// part is a full chunk, and what is in it: nothing when it cannot be read.
type part struct {
	chunk   []byte
	results []Result
}

// read is the record that has this head. Results that cannot be read are not in:
// their Jobs can be asked again. Of a run that has ended, there must be a report.
func (r *reader) read(ctx context.Context, object *corev1.ConfigMap) (Record, error) {
	found, err := parse(object)
	if err != nil {
		return Record{}, err
	}
	record := found.record
	if record.Results, err = r.results(ctx, found, object.UID); err != nil {
		return Record{}, err
	}
	if !record.Phase.final() {
		return record, nil
	}
	packed, err := r.report(ctx, found)
	if err != nil {
		return Record{}, err
	}
	if record.Report, record.Fingerprint, err = unpackReport(packed); err != nil {
		return Record{}, fmt.Errorf("the report: %w", err)
	}
	return record, nil
}

// results are those of all chunks, sorted by check.
func (r *reader) results(ctx context.Context, of head, owner types.UID) ([]Result, error) {
	if r.owner != owner || len(r.parts) > of.resultParts {
		*r = reader{get: r.get, owner: owner}
	}
	for len(r.parts) < of.resultParts {
		object, err := r.get(ctx, partName(of.record.ID, len(r.parts)+1))
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, r.part(object))
	}
	used := r.used
	open, err := used.results(of.results)
	if err != nil {
		open = nil
	}
	byCheck := map[string]Result{}
	for _, part := range append(slices.Clip(r.parts), part{results: open}) {
		for _, result := range part.results {
			byCheck[result.Check] = result
		}
	}
	results := make([]Result, 0, len(byCheck))
	for _, result := range byCheck {
		results = append(results, result)
	}
	slices.SortFunc(results, func(a, b Result) int { return strings.Compare(a.Check, b.Check) })
	return results, nil
}

// part is what an object has, if it can be read.
func (r *reader) part(object *corev1.ConfigMap) part {
	if object == nil {
		return part{}
	}
	chunk := object.BinaryData[keyPart]
	results, err := r.used.results(chunk)
	if err != nil {
		return part{}
	}
	return part{chunk: chunk, results: results}
}

// report is the compressed report, from where it is.
func (r *reader) report(ctx context.Context, of head) ([]byte, error) {
	packed := of.report
	for i := range of.reportParts {
		name := partName(of.record.ID, of.resultParts+i+1)
		object, err := r.get(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case object == nil:
			return nil, fmt.Errorf("a part of the report is gone: there is no configmap %q", name)
		case len(packed)+len(object.BinaryData[keyPart]) > maxText:
			return nil, fmt.Errorf("the report is longer than %d bytes", maxText)
		}
		packed = append(packed, object.BinaryData[keyPart]...)
	}
	return packed, nil
}
