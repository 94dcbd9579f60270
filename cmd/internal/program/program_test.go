package program_test

import (
	"runtime/debug"
	"testing"

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
