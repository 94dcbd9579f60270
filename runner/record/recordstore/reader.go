package recordstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// Reader reads a record with its parts. A part with results never changes, so it is read once.
type Reader struct {
	store *Store
	key   recordformat.LoadedKey
	owner types.UID
	parts []part
	used  recordformat.Budget
}

// part is a full chunk with its results; empty if it is unreadable or not authentic.
type part struct {
	chunk          []byte
	results        []record.Result
	authentication record.Authentication
}

// NewReader returns a Reader of the records of a store.
func NewReader(store *Store) *Reader { return &Reader{store: store} }

// Read returns the record with this header. Unreadable results are omitted, since they
// can be read from their Jobs again. The report of an ended run must be readable. Of a
// record that is not authentic, only the metadata is returned.
func (r *Reader) Read(ctx context.Context, object *corev1.ConfigMap) (record.Record, error) {
	found, err := r.read(ctx, object)
	var unknown *record.FormatError
	switch {
	case errors.As(err, &unknown):
		return record.Record{}, unknown
	case err != nil:
		return record.Record{}, fmt.Errorf("could not read the record of run %s: %w", object.Labels[record.Label], err)
	}
	return found, nil
}

func (r *Reader) read(ctx context.Context, object *corev1.ConfigMap) (record.Record, error) {
	header, err := recordformat.Parse(object)
	if err != nil {
		return record.Record{}, err
	}
	metadata := header.Record
	metadata.Decision = ""
	if metadata.Authentication, err = r.verify(ctx, object, header); err != nil || metadata.Authentication.State != record.Authentic {
		return metadata, err
	}
	found, err := r.content(ctx, header, object.UID)
	if unauthentic, ok := errors.AsType[*record.UnauthenticError](err); ok {
		metadata.Authentication = unauthentic.Authentication
		return metadata, nil
	}
	return found, err
}

// verify verifies a header. The key is read again if it may have been replaced.
func (r *Reader) verify(ctx context.Context, object *corev1.ConfigMap, of recordformat.Header) (record.Authentication, error) {
	if verified := r.key.Verify(object, of.Record.ID, object.UID); verified.State == record.Authentic {
		return verified, nil
	}
	loaded, err := readKey(ctx, r.store.client)
	if err != nil {
		return record.Authentication{}, err
	}
	r.key = loaded
	return r.key.Verify(object, of.Record.ID, object.UID), nil
}

// content returns the record of an authentic header. The error is an *UnauthenticError if a part is not authentic.
func (r *Reader) content(ctx context.Context, of recordformat.Header, owner types.UID) (record.Record, error) {
	found := of.Record
	found.Authentication = record.Authentication{State: record.Authentic}
	var err error
	if found.Results, err = r.results(ctx, of, owner); err != nil {
		return record.Record{}, err
	}
	if !found.Phase.Final() {
		return found, nil
	}
	if err := r.checkParts(of.Record.ID); err != nil {
		return record.Record{}, err
	}
	packed, err := r.report(ctx, of)
	if err != nil {
		return record.Record{}, err
	}
	if found.Report, found.Fingerprint, err = recordformat.UnpackReport(packed); err != nil {
		return record.Record{}, fmt.Errorf("the report: %w", err)
	}
	return found, nil
}

// checkParts returns an *UnauthenticError if a part with results is not authentic.
func (r *Reader) checkParts(id string) error {
	for _, part := range r.parts {
		if part.authentication.State != record.Authentic {
			return &record.UnauthenticError{ID: id, Authentication: part.authentication}
		}
	}
	return nil
}

// results returns the results of all chunks, sorted by check.
func (r *Reader) results(ctx context.Context, of recordformat.Header, owner types.UID) ([]record.Result, error) {
	if r.owner != owner || len(r.parts) > of.ResultParts {
		*r = Reader{store: r.store, key: r.key, owner: owner}
	}
	for len(r.parts) < of.ResultParts {
		name := recordformat.PartName(of.Record.ID, len(r.parts)+1)
		object, err := r.store.Object(ctx, name)
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, r.part(object, name, of.Record.ID))
	}
	used := r.used
	open, err := used.Results(of.Results)
	if err != nil {
		open = nil
	}
	byCheck := map[string]record.Result{}
	for _, part := range append(slices.Clip(r.parts), part{results: open}) {
		for _, result := range part.results {
			byCheck[result.Check] = result
		}
	}
	results := make([]record.Result, 0, len(byCheck))
	for _, result := range byCheck {
		results = append(results, result)
	}
	slices.SortFunc(results, func(a, b record.Result) int { return strings.Compare(a.Check, b.Check) })
	return results, nil
}

// part decodes the chunk of an object; nil if it does not exist.
func (r *Reader) part(object *corev1.ConfigMap, name, id string) part {
	if object == nil {
		return part{authentication: recordformat.Unauthentic(name, "does not exist")}
	}
	verified := r.key.Verify(object, id, r.owner)
	if verified.State != record.Authentic {
		return part{authentication: verified}
	}
	chunk := object.BinaryData[recordformat.KeyPart]
	results, err := r.used.Results(chunk)
	if err != nil {
		chunk = nil
	}
	return part{chunk: chunk, results: results, authentication: verified}
}

// report is the compressed report, from the header and its parts.
func (r *Reader) report(ctx context.Context, of recordformat.Header) ([]byte, error) {
	packed := of.Report
	for i := range of.ReportParts {
		name := recordformat.PartName(of.Record.ID, of.ResultParts+i+1)
		object, err := r.store.Object(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case object == nil:
			return nil, fmt.Errorf("a part of the report is missing: configmap %q does not exist", name)
		}
		if verified := r.key.Verify(object, of.Record.ID, r.owner); verified.State != record.Authentic {
			return nil, &record.UnauthenticError{ID: of.Record.ID, Authentication: verified}
		}
		if len(packed)+len(object.BinaryData[recordformat.KeyPart]) > recordformat.MaxText {
			return nil, fmt.Errorf("the report is longer than %d bytes", recordformat.MaxText)
		}
		packed = append(packed, object.BinaryData[recordformat.KeyPart]...)
	}
	return packed, nil
}

// Beside writes ConfigMaps that belong to a run and are not part of its record: its header owns them, so that they are
// deleted with it, and they have a MAC.
type Beside struct {
	// Key is the key of the records.
	Key recordformat.Key

	objects objects
	owner   metav1.OwnerReference
}

// Beside reads the header of a run, which may be in progress, and the key of the records. It returns a
// *record.NotFoundError for a run without a record, and a *record.UnauthenticError without the key, because written
// data could not be verified.
func (s *Store) Beside(ctx context.Context, id string) (*Beside, error) {
	header, err := s.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	loaded, err := s.Key(ctx)
	if err != nil {
		return nil, err
	}
	id = header.Labels[record.Label]
	if loaded.Key == nil {
		return nil, &record.UnauthenticError{ID: id, Authentication: loaded.Without}
	}
	held := func(context.Context) error { return nil } // what is beside a record is not held
	return &Beside{
		Key: loaded.Key, objects: objects{store: s, owned: held, id: id, key: loaded},
		owner: metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: header.Name, UID: header.UID},
	}, nil
}

// Run is the ID of the run.
func (b *Beside) Run() string { return b.objects.id }

// Write writes a ConfigMap, and replaces an existing one of the same name.
func (b *Beside) Write(ctx context.Context, object *corev1.ConfigMap) error {
	_, err := b.objects.put(ctx, b.owned(object), nil)
	return err
}

// Change calls change with the authentic ConfigMap of that name, or nil, and writes the ConfigMap that it returns;
// nothing if it returns nil. change is called again if another client has changed the ConfigMap meanwhile.
func (b *Beside) Change(ctx context.Context, name string, change func(found *corev1.ConfigMap) *corev1.ConfigMap) error {
	return retry.Do(ctx, func(ctx context.Context) error {
		for range Conflicts {
			found, err := b.objects.store.Object(ctx, name)
			if err != nil {
				return err
			}
			changed := change(b.authentic(found))
			if changed == nil {
				return nil
			}
			if found != nil {
				changed.UID, changed.ResourceVersion = found.UID, found.ResourceVersion
			}
			if _, err := b.objects.send(ctx, b.owned(changed)); !Contested(err) {
				return err
			}
		}
		return retry.Mark(errors.New("another client repeatedly changed it"))
	})
}

// authentic returns the object if its MAC matches a ConfigMap beside the record.
func (b *Beside) authentic(object *corev1.ConfigMap) *corev1.ConfigMap {
	if object == nil || b.objects.key.Verify(object, b.objects.id, b.owner.UID).State != record.Authentic {
		return nil
	}
	return object
}

func (b *Beside) owned(object *corev1.ConfigMap) *corev1.ConfigMap {
	object.Namespace, object.OwnerReferences = record.Namespace, []metav1.OwnerReference{b.owner}
	return object
}

// VerifyBeside verifies a ConfigMap beside the record of a run, using the header that it names as its owner.
func VerifyBeside(object *corev1.ConfigMap, id string, loaded recordformat.LoadedKey) record.Authentication {
	if len(object.OwnerReferences) != 1 {
		return recordformat.Unauthentic(object.Name, fmt.Sprintf("has %d owners", len(object.OwnerReferences)))
	}
	return loaded.Verify(object, id, object.OwnerReferences[0].UID)
}

type objects struct {
	store *Store
	// owned returns ErrTakenOver if another process holds the run.
	owned func(context.Context) error
	id    string
	key   recordformat.LoadedKey
}

// put overwrites the object of that name, unless another process holds the run. A
// deleted object is created again if gone is nil; otherwise gone is returned.
func (o *objects) put(ctx context.Context, object *corev1.ConfigMap, gone error) (*corev1.ConfigMap, error) {
	saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		for range Conflicts {
			saved, err := o.send(ctx, object)
			if !Contested(err) {
				return saved, err
			}
			if err := o.rebase(ctx, object); err != nil {
				return nil, err
			}
			if object.UID == "" && gone != nil {
				return nil, gone
			}
		}
		return nil, retry.Mark(errors.New("another client repeatedly changed it"))
	})
	if err != nil && !errors.Is(err, ErrTakenOver) && !errors.Is(err, errGone) {
		return nil, fmt.Errorf("could not write %s of the record: %w", object.Name, err)
	}
	return saved, err
}

func (o *objects) send(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	o.key.Key.Seal(object, o.id)
	if object.ResourceVersion == "" {
		return o.store.Maps().Create(ctx, object, metav1.CreateOptions{})
	}
	return o.store.Maps().Update(ctx, object, metav1.UpdateOptions{})
}

// rebase sets the object up to replace the existing one.
func (o *objects) rebase(ctx context.Context, object *corev1.ConfigMap) error {
	if err := o.owned(ctx); err != nil {
		return err
	}
	found, err := o.store.Maps().Get(ctx, object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		object.UID, object.ResourceVersion = "", ""
		return nil
	case err != nil:
		return err
	}
	object.UID, object.ResourceVersion = found.UID, found.ResourceVersion
	return nil
}

// ErrTakenOver means that another process holds the run.
var ErrTakenOver = errors.New("the run was taken over by another process")
