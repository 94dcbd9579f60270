package settling_test

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/settling"
)

func noon() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

// entries is a history whose newest entry is the first: a version, with "-" before one that was not completed. Each
// began an hour before the one that is newer.
func entries(versions ...string) []configv1.UpdateHistory {
	var history []configv1.UpdateHistory
	for i, version := range versions {
		started := metav1.NewTime(noon().Add(-time.Duration(i) * time.Hour))
		entry := configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: version, StartedTime: started}
		if version[0] == '-' {
			entry.State, entry.Version = configv1.PartialUpdate, version[1:]
		}
		ended := metav1.NewTime(started.Add(30 * time.Minute))
		entry.CompletionTime = &ended
		if i == 0 && entry.State == configv1.PartialUpdate {
			entry.CompletionTime = nil
		}
		history = append(history, entry)
	}
	return history
}

func TestChangeOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		history    []configv1.UpdateHistory
		none       bool
		from, to   string
		retargeted []string
		// started is how many hours before noon.
		started    int
		completed  bool
		rolledBack bool
	}{
		"Installed":       {reason: "an installation is no update", history: entries("4.18.1"), none: true},
		"NoHistory":       {reason: "CVO has not written one yet", none: true},
		"InstallPartial":  {reason: "no release was ever completed", history: entries("-4.18.2", "-4.18.1"), none: true},
		"Completed":       {reason: "the usual update", history: entries("4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2", completed: true},
		"InProgress":      {reason: "CVO works on it", history: entries("-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2"},
		"Retargeted":      {reason: "the state before the first start is that before the update", history: entries("4.18.3", "-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.3", retargeted: []string{"4.18.2"}, started: 1, completed: true},
		"RetargetedTwice": {reason: "also after several", history: entries("-4.18.4", "-4.18.3", "-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.4", retargeted: []string{"4.18.2", "4.18.3"}, started: 2},
		"Last":            {reason: "earlier updates are other changes", history: entries("4.18.3", "4.18.2", "-4.18.1", "4.18.0"), from: "4.18.2", to: "4.18.3", completed: true},
		"GivenUp":         {reason: "the release before was requested again before the end", history: entries("4.18.1", "-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2", started: 1, rolledBack: true},
		"GivingUp":        {reason: "and is not completed again", history: entries("-4.18.1", "-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2", started: 1, rolledBack: true},
		"Undone":          {reason: "the release before was requested again after the end", history: entries("4.18.1", "4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2", started: 1, completed: true, rolledBack: true},
		"Lower":           {reason: "a lower release that the cluster never ran is an update like any other", history: entries("4.18.0", "4.18.2", "4.18.1"), from: "4.18.2", to: "4.18.0", completed: true},
		"SameAgain":       {reason: "the same release was requested again after an interruption", history: entries("4.18.2", "-4.18.3", "-4.18.2", "4.18.1"), from: "4.18.1", to: "4.18.2", retargeted: []string{"4.18.2", "4.18.3"}, started: 2, completed: true},
	} {
		t.Run(name, func(t *testing.T) {
			change, found := settling.ChangeOf(tc.history)
			if found == tc.none {
				t.Fatalf("%s: found %t", tc.reason, found)
			}
			if tc.none {
				return
			}
			if change.From.Version != tc.from || change.To.Version != tc.to || !slices.Equal(change.Retargeted, tc.retargeted) || change.RolledBack != tc.rolledBack {
				t.Errorf("%s: %+v", tc.reason, change)
			}
			if want := noon().Add(-time.Duration(tc.started) * time.Hour); !change.Started.Equal(want) {
				t.Errorf("%s: started %s, want %s", tc.reason, change.Started, want)
			}
			if change.Completed.IsZero() == tc.completed {
				t.Errorf("%s: completed %s", tc.reason, change.Completed)
			}
		})
	}
}
