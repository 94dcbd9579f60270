// Package settling answers: has the rollout of an update settled?
//
// [ChangeOf] finds the update in the history of ClusterVersion, and [Of] states what its rollout waits for. The
// cluster-version operator (CVO) reports the end of an update hours before the nodes of all pools are updated.
package settling

import (
	"slices"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// Change is an update of a cluster.
type Change struct {
	// From was completed before, and To is the last release that was requested since.
	From, To configv1.UpdateHistory
	// Retargeted are the versions that were requested before To and were not completed, the oldest first.
	Retargeted []string
	// Started is when the first of them, or To, was requested; zero where the history does not state that.
	Started time.Time
	// Completed is when CVO completed To; zero while it has not.
	Completed time.Time
	// RolledBack is true where From was requested again after To.
	RolledBack bool
}

// ChangeOf is the last update in a history, the newest entry first; false for a cluster that was only installed.
//
// An update that is interrupted, and continued with another release, is one change: it starts from the release
// that was completed, so the state before its first start counts.
func ChangeOf(history []configv1.UpdateHistory) (Change, bool) {
	change, older, found := chain(history)
	if !found {
		return Change{}, false
	}
	if sameRelease(change.To, change.From) && len(change.Retargeted) > 0 { // the update was given up before its end
		back := history[1]
		change.To, change.Retargeted, change.Completed, change.RolledBack = back, change.Retargeted[:len(change.Retargeted)-1], time.Time{}, true
		return change, true
	}
	if !lower(change.To.Version, change.From.Version) {
		return change, true
	}
	if undone, _, ok := chain(older); ok && sameRelease(undone.From, change.To) { // the update was undone after its end
		undone.RolledBack = true
		return undone, true
	}
	return change, true
}

// chain is the newest entry with the incomplete ones before it, and the history from the release that it starts from.
func chain(history []configv1.UpdateHistory) (change Change, older []configv1.UpdateHistory, found bool) {
	if len(history) == 0 {
		return Change{}, nil, false
	}
	at := slices.IndexFunc(history[1:], func(past configv1.UpdateHistory) bool { return past.State == configv1.CompletedUpdate })
	if at < 0 {
		return Change{}, nil, false
	}
	change = Change{From: history[at+1], To: history[0], Started: history[at].StartedTime.Time}
	for _, past := range history[1 : at+1] {
		change.Retargeted = slices.Insert(change.Retargeted, 0, past.Version)
	}
	if history[0].State == configv1.CompletedUpdate && history[0].CompletionTime != nil {
		change.Completed = history[0].CompletionTime.Time
	}
	return change, history[at+1:], true
}

func sameRelease(a, b configv1.UpdateHistory) bool {
	if a.Image != "" && b.Image != "" {
		return a.Image == b.Image
	}
	return a.Version != "" && a.Version == b.Version
}

func lower(a, b string) bool {
	first, err := semver.Parse(a)
	second, err2 := semver.Parse(b)
	return err == nil && err2 == nil && first.LT(second)
}
