package hypershift_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/hypershift"
)

func TestOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		path   []string
		pools  map[string]string
		want   []string
	}{
		"One": {
			reason: "the control plane precedes its pools", path: []string{"4.18.5", "4.19.0"},
			pools: map[string]string{"a": "4.18.5", "b": "4.19.0"},
			want:  []string{"control plane 4.18.5-4.19.0", "a 4.18.5-4.19.0"},
		},
		"Late": {
			reason: "a pool follows only when the next update would leave it behind, and then to the release of the control plane",
			path:   []string{"4.14.1", "4.15.1", "4.16.1", "4.17.1", "4.18.1"}, pools: map[string]string{"a": "4.14.1"},
			want: []string{
				"control plane 4.14.1-4.15.1", "control plane 4.15.1-4.16.1", "control plane 4.16.1-4.17.1",
				"a 4.14.1-4.17.1", "control plane 4.17.1-4.18.1", "a 4.17.1-4.18.1",
			},
		},
		"Behind": {
			reason: "a pool that is behind already precedes the control plane", path: []string{"4.18.5", "4.19.0"},
			pools: map[string]string{"a": "4.15.2"},
			want:  []string{"a 4.15.2-4.18.5", "control plane 4.18.5-4.19.0", "a 4.18.5-4.19.0"},
		},
		"Major": {
			reason: "release 5.0 follows 4.22", path: []string{"4.22.1", "5.0.0"}, pools: map[string]string{"a": "4.20.2"},
			want: []string{"control plane 4.22.1-5.0.0", "a 4.20.2-5.0.0"},
		},
		"Newer": {
			reason: "a pool that is newer is not updated to an older release", path: []string{"4.18.5", "4.18.6"},
			pools: map[string]string{"a": "4.18.9"},
			want:  []string{"control plane 4.18.5-4.18.6"},
		},
		"Empty": {reason: "without a path there are no updates"},
	} {
		t.Run(name, func(t *testing.T) {
			var path []semver.Version
			for _, each := range tc.path {
				path = append(path, semver.MustParse(each))
			}
			var pools []hypershift.Running
			for _, pool := range []string{"a", "b"} {
				if version, ok := tc.pools[pool]; ok {
					pools = append(pools, hypershift.Running{Pool: pool, Version: semver.MustParse(version)})
				}
			}
			var got []string
			for _, step := range hypershift.Order(path, pools) {
				of := step.Pool
				if of == "" {
					of = "control plane"
				}
				got = append(got, fmt.Sprintf("%s %s-%s", of, step.From, step.To))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPausedUntil(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	later := now.Add(time.Second)
	for name, tc := range map[string]struct {
		reason  string
		texts   []string
		want    hypershift.Pause
		invalid bool
	}{
		"None": {reason: "an absent field pauses nothing", texts: []string{""}},
		"True": {
			reason: "every text that Go reads as true pauses", texts: []string{"true", "True", "TRUE", "t", "T", "1"},
			want: hypershift.Pause{Active: true},
		},
		"False": {reason: "every text that Go reads as false does not", texts: []string{"false", "False", "FALSE", "f", "F", "0"}},
		"Future": {
			reason: "a time in the future pauses until then", texts: []string{"2026-11-25T12:00:01Z"},
			want: hypershift.Pause{Active: true, Until: later},
		},
		"Ended": {reason: "a pause has ended at its time", texts: []string{"2026-11-25T12:00:00Z", "2020-01-01T00:00:00Z"}},
		"Invalid": {
			reason: "any other text pauses nothing", texts: []string{"yes", "tRUE", " true", "2026-11-26", "2026-11-26 00:00:00Z"},
			invalid: true,
		},
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
