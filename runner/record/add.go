package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Add records a run that has ended and that no process held: one without Jobs,
// which cannot be continued. It is never seen in progress. The errors are those of
// the API server.
func (s *Store) Add(ctx context.Context, intent Intent, ending Ending) error {
	if err := intent.validate("none"); err != nil {
		return err
	}
	packed, err := ending.pack()
	if err != nil {
		return err
	}
	content, err := newHead(intent)
	if err != nil {
		return err
	}
	content.record.Phase, content.record.Decision = ending.Phase, ending.Decision
	b := &book{
		maps: s.maps(), get: s.get, ours: func(context.Context) error { return nil }, nonce: uuid.NewString(), turn: newTurn(), content: content,
	}
	made, err := b.create(ctx)
	if err == nil && !made {
		err = errors.New("its ID is taken")
	}
	if err != nil {
		return fmt.Errorf("could not record run %s: %w", intent.ID, err)
	}
	if err := b.finish(ctx, ending.Phase, ending.Decision, packed); err != nil {
		return err
	}
	s.prune(ctx)
	return nil
}
