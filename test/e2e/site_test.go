package e2e_test

import (
	"slices"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// A check of the site runs in a pod, with an account that may not write. That a check of the
// site never replaces one of the release, and how it is selected, is tested by test/commands.
func TestSiteChecks(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	for name, tc := range map[string]struct {
		reason string
		animal animal
		code   int
		want   map[string]preflight.Outcome
		// decides are the checks that determine the verdict.
		decides []string
	}{
		"Pass": {
			reason: "both pass", animal: animal{Ending: "pass"}, code: 0,
			want: map[string]preflight.Outcome{"Zoo.Animal": preflight.Pass, "Site.Animal": preflight.Pass, "SiteChecks": preflight.Pass},
		},
		"Writes": {
			reason: "its account has no write access, so the check is inconclusive", animal: animal{Ending: "write"}, code: 4,
			want:    map[string]preflight.Outcome{"Zoo.Animal": preflight.Pass, "Site.Animal": preflight.Unknown, "ReadOnlyGuard": preflight.Pass},
			decides: []string{"Site.Animal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := runPreflight(t, tc.code, "--to", to, "--checks", testCluster.SiteDirectory(t, map[string]animal{"backup": tc.animal}))
			for name, want := range tc.want {
				if got := byName(result)[name]; got.Outcome != want {
					t.Errorf("%s: %s is %s (%s) %s, want %s", tc.reason, name, got.Outcome, got.Reason, got.Message, want)
				}
			}
			if got := slices.Concat(result.Verdict.Blocking, result.Verdict.Undecided); !slices.Equal(got, tc.decides) {
				t.Errorf("%s: the verdict is determined by %q, want %q", tc.reason, got, tc.decides)
			}
			testCluster.ExpectNothingLeft(t)
		})
	}
}
