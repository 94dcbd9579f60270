// Package wave answers: may the next wave of an update start?
//
// [Decide] makes the [Gate] of the clusters of a wave: pure, from values. Its words are those of
// the rollout strategy of Open Cluster Management (cluster/v1alpha1, RolloutStrategy): a wave is
// a decision group of a Placement, a cluster succeeds when it has been successful for
// minSuccessTime, and maxFailures clusters of a group may fail, of a mandatory group none.
package wave

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// Kind of a Gate; its APIVersion is report.APIVersion.
const Kind = "PreflightGate"

// maxClockDifference is how far the clock of a cluster may be ahead of that of the gate.
const maxClockDifference = time.Hour

// Stage is how far the update of a cluster is.
type Stage string

// The stages. Only Updated is in favor of the next wave, and only after minSuccessTime.
const (
	// Outstanding means that the cluster has not begun to update to the release.
	Outstanding Stage = "Outstanding"
	// Updating means that the update is in progress, or that its machines or operators have not settled.
	Updating Stage = "Updating"
	// Updated means that the cluster runs the release, has settled, and is healthy: whether the update was good is its
	// Judgement.
	Updated Stage = "Updated"
	// Broken means that the update fails, or that the cluster runs the release and is not healthy.
	Broken Stage = "Broken"
	// Silent means that nothing is known about the cluster at present.
	Silent Stage = "Silent"
)

// Progress is how far the update of one cluster of a wave is.
type Progress struct {
	Name  string
	Stage Stage
	// Since is since when the stage is Updated or Updating, by the clock of the cluster; zero where it is unknown.
	Since time.Time
	// Message is why the stage is not Updated.
	Message string
	// Judgement is whether the update was good; nil where nothing is stored about that, and the cluster then counts from
	// the end of its update on.
	Judgement *Judgement
}

// Judgement is whether the update of a cluster was good, as the cluster states it.
type Judgement struct {
	// Status is that of the condition AfterUpdate: True for Good, False for Regressed or RolledBack, Unknown where it is
	// not decided or not known, and empty where a cluster of a hub does not state it.
	Status string
	// Since is since when, by the clock of the cluster; zero where it is unknown.
	Since time.Time
	// Message is why the status is not True.
	Message string
}

// Strategy has the conditions that a wave has to fulfil.
type Strategy struct {
	To string
	// Wave is the name of the decision group; empty for all clusters.
	Wave string
	// MinSuccessTime is how long a cluster must have been successful: updated and, where that is stated,
	// judged as Good.
	MinSuccessTime time.Duration
	// ProgressDeadline is how long an update may take before it counts as failed; 0 for no limit.
	ProgressDeadline time.Duration
	// MaxFailures is how many clusters may fail. A mandatory group has the zero value.
	MaxFailures Limit
	// Incomplete is why clusters of the wave may be missing, which must not open the gate; empty where none is.
	Incomplete string
}

// Status is the status of a cluster in a rollout, as Open Cluster Management names it, but for Unknown.
type Status string

// The statuses.
const (
	ToApply     Status = "ToApply"
	Progressing Status = "Progressing"
	Succeeded   Status = "Succeeded"
	Failed      Status = "Failed"
	TimeOut     Status = "TimeOut"
	// Unknown is the status of a cluster of which nothing is known at present. It counts neither
	// as success nor as failure.
	Unknown Status = "Unknown"
)

// Gate is whether the next wave may start.
type Gate struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the gate was decided, RFC 3339 in UTC.
	Time string `json:"time"`
	// Target is the version of the release, and Wave the decision group; empty for all clusters.
	Target string `json:"target"`
	Wave   string `json:"wave,omitempty"`
	// Decision is Ready where the next wave may start, Blocked where more clusters have failed
	// than may fail, and Undecided where too little is known, or it is too early.
	Decision verdict.Decision `json:"decision"`
	// Message is a sentence about the decision.
	Message string `json:"message"`
	// MinSuccessTime and MaxFailures are those of the strategy; FailuresAllowed is how many
	// clusters of this wave may fail.
	MinSuccessTime  string `json:"minSuccessTime"`
	MaxFailures     string `json:"maxFailures"`
	FailuresAllowed int    `json:"failuresAllowed"`
	// Clusters are sorted by status, those against the next wave first, then by name.
	Clusters []Result `json:"clusters"`
	// Notices are what else is to be said about the clusters; the caller sets them.
	Notices []string `json:"notices,omitempty"`
}

// Result is the status of one cluster.
type Result struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Since is since when the cluster is updated, or updating; RFC 3339 in UTC, empty where unknown.
	Since string `json:"since,omitempty"`
	// Message is why the status is not Succeeded.
	Message string `json:"message,omitempty"`
}

// StageOf is the stage of a cluster whose condition Updated has a status, for a reason; empty for a
// cluster that does not run the release.
func StageOf(status, reason string) Stage {
	switch metav1.ConditionStatus(status) {
	case "":
		return Outstanding
	case metav1.ConditionTrue:
		return Updated
	case metav1.ConditionFalse:
		if v1alpha1.UpdateFailed(reason) {
			return Broken
		}
		return Updating
	case metav1.ConditionUnknown:
	}
	return Silent
}

// Decide decides whether the next wave may start, at that time by the clock of this machine.
func Decide(strategy Strategy, clusters []Progress, now time.Time) Gate {
	gate := Gate{
		APIVersion: report.APIVersion, Kind: Kind, Time: words.Time(now), Target: strategy.To, Wave: strategy.Wave,
		MinSuccessTime: strategy.MinSuccessTime.String(), MaxFailures: strategy.MaxFailures.String(),
		FailuresAllowed: strategy.MaxFailures.Of(len(clusters)), Clusters: make([]Result, 0, len(clusters)),
	}
	for _, cluster := range clusters {
		gate.Clusters = append(gate.Clusters, strategy.result(cluster, now))
	}
	slices.SortStableFunc(gate.Clusters, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Status.rank(), b.Status.rank()), cmp.Compare(a.Name, b.Name))
	})
	gate.decide(strategy.MaxFailures.allowance(len(clusters)))
	if strategy.Incomplete != "" && gate.Decision == verdict.Ready {
		gate.Decision, gate.Message = verdict.Undecided, words.Line(strategy.Incomplete, maxMessage)
	}
	return gate
}

// result is the status of a cluster, with texts that are bounded.
func (s Strategy) result(cluster Progress, now time.Time) Result {
	status, message := s.statusOf(cluster, now)
	result := Result{Name: words.Line(cluster.Name, maxName), Status: status, Message: words.Line(message, maxMessage)}
	if !cluster.Since.IsZero() {
		result.Since = words.Time(cluster.Since)
	}
	return result
}

// The bounds of the texts of a cluster, in bytes.
const maxName, maxMessage = 253, 1 << 10

func (s Strategy) statusOf(cluster Progress, now time.Time) (status Status, message string) {
	if judged := cluster.Judgement; judged != nil && judged.Status == string(metav1.ConditionFalse) {
		return Failed, cmp.Or(judged.Message, "the update was not good")
	}
	switch cluster.Stage {
	case Outstanding:
		return ToApply, cmp.Or(cluster.Message, "the cluster has not begun to update to "+s.To)
	case Updating:
		if took := now.Sub(cluster.Since); s.ProgressDeadline > 0 && !cluster.Since.IsZero() && took > s.ProgressDeadline {
			return TimeOut, fmt.Sprintf("the update has taken %s, longer than %s; %s", took.Round(time.Minute), s.ProgressDeadline, cmp.Or(cluster.Message, "its state is unknown"))
		}
		return Progressing, cmp.Or(cluster.Message, "the cluster updates to "+s.To)
	case Broken:
		return Failed, cmp.Or(cluster.Message, "the update failed")
	case Updated:
		return s.soaked(cluster, now)
	case Silent:
	}
	return Unknown, cmp.Or(cluster.Message, "nothing is known about the cluster")
}

// soaked is the status of a cluster that is updated. The soak begins when the update was judged as Good.
func (s Strategy) soaked(cluster Progress, now time.Time) (status Status, message string) {
	since, word := cluster.Since, "updated"
	if judged := cluster.Judgement; judged != nil && s.MinSuccessTime > 0 {
		switch metav1.ConditionStatus(judged.Status) {
		case metav1.ConditionTrue:
			word = "good after the update"
			if judged.Since.IsZero() || judged.Since.After(since) {
				since = judged.Since
			}
		case metav1.ConditionUnknown:
			return Progressing, "it is not known whether the update was good: " + cmp.Or(judged.Message, "no cause is stated")
		case metav1.ConditionFalse:
		default:
			return Unknown, "the cluster does not state whether the update was good: its controller is older, or has no baseline"
		}
	}
	ahead := since.Sub(now)
	switch {
	case since.IsZero():
		return Unknown, "it is unknown since when the cluster is " + word
	case ahead > maxClockDifference:
		return Unknown, "the cluster states a time that is more than an hour ahead of the clock of this machine"
	case -ahead < s.MinSuccessTime:
		return Progressing, fmt.Sprintf("%s for %s of %s", word, max(0, -ahead).Round(time.Minute), s.MinSuccessTime)
	}
	return Succeeded, ""
}

// rank orders statuses, those against the next wave first.
func (s Status) rank() int {
	return slices.Index([]Status{Failed, TimeOut, Unknown, ToApply, Progressing, Succeeded}, s)
}

// allowance states how many clusters may fail.
func (l Limit) allowance(clusters int) string {
	text := fmt.Sprintf("%d may fail", l.Of(clusters))
	if l.exceeds(clusters) {
		text += fmt.Sprintf(": a limit of %s is more than there are, and counts as 0, as in Open Cluster Management", l)
	}
	return text
}

// decide sets the decision and its message, with how many clusters may fail.
func (g *Gate) decide(allowance string) {
	counts := map[Status]int{}
	for _, each := range g.Clusters {
		counts[each.Status]++
	}
	failed := counts[Failed] + counts[TimeOut]
	waiting := len(g.Clusters) - failed - counts[Succeeded]
	of := "of " + words.Count(len(g.Clusters), "cluster")
	switch {
	case len(g.Clusters) == 0:
		g.Decision, g.Message = verdict.Undecided, "the wave has no clusters, which proves nothing"
	case failed > g.FailuresAllowed:
		g.Decision, g.Message = verdict.Blocked, fmt.Sprintf("%d %s failed, and %s", failed, of, allowance)
	case waiting > 0:
		g.Decision, g.Message = verdict.Undecided, fmt.Sprintf("%d %s succeeded, and %d failed: %d not updated, %d updating or not updated for long enough, %d without an answer",
			counts[Succeeded], of, failed, counts[ToApply], counts[Progressing], counts[Unknown])
	case counts[Succeeded] == 0:
		g.Decision, g.Message = verdict.Undecided, "no cluster succeeded"
	default:
		g.Decision, g.Message = verdict.Ready, fmt.Sprintf("%d %s succeeded, and %d failed; %s", counts[Succeeded], of, failed, allowance)
	}
}
