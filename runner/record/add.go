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
	packed, err := PackEnding(ending)
	if err != nil {
		return err
	}
	content, err := newHeader(intent)
	if err != nil {
		return err
	}
	content.record.Phase, content.record.Decision = ending.Phase, string(ending.Verdict.Decision)
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
	if err := w.Finish(ctx, ending, packed); err != nil {
		return err
	}
	earlier, err := s.EndEarlier(ctx, content.record, ending.Phase, w.Clock.Now())
	s.Prune(ctx, earlier, ending.Phase)
	return err
}
