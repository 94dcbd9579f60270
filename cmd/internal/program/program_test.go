package program_test

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/openshift/update-preflight/cmd/internal/program"
)

// The user decides how often garbage is collected, and the program where the user does not.
func TestCollectGarbage(t *testing.T) {
	const before, chosen = 77, 30
	for name, tc := range map[string]struct {
		reason, variable string
		want             int
	}{
		"Given":    {reason: "the Go runtime has read GOGC at the start", variable: "400", want: before},
		"Off":      {reason: "GOGC is not only a number", variable: "off", want: before},
		"NotGiven": {reason: "an empty variable is none, as for the Go runtime", variable: "", want: chosen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", tc.variable)
			present := debug.SetGCPercent(before)
			program.CollectGarbage(chosen)
			if got := debug.SetGCPercent(present); got != tc.want {
				t.Errorf("%s: %d percent, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// Libraries log to the logger of the last execution, with its verbosity, also those that got their logger before.
func TestLogTo(t *testing.T) {
	t.Cleanup(func() { program.LogTo(slog.New(slog.DiscardHandler), 0) })
	var first, second bytes.Buffer
	program.LogTo(slog.New(slog.NewTextHandler(&first, nil)), 0)
	logger := klog.Background()
	logger.Info("one")
	derived := logger.WithValues("of", "first")
	program.LogTo(slog.New(slog.NewTextHandler(&second, nil)), 4)
	logger.Info("two")
	derived.Info("three")
	for name, tc := range map[string]struct {
		reason, got string
		want, not   string
	}{
		"First":   {reason: "the first execution has ended", got: first.String(), want: "msg=one", not: "msg=two"},
		"Derived": {reason: "a logger with values is of the execution that made it", got: first.String(), want: "msg=three", not: "msg=two"},
		"Second":  {reason: "the second execution is in progress", got: second.String(), want: "msg=two", not: "msg=one"},
	} {
		if !strings.Contains(tc.got, tc.want) || strings.Contains(tc.got, tc.not) {
			t.Errorf("%s: %s: %q, want %q and not %q", name, tc.reason, tc.got, tc.want, tc.not)
		}
	}
	if !klog.V(4).Enabled() || klog.V(5).Enabled() {
		t.Error("the verbosity is not that of the second execution")
	}
}
