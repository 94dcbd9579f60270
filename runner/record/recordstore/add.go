package recordstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// Add records a run that has ended and was never held: one without Jobs, which
// cannot be continued. It is never in phase Running: end returns its ending once it
// has a record, which is that of an interrupted run until then. The errors are those of
// end and of the API server.
func (s *Store) Add(ctx context.Context, intent record.Intent, end func(context.Context) (record.Ending, error)) error {
	if err := intent.Validate("none"); err != nil {
		return err
	}
	content, err := recordformat.NewHeader(intent)
	if err != nil {
		return err
	}
	content.Record.Phase = record.Interrupted
	w, err := NewWriter(ctx, s, content, func(context.Context) error { return nil }, uuid.NewString())
	if err != nil {
		return err
	}
	created, err := w.Create(ctx)
	if err == nil && !created {
		err = errors.New("a run of that ID exists")
	}
	if err != nil {
		return fmt.Errorf("could not record run %s: %w", intent.ID, err)
	}
	ending, err := end(ctx)
	if err != nil {
		return err
	}
	packed, err := recordformat.PackEnding(ending)
	if err != nil {
		return err
	}
	if err := w.Finish(ctx, ending, packed); err != nil {
		return err
	}
	earlier, err := s.EndEarlier(ctx, content.Record, ending, w.Clock.Now())
	s.Prune(ctx, earlier, intent.From, ending.Phase)
	return err
}

// Queue has the results that are not written yet.
type Queue struct {
	mutex   sync.Mutex
	results []record.Result
}

// Add adds a result, which is written with the next ones.
func (q *Queue) Add(result record.Result) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.results = append(q.results, result)
}

func (q *Queue) take() []record.Result {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	taken := q.results
	q.results = nil
	return taken
}

func (q *Queue) isEmpty() bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.results) == 0
}
