package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/update"
)

// entry returns an entry of a history; without minutes it has no completion time.
func entry(version string, state configv1.UpdateState, minutes int) configv1.UpdateHistory {
	start := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	made := configv1.UpdateHistory{Version: version, State: state, StartedTime: start}
	if minutes != 0 {
		end := metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute))
		made.CompletionTime = &end
	}
	return made
}

func TestHistory(t *testing.T) {
	t.Parallel()
	const completed, partial = configv1.CompletedUpdate, configv1.PartialUpdate
	type past = map[update.Kind][]time.Duration
	for name, tc := range map[string]struct {
		reason  string
		entries []configv1.UpdateHistory
		want    past
	}{
		"Installed": {reason: "the installation is no update", entries: []configv1.UpdateHistory{entry("4.16.1", completed, 40)}, want: past{}},
		"Kinds": {
			reason:  "an update starts from the last release that was completed",
			entries: []configv1.UpdateHistory{entry("4.17.3", completed, 90), entry("4.17.1", partial, 10), entry("4.16.9", completed, 50), entry("4.16.1", completed, 40)},
			want:    past{update.Minor: {90 * time.Minute}, update.Patch: {50 * time.Minute}},
		},
		"Unusable": {
			reason: "times that are missing or contradictory, the same version and a rollback are ignored",
			entries: []configv1.UpdateHistory{
				entry("4.16.1", completed, 30), entry("4.16.9", completed, 20), entry("4.16.9", completed, -5), entry("4.16.9", completed, 0),
				entry("no version", completed, 5), entry("4.16.1", completed, 40),
			},
			want: past{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, rollout.History(tc.entries)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
