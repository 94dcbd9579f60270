package rollout

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/update"
)

// History are the durations of the past updates of a cluster by kind, from the history of
// its ClusterVersion, the newest entry first. An update starts from the last release that
// was completed before. The installation, updates that were not completed, and those
// whose times are missing or contradictory are ignored.
func History(entries []configv1.UpdateHistory) map[update.Kind][]time.Duration {
	past := map[update.Kind][]time.Duration{}
	for i, entry := range entries {
		if entry.State != configv1.CompletedUpdate || entry.CompletionTime == nil {
			continue
		}
		took := entry.CompletionTime.Sub(entry.StartedTime.Time)
		before := completedBefore(entries[i+1:])
		if took <= 0 || before == "" {
			continue
		}
		if kind := update.Kind(update.KindOf(before, entry.Version)); kind == update.Patch || kind == update.Minor || kind == update.Major {
			past[kind] = append(past[kind], took)
		}
	}
	return past
}

// completedBefore is the version of the newest completed entry; empty if there is none.
func completedBefore(older []configv1.UpdateHistory) string {
	for _, entry := range older {
		if entry.State == configv1.CompletedUpdate {
			return entry.Version
		}
	}
	return ""
}
