package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/retry"
)

// book writes the record of a run that is held. What others do to it meanwhile
// is overwritten: the holder's word counts.
type book struct {
	maps corev1client.ConfigMapInterface
	get  func(ctx context.Context, name string) (*corev1.ConfigMap, error)
	// ours is nil unless somebody else holds the run.
	ours  func(context.Context) error
	nonce string
	clock clock
	queue queue

	// turn is for what writes, one at a time. It guards what follows.
	turn    turn
	content head
	journal journal
	// object is the head as it was last seen; nil when it is gone.
	object *corev1.ConfigMap
	// kept counts the full chunks that are in parts of that head.
	kept int
	// saved is set while all that was taken from the queue is written.
	saved bool
	// closed is set when the last word has been written.
	closed bool
}

// clock is that of the API server, as far as its answers tell.
type clock struct {
	mutex        sync.Mutex
	theirs, ours time.Time
}

// set takes the time off the answer to a request that changed something, to the
// second.
func (c *clock) set(answer metav1.Object) {
	theirs := answer.GetCreationTimestamp().Time
	for _, entry := range answer.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(theirs) {
			theirs = entry.Time.Time
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.theirs, c.ours = theirs.UTC(), time.Now()
}

func (c *clock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.theirs.Add(time.Since(c.ours))
}

// queue has the results that are to be written.
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

// write brings the record in the cluster up to date.
func (b *book) write(ctx context.Context) error {
	if err := b.turn.take(ctx); err != nil {
		return err
	}
	defer b.turn.pass()
	return b.update(ctx)
}

// leave is write, for the last time.
func (b *book) leave(ctx context.Context) error {
	if err := b.turn.take(ctx); err != nil {
		return err
	}
	defer b.turn.pass()
	err := b.update(ctx)
	b.closed = true
	return err
}

// flush is write, when there is anything that was not written.
func (b *book) flush(ctx context.Context) error {
	if err := b.turn.take(ctx); err != nil {
		return err
	}
	defer b.turn.pass()
	if b.saved && b.queue.isEmpty() {
		return nil
	}
	return b.update(ctx)
}

func (b *book) update(ctx context.Context) error {
	if b.closed {
		return nil
	}
	b.saved = false
	if err := b.journal.add(b.queue.take()); err != nil {
		return err
	}
	err := b.save(ctx, b.content, nil)
	b.saved = err == nil
	return err
}

// finish writes the last of the record, with the report compressed.
func (b *book) finish(ctx context.Context, phase Phase, decision string, report []byte) error {
	if err := b.turn.take(ctx); err != nil {
		return err
	}
	defer b.turn.pass()
	if err := b.journal.add(b.queue.take()); err != nil {
		return err
	}
	last := b.content
	last.record.Phase, last.record.Decision = phase, decision
	last.record.CompletionTime = b.clock.now().Truncate(time.Second)
	var chunks [][]byte
	if len(report) > maxChunk {
		chunks, report = slices.Collect(slices.Chunk(report, maxChunk)), nil
	}
	last.report = report
	err := b.save(ctx, last, chunks)
	b.closed = err == nil
	return err
}

// errGone means that somebody has deleted the head.
var errGone = errors.New("the record is deleted all the time")

// save writes the parts and then the head, since that says how many there are:
// without it, nothing of this has happened. A head that is gone is made anew
// first, without them, for they are to go with it.
func (b *book) save(ctx context.Context, content head, report [][]byte) error {
	content.results, content.reported = b.journal.open, b.journal.used.count
	content.resultParts, content.reportParts = len(b.journal.full), len(report)
	for range conflicts {
		if b.object == nil {
			bare := b.content
			bare.results, bare.resultParts = nil, 0
			if err := b.saveHead(ctx, bare, nil); err != nil {
				return err
			}
		}
		if err := b.saveParts(ctx, report); err != nil {
			return err
		}
		err := b.saveHead(ctx, content, errGone)
		if !errors.Is(err, errGone) {
			return err
		}
		b.object = nil
	}
	return errGone
}

func (b *book) saveParts(ctx context.Context, report [][]byte) error {
	for ; b.kept < len(b.journal.full); b.kept++ {
		if err := b.savePart(ctx, b.kept+1, b.journal.full[b.kept]); err != nil {
			return err
		}
	}
	for i, chunk := range report {
		if err := b.savePart(ctx, b.kept+i+1, chunk); err != nil {
			return err
		}
	}
	return nil
}

// savePart makes a part, or overwrites one that a former holder left.
func (b *book) savePart(ctx context.Context, number int, chunk []byte) error {
	part := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: partName(b.content.record.ID, number),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: b.object.Name, UID: b.object.UID}},
		},
		BinaryData: map[string][]byte{keyPart: chunk},
	}
	_, err := b.put(ctx, part, nil)
	return err
}

func partName(id string, number int) string { return fmt.Sprintf("%s-%d", headName(id), number) }

// saveHead writes the head with that content. Unless there is an error for that,
// one that is gone is made again.
func (b *book) saveHead(ctx context.Context, content head, gone error) error {
	base := metav1.ObjectMeta{}
	if b.object != nil {
		base = b.object.ObjectMeta
	}
	content.record.StartTime = b.content.record.StartTime
	next, err := content.configMap(base, b.nonce)
	if err != nil {
		return err
	}
	saved, err := b.put(ctx, next, gone)
	if err != nil {
		return err
	}
	b.keep(saved)
	return nil
}

// keep takes note of the head as it is in the cluster now.
func (b *book) keep(saved *corev1.ConfigMap) {
	if b.object == nil || b.object.UID != saved.UID {
		b.kept = 0
	}
	b.object = saved
	b.clock.set(saved)
	if b.content.record.StartTime.IsZero() {
		b.content.record.StartTime = saved.CreationTimestamp.UTC()
	}
}

// put writes an object over whatever there is of its name, unless the run is
// somebody else's by now. When there is nothing any more, and no error for that,
// it is made again.
func (b *book) put(ctx context.Context, object *corev1.ConfigMap, gone error) (*corev1.ConfigMap, error) {
	saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		for range conflicts {
			saved, err := b.try(ctx, object)
			if !contested(err) {
				return saved, err
			}
			if err := b.look(ctx, object); err != nil {
				return nil, err
			}
			if object.UID == "" && gone != nil {
				return nil, gone
			}
		}
		return nil, retry.Mark(errors.New("somebody else changes it all the time"))
	})
	if err != nil && !errors.Is(err, ErrTakenOver) && !errors.Is(err, errGone) {
		return nil, fmt.Errorf("could not write %s of the record: %w", object.Name, err)
	}
	return saved, err
}

func (b *book) try(ctx context.Context, object *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if object.ResourceVersion == "" {
		return b.maps.Create(ctx, object, metav1.CreateOptions{})
	}
	return b.maps.Update(ctx, object, metav1.UpdateOptions{})
}

// look makes the object one that replaces what is there.
func (b *book) look(ctx context.Context, object *corev1.ConfigMap) error {
	if err := b.ours(ctx); err != nil {
		return err
	}
	found, err := b.maps.Get(ctx, object.Name, metav1.GetOptions{})
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

// contested is true when an object is in another state than was expected, through
// somebody else or a request whose answer was lost. A namespace that is missing
// is no such thing.
func contested(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Kind != "namespaces")
}

// create makes the head of a run that begins. It returns false when there is one
// which this process has not made.
func (b *book) create(ctx context.Context) (bool, error) {
	object, err := b.content.configMap(metav1.ObjectMeta{}, b.nonce)
	if err != nil {
		return false, err
	}
	saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
		return b.maps.Create(ctx, object, metav1.CreateOptions{})
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		saved, err = b.get(ctx, object.Name)
		if err != nil || saved == nil || saved.Annotations[annotationClaim] != b.nonce {
			return false, err
		}
	case err != nil:
		return false, fmt.Errorf("could not make the record: %w", err)
	}
	b.keep(saved)
	b.saved = true
	return true, nil
}

// resume takes over a head and what is in it, and marks it as this process's. A
// head that is not there is made.
func (b *book) resume(ctx context.Context) ([]Result, error) {
	intended := b.content
	var results []Result
	for range conflicts {
		object, err := b.get(ctx, headName(intended.record.ID))
		if err != nil {
			return nil, fmt.Errorf("could not read the record: %w", err)
		}
		if object == nil {
			return results, b.write(ctx)
		}
		if results, err = b.load(ctx, object, intended); err != nil {
			return nil, err
		}
		next, err := b.content.configMap(object.ObjectMeta, b.nonce)
		if err != nil {
			return nil, err
		}
		saved, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
			return b.maps.Update(ctx, next, metav1.UpdateOptions{})
		})
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			continue // the former holder was still writing
		case err != nil:
			return nil, fmt.Errorf("could not take over the record: %w", err)
		}
		b.keep(saved)
		b.kept = len(b.journal.full)
		b.saved = true
		return results, nil
	}
	return nil, errMoved
}

// load takes note of what is in a record that is there. Where the head cannot be
// read, all that is known is what is intended, and when it was made.
func (b *book) load(ctx context.Context, object *corev1.ConfigMap, intended head) ([]Result, error) {
	found, err := parse(object)
	var unknown *FormatError
	switch {
	case errors.As(err, &unknown):
		return nil, unknown
	case err != nil:
		found = intended
		found.record.StartTime = object.CreationTimestamp.UTC()
	case found.record.ID != intended.record.ID: // the names have only the first digits of it
		return nil, fmt.Errorf("there is a record of run %s, whose ID begins alike: begin again", found.record.ID)
	case found.record.Phase.final():
		return nil, errMoved
	}
	reader := reader{get: b.get}
	results, err := reader.results(ctx, found, object.UID)
	if err != nil {
		return nil, fmt.Errorf("could not read the results that are in: %w", err)
	}
	b.content = found
	b.journal = journal{used: reader.used}
	for _, part := range reader.parts {
		b.journal.full = append(b.journal.full, part.chunk)
	}
	b.journal.reopen(found.results)
	return results, nil
}
