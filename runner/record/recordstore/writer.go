package recordstore

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// Writer writes the record of a held run. Changes by other clients are overwritten.
type Writer struct {
	// Queue has the results that must be written, Clock the time of the API server.
	Queue Queue
	Clock Clock

	objects objects
	nonce   string

	// lock serializes writes, and guards the following fields.
	lock    *semaphore.Weighted
	content recordformat.Header
	log     recordformat.ResultLog
	// object is the last known state of the header; nil when it is gone.
	object *corev1.ConfigMap
	// savedChunks counts the full chunks that are stored in parts of that header.
	savedChunks int
	// saved is true while all results taken from the queue are written.
	saved bool
	// closed is true after the last write.
	closed bool
}

// NewWriter returns the writer of a record that a process holds: owned returns
// ErrTakenOver if another process does, nonce identifies the hold.
func NewWriter(ctx context.Context, store *Store, content recordformat.Header,
	owned func(context.Context) error, nonce string,
) (*Writer, error) {
	w := &Writer{
		objects: objects{store: store, owned: owned, id: content.Record.ID}, nonce: nonce, lock: semaphore.NewWeighted(1),
		content: content,
	}
	return w, w.loadKey(ctx)
}

// Record returns the record as it was created or taken over, without results.
func (w *Writer) Record() record.Record { return w.content.Record }

// Write writes the queued results.
func (w *Writer) Write(ctx context.Context) error {
	if err := w.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.lock.Release(1)
	return w.update(ctx)
}

// Close is Write, and disables later writes.
func (w *Writer) Close(ctx context.Context) error {
	if err := w.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.lock.Release(1)
	err := w.update(ctx)
	w.closed = true
	return err
}

// Flush is Write, unless all results are written.
func (w *Writer) Flush(ctx context.Context) error {
	if err := w.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.lock.Release(1)
	if w.saved && w.Queue.isEmpty() {
		return nil
	}
	return w.update(ctx)
}

func (w *Writer) update(ctx context.Context) error {
	if w.closed {
		return nil
	}
	w.saved = false
	if err := w.log.Add(w.Queue.take()); err != nil {
		return err
	}
	err := w.save(ctx, w.content, nil)
	w.saved = err == nil
	return err
}

// loadKey reads the key, which may have been replaced since the last write. Then the parts are written again.
func (w *Writer) loadKey(ctx context.Context) error {
	loaded, err := ensureKey(ctx, w.objects.store.client)
	if err != nil {
		return err
	}
	if !hmac.Equal(w.objects.key.Key, loaded.Key) {
		w.savedChunks = 0
	}
	w.objects.key = loaded
	return nil
}

// Finish writes the final record with the compressed report.
func (w *Writer) Finish(ctx context.Context, ending record.Ending, report []byte) error {
	if err := w.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.lock.Release(1)
	if err := w.loadKey(ctx); err != nil {
		return err
	}
	if err := w.log.Add(w.Queue.take()); err != nil {
		return err
	}
	last := w.content
	last.Record.Phase, last.Record.Decision, last.Verdict = ending.Phase, string(ending.Verdict.Decision), ending.Verdict
	last.Record.Baseline = ending.Baseline
	last.Record.CompletionTime = w.Clock.Now().Truncate(time.Second)
	var chunks [][]byte
	if len(report) > recordformat.MaxChunk {
		chunks, report = slices.Collect(slices.Chunk(report, recordformat.MaxChunk)), nil
	}
	last.Report = report
	err := w.save(ctx, last, chunks)
	w.closed = err == nil
	return err
}

// errGone means that the header was deleted by another client.
var errGone = errors.New("the run record was repeatedly deleted while it was being written")

// save writes the parts and then the header, which has their number and commits the
// write. A deleted header is created again first, without parts, since it owns them.
func (w *Writer) save(ctx context.Context, content recordformat.Header, report [][]byte) error {
	content.Results, content.Reported = w.log.Open, w.log.Used.Count
	content.ResultParts, content.ReportParts = len(w.log.Full), len(report)
	for range Conflicts {
		if w.object == nil {
			bare := w.content
			bare.Results, bare.ResultParts = nil, 0
			if err := w.saveHeader(ctx, bare, nil); err != nil {
				return err
			}
		}
		if err := w.saveParts(ctx, report); err != nil {
			return err
		}
		err := w.saveHeader(ctx, content, errGone)
		if !errors.Is(err, errGone) {
			return err
		}
		w.object = nil
	}
	return errGone
}

// saveParts creates the parts that are not saved, or overwrites a former holder's parts.
func (w *Writer) saveParts(ctx context.Context, report [][]byte) error {
	for ; w.savedChunks < len(w.log.Full); w.savedChunks++ {
		if _, err := w.objects.put(ctx, partOf(w.object, w.objects.id, w.savedChunks+1, w.log.Full[w.savedChunks]), nil); err != nil {
			return err
		}
	}
	for i, chunk := range report {
		if _, err := w.objects.put(ctx, partOf(w.object, w.objects.id, w.savedChunks+i+1, chunk), nil); err != nil {
			return err
		}
	}
	return nil
}

func partOf(header *corev1.ConfigMap, id string, number int, chunk []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: record.Namespace, Name: recordformat.PartName(id, number),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: header.Name, UID: header.UID}},
		},
		BinaryData: map[string][]byte{recordformat.KeyPart: chunk},
	}
}

// saveHeader writes the header with the content. A deleted header is created again if
// gone is nil; otherwise gone is returned.
func (w *Writer) saveHeader(ctx context.Context, content recordformat.Header, gone error) error {
	base := metav1.ObjectMeta{}
	if w.object != nil {
		base = w.object.ObjectMeta
	}
	content.Record.StartTime = w.content.Record.StartTime
	next, err := content.ConfigMap(base, w.nonce)
	if err != nil {
		return err
	}
	saved, err := w.objects.put(ctx, next, gone)
	if err != nil {
		return err
	}
	w.setObject(saved)
	return nil
}

// setObject records the header in the cluster.
func (w *Writer) setObject(saved *corev1.ConfigMap) {
	if w.object == nil || w.object.UID != saved.UID {
		w.savedChunks = 0
	}
	w.object = saved
	w.Clock.set(saved)
	if w.content.Record.StartTime.IsZero() {
		w.content.Record.StartTime = saved.CreationTimestamp.UTC()
	}
}

// Create creates the header of a new run. It returns false if the header exists and
// was not created by this process.
func (w *Writer) Create(ctx context.Context) (bool, error) {
	w.content.Record.Authentication = w.objects.key.Authentication()
	object, err := w.content.ConfigMap(metav1.ObjectMeta{}, w.nonce)
	if err != nil {
		return false, err
	}
	saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return w.objects.send(ctx, object)
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		saved, err = w.objects.store.Object(ctx, object.Name)
		if err != nil || saved == nil || saved.Annotations[recordformat.AnnotationClaim] != w.nonce {
			return false, err
		}
	case err != nil:
		return false, fmt.Errorf("could not create the record: %w", err)
	}
	w.setObject(saved)
	w.saved = true
	if w.objects.key.Key == nil {
		return true, nil
	}
	// The MAC of a header covers the UID that the API server has assigned.
	return true, w.saveHeader(ctx, w.content, nil)
}

// ErrMoved means that a run has begun, ended or changed its holder while it was read.
var ErrMoved = errors.New("the run in progress was repeatedly changed while it was read")

// Resume takes over a header with its results, and marks it as held by this process. A missing header is created.
func (w *Writer) Resume(ctx context.Context) ([]record.Result, error) {
	intended := w.content
	var results []record.Result
	for range Conflicts {
		object, err := w.objects.store.Object(ctx, recordformat.HeaderName(intended.Record.ID))
		if err != nil {
			return nil, fmt.Errorf("could not read the record: %w", err)
		}
		if object == nil {
			w.content.Record.Authentication = w.objects.key.Authentication()
			return results, w.Write(ctx)
		}
		if results, err = w.load(ctx, object, intended); err != nil {
			return nil, err
		}
		next, err := w.content.ConfigMap(object.ObjectMeta, w.nonce)
		if err != nil {
			return nil, err
		}
		saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
			return w.objects.send(ctx, next)
		})
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			continue // the former holder has written meanwhile
		case err != nil:
			return nil, fmt.Errorf("could not take over the record: %w", err)
		}
		w.setObject(saved)
		w.savedChunks = w.log.Readable()
		w.saved = true
		return results, nil
	}
	return nil, ErrMoved
}

// load reads an existing record. One that is unreadable or not authentic is replaced: the
// run continues as it is intended, from the time at which the header was created, and
// without results, which are read from the Jobs again.
func (w *Writer) load(ctx context.Context, object *corev1.ConfigMap, intended recordformat.Header) ([]record.Result, error) {
	replace := func(because record.Authentication) {
		intended.Record.StartTime, intended.Record.Authentication = object.CreationTimestamp.UTC(), because
		w.content, w.log = intended, recordformat.ResultLog{}
	}
	found, err := recordformat.Parse(object)
	var unknown *record.FormatError
	switch {
	case errors.As(err, &unknown):
		return nil, unknown
	case err != nil:
		replace(recordformat.Unauthentic(object.Name, recordformat.CauseUnreadable))
		return nil, nil //nolint:nilerr // the header is written again
	case found.Record.ID != intended.Record.ID: // names have only the first digits of an ID
		return nil, fmt.Errorf("run %s exists, whose ID has the same first digits: retry with another ID", found.Record.ID)
	case found.Record.Phase.Final():
		return nil, ErrMoved
	}
	if of := w.objects.key.Verify(object, found.Record.ID, object.UID); of.State != record.Authentic {
		replace(of)
		return nil, nil
	}
	reader := Reader{store: w.objects.store, key: w.objects.key}
	results, err := reader.results(ctx, found, object.UID)
	if err != nil {
		return nil, fmt.Errorf("could not read the recorded results: %w", err)
	}
	w.content = found
	w.content.Record.Authentication = record.Authentication{State: record.Authentic}
	w.log = recordformat.ResultLog{Used: reader.used}
	for _, part := range reader.parts {
		w.log.Full = append(w.log.Full, part.chunk)
	}
	w.log.Reopen(found.Results)
	return results, nil
}
