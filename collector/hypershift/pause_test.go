package hypershift_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/hypershift"
)

func TestPausedUntil(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)
	for name, tc := range map[string]struct {
		reason  string
		texts   []string
		want    hypershift.Pause
		invalid bool
	}{
		"None":    {reason: "an absent field pauses nothing", texts: []string{""}},
		"True":    {reason: "every text that Go reads as true pauses", texts: []string{"true", "True", "TRUE", "t", "T", "1"}, want: hypershift.Pause{Active: true}},
		"False":   {reason: "every text that Go reads as false does not", texts: []string{"false", "False", "FALSE", "f", "F", "0"}},
		"Future":  {reason: "a time in the future pauses until then", texts: []string{"2026-11-25T12:00:01Z"}, want: hypershift.Pause{Active: true, Until: later}},
		"Ended":   {reason: "a pause has ended at its time", texts: []string{"2026-11-25T12:00:00Z", "2020-01-01T00:00:00Z"}},
		"Invalid": {reason: "any other text pauses nothing", texts: []string{"yes", "tRUE", " true", "2026-11-26", "2026-11-26 00:00:00Z"}, invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range tc.texts {
				got, err := hypershift.PausedUntil(text, now)
				if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.invalid {
					t.Errorf("%s: %q: error %v, (-want, +got):\n%s", tc.reason, text, err, diff)
				}
			}
		})
	}
}
