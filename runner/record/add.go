package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Add records a run that has ended and was never held: one without Jobs, which
// cannot be continued. It is never in phase Running. The errors are those of the API
// server.
func (s *Store) Add(ctx context.Context, intent Intent, ending Ending) error {
	if err := intent.validate("none"); err != nil {
		return err
	}
	packed, err := ending.pack()
	if err != nil {
		return err
	}
	content, err := newHeader(intent)
	if err != nil {
		return err
	}
	content.record.Phase, content.record.Decision = ending.Phase, string(ending.Verdict.Decision)
	w := &writer{
		store: s, owned: func(context.Context) error { return nil }, nonce: uuid.NewString(), lock: newLock(), content: content,
	}
	if err := w.loadKey(ctx); err != nil {
		return err
	}
	created, err := w.create(ctx)
	if err == nil && !created {
		err = errors.New("a run of that ID exists")
	}
	if err != nil {
		return fmt.Errorf("could not record run %s: %w", intent.ID, err)
	}
	if err := w.finish(ctx, ending, packed); err != nil {
		return err
	}
	earlier, err := s.endEarlier(ctx, content.record, ending.Phase, w.clock.now())
	s.prune(ctx, earlier, ending.Phase)
	return err
}
