package program

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// labelKey is the key of the label by which the goroutines of an execution are known: each has the
// labels of the one that started it.
const labelKey = "oc-preflight"

var executions atomic.Int64 //nolint:gochecknoglobals // labels are those of the process

func newLabel() string { return strconv.FormatInt(executions.Add(1), 10) }

// labeled runs a function whose goroutines have the label.
func labeled(ctx context.Context, label string, run func(context.Context)) {
	pprof.Do(ctx, pprof.Labels(labelKey, label), run)
}

const (
	// endTime is how long the goroutines of an execution may take to end.
	endTime = 5 * time.Second
	// usualTime is how long they take, but for those that reload the certificate of a client: they end when a
	// garbage collection finds that the client is not used.
	usualTime = 100 * time.Millisecond
)

// expectEnded fails the test if goroutines of an execution remain, beside those of connections that
// the next one uses again.
func expectEnded(tb testing.TB, label string) {
	tb.Helper()
	deadline := time.After(endTime)
	for pause := time.Millisecond; ; pause *= 2 {
		left := goroutines(tb, label)
		if len(left) == 0 {
			return
		}
		select {
		case <-time.After(pause):
			if pause > usualTime {
				runtime.GC()
			}
		case <-deadline:
			tb.Errorf("goroutines of the program have not ended:\n%s", strings.Join(left, "\n"))
			return
		}
	}
}

// connection matches the stack of a goroutine of a connection.
var connection = regexp.MustCompile(
	`net/http\.\(\*(persistConn|http2ClientConn|http2clientConnReadLoop|Transport)\)|golang\.org/x/net/http2\.`)

// goroutines returns the stacks of the goroutines with a label.
func goroutines(tb testing.TB, label string) []string {
	tb.Helper()
	var profile bytes.Buffer
	const withLabels = 1 // and function names
	if err := pprof.Lookup("goroutine").WriteTo(&profile, withLabels); err != nil {
		tb.Fatal(err)
	}
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q}", labelKey, label)) && !connection.MatchString(stack) {
			found = append(found, stack)
		}
	}
	return found
}
