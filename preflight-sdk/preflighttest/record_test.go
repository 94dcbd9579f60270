package preflighttest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// record is a test that records its result and its log.
type record struct {
	testing.TB
	deadline time.Time
	failed   bool
	log      strings.Builder
}

// recorded runs a test in a goroutine, so that it may call Fatal, and waits for its
// end.
func recorded(t *testing.T, test func(*record)) *record {
	t.Helper()
	return (&record{TB: t}).run(test)
}

func (r *record) run(test func(*record)) *record {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(r)
	}()
	<-ended
	return r
}

func (r *record) Helper() {}

func (r *record) Deadline() (time.Time, bool) { return r.deadline, !r.deadline.IsZero() }

func (r *record) Logf(format string, args ...any) { fmt.Fprintf(&r.log, format+"\n", args...) }

func (r *record) Errorf(format string, args ...any) {
	r.failed = true
	r.Logf(format, args...)
}

func (r *record) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *record) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// end is the expected end of a recorded test.
type end struct {
	failed bool
	// output are substrings of its log.
	output []string
}

func (r *record) expect(t *testing.T, reason string, want end) {
	t.Helper()
	if r.failed != want.failed {
		t.Errorf("%s: failed %t, want %t", reason, r.failed, want.failed)
	}
	for _, part := range want.output {
		if !strings.Contains(r.log.String(), part) {
			t.Errorf("%s: the log does not contain %q:\n%s", reason, part, r.log.String())
		}
	}
}
