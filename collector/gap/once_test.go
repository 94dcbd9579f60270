package gap_test

import (
	"context"
	"errors"
	"testing"

	"github.com/openshift/update-preflight/collector/gap"
)

func TestOnce(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	failure := errors.New("forbidden")
	for name, tc := range map[string]struct {
		reason string
		first  context.Context
		err    error
		reads  int
	}{
		"Value": {reason: "what was read is kept", first: t.Context(), reads: 1},
		"Error": {reason: "an error of the server is kept", first: t.Context(), err: failure, reads: 1},
		"Canceled": {
			reason: "a reader that left before the end leaves the read to the next one", first: canceled, err: context.Canceled,
			reads: 2,
		},
		"Complete": {reason: "what was read in spite of the end is kept", first: canceled, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var once gap.Once[string]
			reads := 0
			read := func(context.Context) (string, error) {
				reads++
				return "value", tc.err
			}
			for _, ctx := range []context.Context{tc.first, t.Context()} {
				if value, err := once.Get(ctx, read); value != "value" || !errors.Is(err, tc.err) {
					t.Errorf("%s: %q, error %v", tc.reason, value, err)
				}
			}
			if reads != tc.reads {
				t.Errorf("%s: %d reads, want %d", tc.reason, reads, tc.reads)
			}
		})
	}
}
