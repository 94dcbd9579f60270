package recordstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// Add records a run that has ended and was never held: one without Jobs, which
// cannot be continued. It is never in phase Running. The errors are those of the API
// server.
func (s *Store) Add(ctx context.Context, intent record.Intent, ending record.Ending) error {
	if err := intent.Validate("none"); err != nil {
		return err
	}
	packed, err := recordformat.PackEnding(ending)
	if err != nil {
		return err
	}
	content, err := recordformat.NewHeader(intent)
	if err != nil {
		return err
	}
	content.Record.Phase, content.Record.Decision = ending.Phase, string(ending.Verdict.Decision)
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
	earlier, err := s.EndEarlier(ctx, content.Record, ending.Phase, w.Clock.Now())
	s.Prune(ctx, earlier, ending.Phase)
	return err
}
