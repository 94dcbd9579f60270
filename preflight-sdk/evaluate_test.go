package preflight_test

import (
	"context"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	interrupted := func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx, cancel
	}
	cases := map[string]struct {
		reason string
		check  preflight.Check
		ctx    func() (context.Context, context.CancelFunc)
		want   string
		log    string
	}{
		"Fail": {
			reason: "The check receives the update, and its log is written to the writer of the caller",
			check: preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
				t.Logf("listing")
				t.Failf("%s drops it", t.Update().To)
				return nil
			}},
			want: "Fail CheckFailed 4.21.3 drops it", log: "A: listing\n",
		},
		"Panic": {
			reason: "A panic does not propagate to the caller",
			check:  preflight.Check{Name: "A", Run: func(context.Context, *preflight.T) error { panic("boom") }},
			want:   "Unknown Panic panic: boom",
		},
		"Invalid": {
			reason: "A declaration that Main rejects is not a pass",
			check:  preflight.Check{Name: "A"},
			want:   `Unknown InvalidCheck check "A" has no Run function`,
		},
		"After": {
			reason: "Evaluate ignores prerequisites",
			check:  preflight.Check{Name: "A", After: []string{"B"}, Run: pass},
			want:   "Pass Passed ",
		},
		"IgnoresContext": {
			reason: "Evaluate returns soon after ctx is done, whatever the check does",
			check:  preflight.Check{Name: "A", Run: func(context.Context, *preflight.T) error { select {} }},
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), time.Second)
			},
			want: "Unknown Timeout A did not finish before the deadline of the run",
		},
		"Late": {
			reason: "A check is not started after the deadline",
			check:  preflight.Check{Name: "A", Run: pass},
			ctx: func() (context.Context, context.CancelFunc) {
				return context.WithDeadline(context.Background(), time.Unix(0, 0))
			},
			want: "Unknown Timeout A was not started before the deadline of the run",
		},
		"Interrupted": {
			reason: "A cancelled context is an interruption",
			check:  preflight.Check{Name: "A", Run: pass},
			ctx:    interrupted,
			want:   "Unknown Interrupted A was not started before the process was interrupted",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			if tc.ctx != nil {
				ctx, cancel = tc.ctx()
			}
			defer cancel()
			var log strings.Builder
			got := tc.check.Evaluate(ctx, preflight.Update{To: "4.21.3"}, &log)
			if outcomeLine(got) != tc.want || got.Name != "A" || log.String() != tc.log {
				t.Errorf("%s: got %q for %q, log %q, want %q, log %q", tc.reason, outcomeLine(got), got.Name, log.String(), tc.want, tc.log)
			}
		})
	}
}
