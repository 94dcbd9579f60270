package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reader reads a record with its parts. A part with results never changes, so it is
// read once.
type Reader struct {
	store *Store
	// key is the key of the last read.
	key   loadedKey
	owner types.UID
	parts []part
	used  budget
}

// part is a full chunk with its results; empty if it is unreadable or not authentic.
type part struct {
	chunk          []byte
	results        []Result
	authentication Authentication
}

// NewReader returns a Reader of the records of a store.
func NewReader(store *Store) *Reader { return &Reader{store: store} }

// Read returns the record with this header. Unreadable results are omitted, since they
// can be read from their Jobs again. The report of an ended run must be readable. Of a
// record that is not authentic, only the metadata is returned.
func (r *Reader) Read(ctx context.Context, object *corev1.ConfigMap) (Record, error) {
	record, err := r.read(ctx, object)
	var unknown *FormatError
	switch {
	case errors.As(err, &unknown):
		return Record{}, unknown
	case err != nil:
		return Record{}, fmt.Errorf("could not read the record of run %s: %w", object.Labels[Label], err)
	}
	return record, nil
}

func (r *Reader) read(ctx context.Context, object *corev1.ConfigMap) (Record, error) {
	found, err := parse(object)
	if err != nil {
		return Record{}, err
	}
	metadata := found.record
	metadata.Decision = ""
	if metadata.Authentication, err = r.verify(ctx, object, found); err != nil || metadata.Authentication.State != Authentic {
		return metadata, err
	}
	record, err := r.content(ctx, found, object.UID)
	if unauthentic, ok := errors.AsType[*UnauthenticError](err); ok {
		metadata.Authentication = unauthentic.Authentication
		return metadata, nil
	}
	return record, err
}

// verify verifies a header. The key is read again if it may have been replaced.
func (r *Reader) verify(ctx context.Context, object *corev1.ConfigMap, of header) (Authentication, error) {
	if verified := r.key.verify(object, of.record.ID, object.UID); verified.State == Authentic {
		return verified, nil
	}
	loaded, err := readKey(ctx, r.store.client)
	if err != nil {
		return Authentication{}, err
	}
	r.key = loaded
	return r.key.verify(object, of.record.ID, object.UID), nil
}

// content returns the record of an authentic header. The error is an *UnauthenticError
// if a part is not authentic.
func (r *Reader) content(ctx context.Context, of header, owner types.UID) (Record, error) {
	record := of.record
	record.Authentication = Authentication{State: Authentic}
	var err error
	if record.Results, err = r.results(ctx, of, owner); err != nil {
		return Record{}, err
	}
	if !record.Phase.final() {
		return record, nil
	}
	if err := r.checkParts(of.record.ID); err != nil {
		return Record{}, err
	}
	packed, err := r.report(ctx, of)
	if err != nil {
		return Record{}, err
	}
	if record.Report, record.Fingerprint, err = unpackReport(packed); err != nil {
		return Record{}, fmt.Errorf("the report: %w", err)
	}
	return record, nil
}

// checkParts returns an *UnauthenticError if a part with results is not authentic.
func (r *Reader) checkParts(id string) error {
	for _, part := range r.parts {
		if part.authentication.State != Authentic {
			return &UnauthenticError{ID: id, Authentication: part.authentication}
		}
	}
	return nil
}

// results returns the results of all chunks, sorted by check.
func (r *Reader) results(ctx context.Context, of header, owner types.UID) ([]Result, error) {
	if r.owner != owner || len(r.parts) > of.resultParts {
		*r = Reader{store: r.store, key: r.key, owner: owner}
	}
	for len(r.parts) < of.resultParts {
		name := partName(of.record.ID, len(r.parts)+1)
		object, err := r.store.Object(ctx, name)
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, r.part(object, name, of.record.ID))
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

// part decodes the chunk of an object; nil if it does not exist.
func (r *Reader) part(object *corev1.ConfigMap, name, id string) part {
	if object == nil {
		return part{authentication: unauthentic(name, "does not exist")}
	}
	verified := r.key.verify(object, id, r.owner)
	if verified.State != Authentic {
		return part{authentication: verified}
	}
	chunk := object.BinaryData[keyPart]
	results, err := r.used.results(chunk)
	if err != nil {
		chunk = nil
	}
	return part{chunk: chunk, results: results, authentication: verified}
}

// report is the compressed report, from the header and its parts.
func (r *Reader) report(ctx context.Context, of header) ([]byte, error) {
	packed := of.report
	for i := range of.reportParts {
		name := partName(of.record.ID, of.resultParts+i+1)
		object, err := r.store.Object(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case object == nil:
			return nil, fmt.Errorf("a part of the report is missing: configmap %q does not exist", name)
		}
		if verified := r.key.verify(object, of.record.ID, r.owner); verified.State != Authentic {
			return nil, &UnauthenticError{ID: of.record.ID, Authentication: verified}
		}
		if len(packed)+len(object.BinaryData[keyPart]) > maxText {
			return nil, fmt.Errorf("the report is longer than %d bytes", maxText)
		}
		packed = append(packed, object.BinaryData[keyPart]...)
	}
	return packed, nil
}
