package afterupdate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
)

// Question is what is judged.
type Question struct {
	Cluster report.Cluster
	// Run is the run whose baseline it is; empty for none.
	Run string
	// Change is the update; nil where none has begun since the cluster was installed.
	Change *settling.Change
	// Before is the baseline; nil for none, and NoBaseline is why, as a clause.
	Before     *baseline.State
	NoBaseline string
	// Stored is when a baseline was taken after the update, of its release; zero for none.
	Stored time.Time
	// Soak is for how long the cluster has to be good after it has settled.
	Soak time.Duration
	// Moment is true for an archive, of which there is no later sample.
	Moment bool
}

// Judge judges an update by what its course has shown.
func Judge(question Question, course Course) Report {
	j := judge{question: question, course: course, now: course.last}
	made := Report{
		APIVersion: report.APIVersion, Kind: Kind, Cluster: question.Cluster, Update: j.update(),
		Samples: Samples{Number: course.number, First: timeOf(course.first), Last: timeOf(course.last)},
		Waiting: course.progress.Waiting, Notices: j.notices(), Unread: j.unread(), NotCovered: NotCovered(), Regressions: []Regression{},
	}
	if question.Before == nil {
		made.Stored = timeOf(question.Stored)
	} else {
		made.Baseline = &Baseline{Time: timeOf(question.Before.Taken), Objects: len(question.Before.Objects)}
	}
	causes := j.causes()
	made.Regressions, made.Counts.Regressions = j.listed(causes[regressed])
	made.Pending, made.Counts.Pending = j.listed(causes[pending])
	made.Unchanged, made.Counts.Unchanged = j.listed(causes[unchanged])
	made.Excused, made.Counts.Excused = j.listed(causes[excused])
	made.Unattributed, made.Counts.Unattributed = j.listed(causes[unattributed])
	made.Counts.Good = course.comparison.Good
	made.Decision, made.Message = j.decide(made.Counts)
	if made.Decision != Unfinished && made.Decision != RolledBack && len(made.Waiting) == 0 && !course.progress.Settled.After(j.now) {
		made.Update.SettledTime = timeOf(course.progress.Settled)
	}
	return made
}

// NotCovered is what no object of a cluster shows.
func NotCovered() []string {
	return []string{
		"packets that are lost on the way, such as large ones (MTU): probe the paths between nodes",
		"traffic that a NetworkPolicy of the new release denies: NetworkPolicies have no status, so probe it",
		"what a workload does while its pods are ready: its own tests and alerts show it",
	}
}

type judge struct {
	question Question
	course   Course
	now      time.Time
}

func timeOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return words.Time(t)
}

func (j judge) update() Update {
	made := Update{Run: j.question.Run, From: j.question.Cluster.Version, To: j.question.Cluster.Version}
	if change := j.question.Change; change != nil {
		made.From, made.To, made.Image, made.Retargeted = change.From.Version, change.To.Version, change.To.Image, change.Retargeted
		made.StartTime, made.CompletionTime = timeOf(change.Started), timeOf(change.Completed)
	}
	return made
}

func (j judge) notices() []string {
	var notices []string
	if paused := j.course.progress.Paused; len(paused) > 0 {
		notices = append(notices, "paused MachineConfigPools are left out, and their nodes are not updated: "+words.List(paused, maxNames))
	}
	if leftOut := j.course.progress.LeftOut; len(leftOut) > 0 {
		notices = append(notices, "NodePools that the rollout does not update are left out: "+words.List(leftOut, maxNames))
	}
	if gone := j.course.comparison.Gone; len(gone) > 0 {
		var names []string
		for _, key := range gone {
			names = append(names, key.String())
		}
		notices = append(notices, "no longer exist, by the release or by an administrator: "+words.List(names, maxNames))
	}
	if j.question.Moment {
		notices = append(notices, "an archive is one moment: what was bad before or after it is not known")
	}
	return notices
}

// maxNames bounds the names in a notice.
const maxNames = 10

func (j judge) unread() []string {
	var unread []string
	for kind, cause := range j.course.unread {
		unread = append(unread, fmt.Sprintf("%s: %s", kind, cause))
	}
	if before := j.question.Before; before != nil {
		for kind, cause := range before.Unread {
			if j.course.unread[kind] == "" {
				unread = append(unread, fmt.Sprintf("%s, in the baseline: %s", kind, cause))
			}
		}
	}
	slices.Sort(unread)
	return unread
}

// group is what is said about a problem. A cause is said to be what the first of its problems in this order is.
type group int

const (
	regressed group = iota
	pending
	unattributed
	unchanged
	excused
)

// cause is a problem with those that follow from it.
type cause struct {
	group group
	found []regression.Found
}

// causes are the problems by what is said about them, those of one origin as one. What was bad before is never part of
// what is worse.
func (j judge) causes() map[group][]cause {
	type place struct {
		origin regression.Origin
		group  group
	}
	var order []place
	all := map[place]*cause{}
	for _, each := range j.course.comparison.Found {
		of := j.groupOf(&each)
		at := place{each.Origin, max(of, pending)}
		if all[at] == nil {
			order, all[at] = append(order, at), &cause{group: of}
		}
		all[at].group, all[at].found = min(all[at].group, of), append(all[at].found, each)
	}
	made := map[group][]cause{}
	for _, at := range order {
		slices.SortStableFunc(all[at].found, regression.CompareCauses)
		made[all[at].group] = append(made[all[at].group], *all[at])
	}
	return made
}

func (j judge) groupOf(found *regression.Found) group {
	switch {
	case found.Class == regression.Unchanged:
		return unchanged
	case found.Class == regression.Worse && j.earlier(*found):
		found.Was += "; bad since before the update began"
		return unchanged
	case found.Class == regression.Excused:
		return excused
	case found.Class == regression.Unattributed:
		return unattributed
	case j.updated() && j.lasts(*found) && (j.settled() || j.overdue() || duringRollout(found.Key.Kind)):
		return regressed
	}
	return pending
}

// earlier reports whether the object states that it was bad before the update began. A container that restarts may have
// begun to do so later than its pod.
func (j judge) earlier(found regression.Found) bool {
	since := found.Problem.Since
	return j.updated() && found.Problem.Reason != "Restarting" && !since.IsZero() && since.Before(j.question.Change.Started)
}

// overdue reports whether the rollout stopped for longer than its limit, so that nothing is evicted any more.
func (j judge) overdue() bool {
	return slices.ContainsFunc(j.course.comparison.Found, func(each regression.Found) bool {
		stops := each.Key.Kind == baseline.MachineConfigPool || each.Key.Kind == baseline.NodePool || each.Key.Kind == baseline.ClusterOperator && each.Problem.Reason == "OutdatedVersion"
		return stops && each.Class == regression.Worse && !j.earlier(each) && j.lasts(each)
	})
}

// updated reports whether there is an update after the baseline that could have caused anything.
func (j judge) updated() bool {
	change := j.question.Change
	return change != nil && !change.RolledBack && !change.Completed.IsZero() && j.question.Before != nil && !j.question.notBegun()
}

// lasts reports whether a problem has been there for longer than its limit. What was bad before the end of the
// update of the control plane counts from that end: it was a part of the rollout.
func (j judge) lasts(found regression.Found) bool {
	since := j.course.since[problem{found.Key, found.Problem.Reason}]
	if change := j.question.Change; change != nil && change.Completed.After(since) {
		since = change.Completed
	}
	if pool := found.Key.Kind == baseline.MachineConfigPool || found.Key.Kind == baseline.NodePool; pool && found.Problem.Reason == "NotUpdated" {
		since = latest(since, j.course.progress.Steps)
	}
	return j.now.Sub(since) >= limitOf(found.Key.Kind, found.Problem.Reason)
}

// latest is the time of the last reboot of a node, or of the last node that replaced another, if that is later: a pool of many
// nodes takes hours, and is overdue when none follows any more.
func latest(since time.Time, steps []settling.Step) time.Time {
	for _, step := range steps {
		if step.Node != "" && step.Time.After(since) {
			since = step.Time
		}
	}
	return since
}

// settled reports whether the rollout has settled.
func (j judge) settled() bool {
	progress := j.course.progress
	return len(progress.Waiting) == 0 && !progress.Settled.IsZero() && !progress.Settled.After(j.now)
}

// decide makes the decision, the first that applies.
func (j judge) decide(counts Counts) (Decision, string) {
	change := j.question.Change
	switch {
	case change == nil:
		return Unfinished, "no update has begun: the cluster runs the release with which it was installed"
	case change.RolledBack:
		return RolledBack, fmt.Sprintf("%s was requested again after %s, so that the update was undone", change.From.Version, change.To.Version)
	case j.question.Before != nil && j.question.notBegun():
		return Unfinished, fmt.Sprintf("the update has not begun: the baseline was taken from the release %s, which the cluster runs", change.To.Version)
	case change.Completed.IsZero():
		return Unfinished, fmt.Sprintf("the update to %s began at %s, and the cluster-version operator has not completed it", change.To.Version, timeOf(change.Started))
	case j.question.Before == nil && !j.question.Stored.IsZero():
		return Undecided, fmt.Sprintf("no baseline was stored before the update, so nothing shows whether what is bad was good before it; the one of %s is of %s: the next update is compared with it", timeOf(j.question.Stored), change.To.Version)
	case j.question.Before == nil:
		return Undecided, fmt.Sprintf("there is no baseline (%s), so nothing shows whether what is bad was good before", cmp.Or(j.question.NoBaseline, "no run has stored one"))
	}
	return j.compare(counts)
}

// notBegun reports whether the baseline is one of the release that the cluster runs.
func (q Question) notBegun() bool {
	return q.Before.Version == q.Change.To.Version && !q.Change.Completed.IsZero()
}

func (j judge) compare(counts Counts) (Decision, string) {
	progress := j.course.progress
	switch {
	case counts.Regressions > 0:
		return Regressed, words.Count(counts.Regressions, "problem") + " that the cluster did not have before the update"
	case len(progress.Waiting) > 0:
		return Settling, "the rollout waits: " + words.Clauses(progress.Waiting, maxNames)
	case !j.settled():
		return Settling, fmt.Sprintf("the rollout has ended, and settles until %s", timeOf(progress.Settled))
	case counts.Pending > 0:
		return Settling, words.Count(counts.Pending, "problem") + " that the cluster did not have before the update, not known to last for longer than the limit"
	case counts.Unattributed > 0 || len(j.unread()) > 0:
		return Undecided, "nothing is known to be worse, but not everything was read: " + words.Clauses(j.unread(), maxNames)
	case !j.question.Moment && !j.course.steady:
		return Settling, "one more sample is needed: two that are equal show that the cluster has settled"
	case j.now.Before(j.soaked()):
		return Settling, fmt.Sprintf("the cluster has been good since %s, and soaks until %s", timeOf(j.goodSince()), timeOf(j.soaked()))
	}
	return Good, fmt.Sprintf("the update from %s to %s has settled, and nothing that was good before is bad", j.question.Change.From.Version, j.question.Change.To.Version)
}

// goodSince is since when the settled cluster is good: a problem that ended before the first sample is not known.
func (j judge) goodSince() time.Time {
	if j.course.goodSince.After(j.course.first) {
		return j.course.goodSince // it was bad in an earlier sample
	}
	return j.course.progress.Settled
}

func (j judge) soaked() time.Time { return j.goodSince().Add(j.question.Soak) }

// limits are how long a problem of a kind has to last before it counts, the reason "" for all others.
//
// Those of operators are of package settling, and those of nodes the limits by which "oc adm upgrade status" reports an error (openshift/oc,
// pkg/cli/admin/upgrade/status); that of a drain is the one of the alert MCCDrainError; those of workloads are of
// the alerts KubePodNotReady (15 minutes) and KubePodCrashLooping (10 minutes); a CertificateSigningRequest is
// approved within minutes. Containers that restart until they reach what they depend on do so for some minutes after a
// reboot, and count as Restarting for 15 more.
func limits() map[baseline.Kind]map[string]time.Duration {
	workload := map[string]time.Duration{"": 15 * time.Minute, "ContainerCreating": 10 * time.Minute, "CrashLoopBackOff": 10 * time.Minute, "CreateContainerError": 10 * time.Minute, "FailedCreate": 10 * time.Minute, "ImagePullBackOff": 10 * time.Minute, "ProgressDeadlineExceeded": 0, "Restarting": 30 * time.Minute, regression.Rolled: 0}
	return map[baseline.Kind]map[string]time.Duration{
		baseline.ClusterVersion:        {"": 0, "Failing": settling.MaxFailing},
		baseline.ClusterOperator:       {"": settling.MaxDegraded, "Unavailable": settling.MaxUnavailable, "OutdatedVersion": time.Hour},
		baseline.MachineConfigPool:     {"": 20 * time.Minute, "NotUpdated": time.Hour},
		baseline.Node:                  {"": 20 * time.Minute, "OutdatedConfig": time.Hour, "Draining": time.Hour},
		baseline.MachineSet:            {"": 30 * time.Minute},
		baseline.APIService:            {"": 5 * time.Minute},
		baseline.Deployment:            workload,
		baseline.StatefulSet:           workload,
		baseline.DaemonSet:             workload,
		baseline.ReplicationController: workload,
		baseline.ClusterServiceVersion: {"": 15 * time.Minute},
		baseline.Subscription:          {"": 15 * time.Minute},
		baseline.Alert:                 {"": 15 * time.Minute},
		baseline.HostedCluster:         {"": 40 * time.Minute},
		baseline.NodePool:              {"": time.Hour},
	}
}

// defaultLimit is the limit of the other kinds.
const defaultLimit = 10 * time.Minute

func limitOf(kind baseline.Kind, reason string) time.Duration {
	of, known := limits()[kind]
	if !known {
		return defaultLimit
	}
	if limit, known := of[reason]; known {
		return limit
	}
	return of[""]
}

// duringRollout reports whether a problem of a kind counts while nodes are still being updated: that of what does the
// update. Workloads are evicted by it, and alerts follow them.
func duringRollout(kind baseline.Kind) bool {
	updating := []baseline.Kind{
		baseline.ClusterVersion, baseline.ClusterOperator, baseline.MachineConfigPool, baseline.Node, baseline.APIService, baseline.HostedCluster,
		baseline.NodePool,
	}
	return slices.Contains(updating, kind)
}
