package preflight_test

import (
	"slices"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestOutcomeCompare(t *testing.T) {
	worstFirst := []preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Skipped, preflight.Pass}
	outcomes := slices.Clone(worstFirst)
	slices.Reverse(outcomes)
	slices.SortFunc(outcomes, preflight.Outcome.Compare)
	if !slices.Equal(outcomes, worstFirst) {
		t.Errorf("sorted as %v, want %v", outcomes, worstFirst)
	}
	for name, tc := range map[string]struct {
		reason string
		a, b   preflight.Outcome
		want   int
	}{
		"Same":         {reason: "an outcome equals itself", a: preflight.Warn, b: preflight.Warn, want: 0},
		"Worse":        {reason: "a failure is worse than a warning", a: preflight.Fail, b: preflight.Warn, want: -1},
		"Better":       {reason: "a pass is better than an inconclusive check", a: preflight.Pass, b: preflight.Unknown, want: 1},
		"NewOutcome":   {reason: "an outcome of a newer version ranks as Unknown", a: "Deferred", b: preflight.Unknown, want: 0},
		"NewAndWorse":  {reason: "an outcome of a newer version is not worse than a failure", a: "Deferred", b: preflight.Fail, want: 1},
		"NewAndBetter": {reason: "an outcome of a newer version does not count as a pass", a: "Deferred", b: preflight.Pass, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Compare(tc.b); got != tc.want {
				t.Errorf("%s: %q.Compare(%q) = %d, want %d", tc.reason, tc.a, tc.b, got, tc.want)
			}
		})
	}
}
