package record

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/retry"
)

// writer writes the record of a held run. Changes by other clients are overwritten.
type writer struct {
	store *Store
	// owned returns ErrTakenOver if another process holds the run.
	owned func(context.Context) error
	nonce string
	clock clock
	queue queue

	// lock serializes writes, and guards the following fields.
	lock    lock
	content header
	log     resultLog
	// key seals what is written.
	key loadedKey
	// object is the last known state of the header; nil when it is gone.
	object *corev1.ConfigMap
	// savedChunks counts the full chunks that are stored in parts of that header.
	savedChunks int
	// saved is true while all results taken from the queue are written.
	saved bool
	// closed is true after the last write.
	closed bool
}

// queue has the results that are not written yet.
type queue struct {
	mutex   sync.Mutex
	results []Result
}

func (q *queue) add(result Result) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.results = append(q.results, result)
}

func (q *queue) take() []Result {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	taken := q.results
	q.results = nil
	return taken
}

func (q *queue) isEmpty() bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.results) == 0
}

// write writes the queued results.
func (w *writer) write(ctx context.Context) error {
	if err := w.lock.acquire(ctx); err != nil {
		return err
	}
	defer w.lock.release()
	return w.update(ctx)
}

// close is write, and disables later writes.
func (w *writer) close(ctx context.Context) error {
	if err := w.lock.acquire(ctx); err != nil {
		return err
	}
	defer w.lock.release()
	err := w.update(ctx)
	w.closed = true
	return err
}

// flush is write, unless all results are written.
func (w *writer) flush(ctx context.Context) error {
	if err := w.lock.acquire(ctx); err != nil {
		return err
	}
	defer w.lock.release()
	if w.saved && w.queue.isEmpty() {
		return nil
	}
	return w.update(ctx)
}

func (w *writer) update(ctx context.Context) error {
	if w.closed {
		return nil
	}
	w.saved = false
	if err := w.log.add(w.queue.take()); err != nil {
		return err
	}
	err := w.save(ctx, w.content, nil)
	w.saved = err == nil
	return err
}

// loadKey reads the key, which may have been replaced since the last write. Then the
// parts are written again.
func (w *writer) loadKey(ctx context.Context) error {
	loaded, err := w.store.ensureKey(ctx)
	if err != nil {
		return err
	}
	if !hmac.Equal(w.key.key, loaded.key) {
		w.savedChunks = 0
	}
	w.key = loaded
	return nil
}

// finish writes the final record with the compressed report.
func (w *writer) finish(ctx context.Context, ending Ending, report []byte) error {
	if err := w.lock.acquire(ctx); err != nil {
		return err
	}
	defer w.lock.release()
	if err := w.loadKey(ctx); err != nil {
		return err
	}
	if err := w.log.add(w.queue.take()); err != nil {
		return err
	}
	last := w.content
	last.record.Phase, last.record.Decision, last.verdict = ending.Phase, string(ending.Verdict.Decision), ending.Verdict
	last.record.CompletionTime = w.clock.now().Truncate(time.Second)
	var chunks [][]byte
	if len(report) > maxChunk {
		chunks, report = slices.Collect(slices.Chunk(report, maxChunk)), nil
	}
	last.report = report
	err := w.save(ctx, last, chunks)
	w.closed = err == nil
	return err
}

// errGone means that the header was deleted by another client.
var errGone = errors.New("the run record was repeatedly deleted while it was being written")

// save writes the parts and then the header, which has their number and commits the
// write. A deleted header is created again first, without parts, since it owns them.
func (w *writer) save(ctx context.Context, content header, report [][]byte) error {
	content.results, content.reported = w.log.open, w.log.used.count
	content.resultParts, content.reportParts = len(w.log.full), len(report)
	for range conflicts {
		if w.object == nil {
			bare := w.content
			bare.results, bare.resultParts = nil, 0
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

func (w *writer) saveParts(ctx context.Context, report [][]byte) error {
	for ; w.savedChunks < len(w.log.full); w.savedChunks++ {
		if err := w.savePart(ctx, w.savedChunks+1, w.log.full[w.savedChunks]); err != nil {
			return err
		}
	}
	for i, chunk := range report {
		if err := w.savePart(ctx, w.savedChunks+i+1, chunk); err != nil {
			return err
		}
	}
	return nil
}

// savePart creates a part, or overwrites that of a former holder.
func (w *writer) savePart(ctx context.Context, number int, chunk []byte) error {
	part := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: partName(w.content.record.ID, number),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: w.object.Name, UID: w.object.UID}},
		},
		BinaryData: map[string][]byte{keyPart: chunk},
	}
	_, err := w.put(ctx, part, nil)
	return err
}

// saveHeader writes the header with the content. A deleted header is created again if
// gone is nil; otherwise gone is returned.
func (w *writer) saveHeader(ctx context.Context, content header, gone error) error {
	base := metav1.ObjectMeta{}
	if w.object != nil {
		base = w.object.ObjectMeta
	}
	content.record.StartTime = w.content.record.StartTime
	next, err := content.configMap(base, w.nonce)
	if err != nil {
		return err
	}
	saved, err := w.put(ctx, next, gone)
	if err != nil {
		return err
	}
	w.setObject(saved)
	return nil
}

// setObject records the header in the cluster.
func (w *writer) setObject(saved *corev1.ConfigMap) {
	if w.object == nil || w.object.UID != saved.UID {
		w.savedChunks = 0
	}
	w.object = saved
	w.clock.set(saved)
	if w.content.record.StartTime.IsZero() {
		w.content.record.StartTime = saved.CreationTimestamp.UTC()
	}
}

// put overwrites the object of that name, unless another process holds the run. A
// deleted object is created again if gone is nil; otherwise gone is returned.
func (w *writer) put(ctx context.Context, object *corev1.ConfigMap, gone error) (*corev1.ConfigMap, error) {
	saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		for range conflicts {
			saved, err := w.send(ctx, object)
			if !contested(err) {
				return saved, err
			}
			if err := w.rebase(ctx, object); err != nil {
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

func (w *writer) send(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	w.key.key.seal(object, w.content.record.ID)
	if object.ResourceVersion == "" {
		return w.store.maps().Create(ctx, object, metav1.CreateOptions{})
	}
	return w.store.maps().Update(ctx, object, metav1.UpdateOptions{})
}

// rebase sets the object up to replace the existing one.
func (w *writer) rebase(ctx context.Context, object *corev1.ConfigMap) error {
	if err := w.owned(ctx); err != nil {
		return err
	}
	found, err := w.store.maps().Get(ctx, object.Name, metav1.GetOptions{})
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

// create creates the header of a new run. It returns false if the header exists and
// was not created by this process.
func (w *writer) create(ctx context.Context) (bool, error) {
	object, err := w.content.configMap(metav1.ObjectMeta{}, w.nonce)
	if err != nil {
		return false, err
	}
	saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return w.send(ctx, object)
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		saved, err = w.store.get(ctx, object.Name)
		if err != nil || saved == nil || saved.Annotations[annotationClaim] != w.nonce {
			return false, err
		}
	case err != nil:
		return false, fmt.Errorf("could not create the record: %w", err)
	}
	w.setObject(saved)
	w.saved = true
	return true, nil
}

// sealNew seals the header of a new run, whose MAC covers the UID that the API server
// has assigned.
func (w *writer) sealNew(ctx context.Context) error {
	if w.key.key == nil {
		return nil
	}
	return w.saveHeader(ctx, w.content, nil)
}

// errMoved means that a run has begun, ended or changed its holder while it was
// read.
var errMoved = errors.New("the run in progress was repeatedly changed while it was read")

// resume takes over a header with its results, and marks it as held by this process.
// A missing header is created.
func (w *writer) resume(ctx context.Context) ([]Result, error) {
	intended := w.content
	var results []Result
	for range conflicts {
		object, err := w.store.get(ctx, headerName(intended.record.ID))
		if err != nil {
			return nil, fmt.Errorf("could not read the record: %w", err)
		}
		if object == nil {
			w.content.record.Authentication = w.key.authentication()
			return results, w.write(ctx)
		}
		if results, err = w.load(ctx, object, intended); err != nil {
			return nil, err
		}
		next, err := w.content.configMap(object.ObjectMeta, w.nonce)
		if err != nil {
			return nil, err
		}
		saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
			return w.send(ctx, next)
		})
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			continue // the former holder has written meanwhile
		case err != nil:
			return nil, fmt.Errorf("could not take over the record: %w", err)
		}
		w.setObject(saved)
		w.savedChunks = w.log.readable()
		w.saved = true
		return results, nil
	}
	return nil, errMoved
}

// replace discards a header whose content cannot be used: the run continues as it is
// intended, from the time at which the header was created, and without results, which
// are read from the Jobs again.
func (w *writer) replace(object *corev1.ConfigMap, intended header, because Authentication) {
	intended.record.StartTime, intended.record.Authentication = object.CreationTimestamp.UTC(), because
	w.content, w.log = intended, resultLog{}
}

// load reads an existing record, unless it is unreadable or not authentic.
func (w *writer) load(ctx context.Context, object *corev1.ConfigMap, intended header) ([]Result, error) {
	found, err := parse(object)
	var unknown *FormatError
	switch {
	case errors.As(err, &unknown):
		return nil, unknown
	case err != nil:
		w.replace(object, intended, unauthentic(object.Name, causeUnreadable))
		return nil, nil //nolint:nilerr // the header is written again
	case found.record.ID != intended.record.ID: // names have only the first digits of an ID
		return nil, fmt.Errorf("run %s exists, whose ID has the same first digits: retry with another ID", found.record.ID)
	case found.record.Phase.final():
		return nil, errMoved
	}
	if of := w.key.verify(object, found.record.ID, object.UID); of.State != Authentic {
		w.replace(object, intended, of)
		return nil, nil
	}
	reader := reader{store: w.store, key: w.key}
	results, err := reader.results(ctx, found, object.UID)
	if err != nil {
		return nil, fmt.Errorf("could not read the recorded results: %w", err)
	}
	w.content = found
	w.content.record.Authentication = Authentication{State: Authentic}
	w.log = resultLog{used: reader.used}
	for _, part := range reader.parts {
		w.log.full = append(w.log.full, part.chunk)
	}
	w.log.reopen(found.results)
	return results, nil
}
