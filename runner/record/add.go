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
	content.record.Phase, content.record.Decision = ending.Phase, ending.Decision
	w := &writer{
		maps: s.maps(), get: s.get, owned: func(context.Context) error { return nil }, nonce: uuid.NewString(), lock: newLock(), content: content,
	}
	created, err := w.create(ctx)
	if err == nil && !created {
		err = errors.New("a run of that ID exists")
	}
	if err != nil {
		return fmt.Errorf("could not record run %s: %w", intent.ID, err)
	}
	if err := w.finish(ctx, ending.Phase, ending.Decision, packed); err != nil {
		return err
	}
	s.prune(ctx)
	return nil
}
