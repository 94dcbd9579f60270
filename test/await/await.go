// Package await answers: does a condition become true that another process or controller
// makes true? [Until] is for tests that know when it is, and not when it will be.
package await

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// limit is long: a condition that becomes true in a second on an idle machine may take
	// minutes on a busy one.
	limit    = 10 * time.Minute
	interval = 50 * time.Millisecond
)

// Until returns when the condition, which what describes, is true. It fails the test if it
// is not within ten minutes. It may be called in a cleanup.
func Until(tb testing.TB, what string, met func(context.Context) bool) {
	tb.Helper()
	err := wait.PollUntilContextTimeout(context.WithoutCancel(tb.Context()), interval, limit, true, func(ctx context.Context) (bool, error) {
		return met(ctx) && ctx.Err() == nil, nil
	})
	if err != nil {
		tb.Fatalf("not within %s: %s", limit, what)
	}
}
