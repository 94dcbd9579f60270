package afterupdate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/words"
)

// Question is the input of [Judge].
type Question struct {
	Cluster report.Cluster
	// Run is the run whose baseline it is; empty for none.
	Run string
	// Change is the update; nil if none has begun since the cluster was installed.
	Change *settling.Change
	// Before is the baseline; nil for none, and NoBaseline is why, as a clause.
	Before     *baseline.State
	NoBaseline string
	// Stored is when a baseline was taken after the update, of its release; zero for none.
	Stored time.Time
	// Soak is for how long the cluster has to be good after it has settled.
	Soak time.Duration
	// Moment is true for an archive, which has no later sample, and Watched if a sample follows soon.
	Moment, Watched bool
}

// Judge evaluates an update by its course.
func Judge(question Question, course Course) Report {
	j := evaluation{timing{question: question, course: course, now: course.Last}}
	made := Report{
		APIVersion: report.APIVersion, Kind: Kind, Cluster: question.Cluster, Update: j.update(),
		Samples: Samples{Number: course.Number, First: timeOf(course.First), Last: timeOf(course.Last)},
		Waiting: course.last.progress.Waiting, Notices: j.notices(), Unread: j.unread(), NotCovered: j.notCovered(), Regressions: []Regression{},
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
	made.Decision, made.Message = j.decide(made)
	if made.Decision != Unfinished && made.Decision != RolledBack && len(made.Waiting) == 0 &&
		!course.last.progress.Settled.After(j.timing.now) {
		made.Update.SettledTime = timeOf(course.last.progress.Settled)
	}
	return made
}

// NotCovered lists problems that cannot be detected from cluster objects.
func NotCovered() []string {
	return []string{
		"packets lost on the way, such as large ones (MTU): probe the paths between nodes",
		"traffic that a NetworkPolicy of the new release denies: NetworkPolicies have no status, so probe it",
		"the behavior of workloads while their pods are ready: use their own tests and alerts",
	}
}

// evaluation builds the report.
type evaluation struct{ timing timing }

// timing answers when problems count.
type timing struct {
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

func (j evaluation) update() Update {
	made := Update{Run: j.timing.question.Run, From: j.timing.question.Cluster.Version, To: j.timing.question.Cluster.Version}
	if change := j.timing.question.Change; change != nil {
		made.From, made.To, made.Image, made.Retargeted = change.From.Version, change.To.Version, change.To.Image, change.Retargeted
		made.StartTime, made.CompletionTime = timeOf(change.Started), timeOf(change.Completed)
	}
	return made
}

func (j evaluation) notices() []string {
	var notices []string
	if paused := j.timing.course.last.progress.Paused; len(paused) > 0 {
		notices = append(notices, "paused MachineConfigPools are left out, and their nodes are not updated: "+words.List(paused, maxNames))
	}
	if leftOut := j.timing.course.last.progress.LeftOut; len(leftOut) > 0 {
		notices = append(notices, "pools that the rollout does not update are left out: "+words.List(leftOut, maxNames))
	}
	notices = append(notices, j.gone()...)
	var stopped []string
	for _, key := range j.timing.course.comparison.Stopped {
		stopped = append(stopped, j.timing.course.named(key).String())
	}
	for lead, names := range map[string][]string{
		"were scaled to none by their owners: ": stopped, "namespaces that are being deleted are left out: ": j.timing.course.comparison.Leaving,
	} {
		if len(names) > 0 {
			notices = append(notices, lead+words.List(names, maxNames))
		}
	}
	slices.Sort(notices)
	if j.timing.question.Moment {
		notices = append(notices, "an archive shows one moment: problems before or after it are unknown")
	}
	return notices
}

// gone names what no longer exists, by its namespace.
func (j evaluation) gone() []string {
	names := map[string][]string{}
	for _, key := range j.timing.course.comparison.Gone {
		named := j.timing.course.named(key)
		at := "no longer exist, deleted by the release or by an administrator: "
		if named.Namespace != "" {
			at = "no longer exist in namespace " + named.Namespace + ", deleted by the release or by their owner: "
			named.Namespace = ""
		}
		names[at] = append(names[at], named.String())
	}
	var notices []string
	for _, at := range slices.Sorted(maps.Keys(names)) {
		notices = append(notices, at+words.List(names[at], maxNames))
	}
	const most = 20
	if more := len(notices) - most; more > 0 {
		notices = append(notices[:most], "no longer exist either: objects of "+words.Count(more, "other namespace"))
	}
	return notices
}

// maxNames bounds the names in a notice.
const maxNames = 10

func (j evaluation) unread() []string {
	var unread []string
	for kind, cause := range j.timing.course.last.unread {
		if j.never(kind) {
			continue
		}
		unread = append(unread, fmt.Sprintf("%s: %s", kind, cause))
	}
	if before := j.timing.question.Before; before != nil {
		for kind, cause := range before.Unread {
			if j.timing.course.last.unread[kind] == "" && kind.Known() {
				unread = append(unread, fmt.Sprintf("%s, in the baseline: %s", kind, cause))
			}
		}
	}
	slices.Sort(unread)
	return unread
}

// never reports whether a kind that is not a part of each cluster is not covered: it could not be read before the update, either, or
// the user may not list it, such as custom resources of an operator that a user has installed.
func (j evaluation) never(kind baseline.Kind) bool {
	before := j.timing.question.Before
	return !kind.Known() && (before != nil && before.Unread[kind] != "" || j.timing.course.last.forbidden[kind])
}

// notCovered lists problems that no object shows, and the kinds that could never be read.
func (j evaluation) notCovered() []string {
	var kinds []string
	for kind := range j.timing.course.last.unread {
		if j.never(kind) {
			kinds = append(kinds, kind.Name())
		}
	}
	if len(kinds) == 0 {
		return NotCovered()
	}
	slices.Sort(kinds)
	return append(NotCovered(), words.Count(len(kinds), "kind")+
		" of objects that the user may not list, or that could not be read before either: "+words.List(kinds, maxNames)+
		": bind the ClusterRole cluster-reader")
}

// group is the part of the report that lists a problem. A cause belongs to the first group of its problems in this
// order.
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

// causes returns the problems by group; problems with one origin are merged. A problem that existed before the
// update is never merged into a regression.
func (j evaluation) causes() map[group][]cause {
	type place struct {
		origin regression.Origin
		group  group
	}
	var order []place
	all := map[place]*cause{}
	for _, each := range j.timing.course.comparison.Found {
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

func (j evaluation) groupOf(found *regression.Found) group {
	switch {
	case found.Class == regression.Unchanged:
		return unchanged
	case found.Class == regression.Worse && j.timing.earlier(*found):
		found.Was += "; bad since before the update began"
		return unchanged
	case found.Class == regression.Excused:
		return excused
	case found.Class == regression.Worse && j.timing.later(*found):
		found.Was += fmt.Sprintf("; it began more than %s after the update had settled, so the update did not cause it", window)
		return excused
	case found.Class == regression.Unattributed:
		return unattributed
	case j.timing.updated() && j.timing.lasts(*found) && !j.timing.held(*found):
		return regressed
	}
	return pending
}

// earlier reports whether the object states that it was bad before the update began, which the baseline does not contradict. A
// container that restarts may have begun to do so later than its pod.
func (j timing) earlier(found regression.Found) bool {
	since := believed(found, j.question.Before)
	return j.updated() && found.Problem.Reason != "Restarting" && !since.IsZero() && since.Before(j.question.Change.Started)
}

// window is for how long after the update has settled what begins may be caused by it.
const window = time.Hour

// later reports whether a problem is known to have begun after the window.
func (j timing) later(found regression.Found) bool {
	began := j.course.Problems[Problem{found.Key, found.Problem.Reason}].Began
	return j.settled() && began.After(j.course.last.progress.Settled.Add(window))
}

// held reports whether a problem does not count yet, for how long it may last: workloads are evicted while nodes are updated, and
// operators may be progressing then.
func (j timing) held(found regression.Found) bool {
	switch progress := j.course.last.progress; {
	case j.overdue():
		return false
	case found.Problem.Reason == regression.Progressing:
		return progress.Draining
	case baseline.RowOf(found.Key.Kind).Updating:
		return false
	case progress.Draining:
		return true
	}
	return j.rests()
}

// rests reports whether the nodes and operators have ended their rollout a moment ago. An operator that continues is not waited for.
func (j timing) rests() bool { return j.course.last.progress.Settled.After(j.now) }

// overdue reports whether the rollout stopped for longer than its limit, so that nothing is evicted any more.
func (j timing) overdue() bool {
	return slices.ContainsFunc(j.course.comparison.Found, func(each regression.Found) bool {
		stops := each.Problem.Reason == "NotUpdated" || each.Problem.Reason == "OutdatedVersion"
		return stops && each.Class == regression.Worse && !j.earlier(each) && j.lasts(each)
	})
}

// updated reports whether there is an update after the baseline that could have caused anything.
func (j timing) updated() bool {
	change := j.question.Change
	return change != nil && !change.RolledBack && !change.Completed.IsZero() && j.question.Before != nil && !j.question.notBegun()
}

// lasts reports whether a problem has been there for longer than its limit. What was bad before the end of the
// update of the control plane counts from that end: it was a part of the rollout.
func (j timing) lasts(found regression.Found) bool {
	return !j.counts(found).After(j.now) || j.course.Problems[Problem{found.Key, found.Problem.Reason}].recurs(j.now)
}

// counts is when a problem counts, if it lasts.
func (j timing) counts(found regression.Found) time.Time {
	since := j.course.Problems[Problem{found.Key, found.Problem.Reason}].Since
	if change := j.question.Change; change != nil && change.Completed.After(since) {
		since = change.Completed
	}
	if found.Problem.Reason == "NotUpdated" || found.Problem.Reason == regression.Progressing {
		since = latest(since, j.course.last.progress.Steps)
	}
	return since.Add(baseline.RowOf(found.Key.Kind).LimitOf(found.Problem.Reason))
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
func (j timing) settled() bool {
	progress := j.course.last.progress
	return len(progress.Waiting) == 0 && !progress.Settled.IsZero() && !progress.Settled.After(j.now)
}

// decide makes the decision, the first that applies.
func (j evaluation) decide(made Report) (Decision, string) {
	change := j.timing.question.Change
	switch {
	case change == nil:
		return Unfinished, "no update has begun: the cluster runs the release that it was installed with"
	case change.RolledBack:
		return RolledBack, fmt.Sprintf("%s was requested again after %s, so that the update was undone", change.From.Version, change.To.Version)
	case j.timing.question.Before != nil && j.timing.question.notBegun():
		return Unfinished, fmt.Sprintf("the update has not begun: the baseline was taken from the release %s, which the cluster runs",
			change.To.Version)
	case change.Completed.IsZero():
		return Unfinished, fmt.Sprintf("the update to %s began at %s, and the cluster-version operator has not completed it", change.To.Version,
			timeOf(change.Started))
	case j.timing.question.Before == nil && !j.timing.question.Stored.IsZero():
		return Undecided, fmt.Sprintf("no baseline was stored before the update, so it is unknown whether the failing objects were "+
			"good before; the baseline of %s belongs to %s: "+
			"the next update is compared with it", timeOf(j.timing.question.Stored), change.To.Version)
	case j.timing.question.Before == nil:
		return Undecided, fmt.Sprintf("there is no baseline (%s), so it is unknown whether the failing objects were good before",
			cmp.Or(j.timing.question.NoBaseline, "no run has stored one"))
	}
	return j.compare(made)
}

// notBegun reports whether the baseline is one of the release that the cluster runs.
func (q Question) notBegun() bool {
	return q.Before.Version == q.Change.To.Version && !q.Change.Completed.IsZero()
}

func (j evaluation) compare(made Report) (Decision, string) {
	progress, counts := j.timing.course.last.progress, made.Counts
	again, recent := j.timing.ended()
	switch {
	case counts.Regressions > 0:
		return Regressed, words.Count(counts.Regressions, "problem") + " that the cluster did not have before the update"
	case len(progress.Waiting) > 0:
		return Settling, "the rollout waits: " + words.Clauses(progress.Waiting, maxNames)
	case !j.timing.settled():
		return Settling, fmt.Sprintf("the rollout has ended, and settles until %s", timeOf(progress.Settled))
	case counts.Pending > 0:
		return Settling, words.Count(counts.Pending, "problem") +
			" that the cluster did not have before the update, which may not last longer than the limit"
	case len(j.timing.course.comparison.Lost) > 0:
		return Undecided, "nothing else is known to be worse, but " + words.Clauses(j.lost(), maxNames)
	case len(j.unread()) > 0 && j.timing.question.Watched && j.timing.course.Gaps < complete:
		return Settling, "the last sample is incomplete, and is taken again: " + words.Clauses(j.unread(), maxNames)
	case counts.Unattributed > 0 || len(j.unread()) > 0:
		return Undecided, "nothing is known to be worse, but " + j.unknown(made)
	case !j.timing.question.Moment && j.timing.course.Number < least:
		return Settling, "one more sample is needed"
	case !j.timing.question.Moment && recent:
		return Settling, again
	case j.timing.now.Before(j.timing.soaked()):
		return Settling, fmt.Sprintf("the cluster has been good since %s, and soaks until %s", timeOf(j.timing.goodSince()),
			timeOf(j.timing.soaked()))
	}
	return Good, fmt.Sprintf("the update from %s to %s has settled, and nothing that was good before is bad",
		j.timing.question.Change.From.Version, j.timing.question.Change.To.Version)
}

// least is how many samples a decision needs, and complete how many in a row are not complete before that is one.
const (
	least    = 2
	complete = 3
)

// lost states what so much was lost of that no owner is assumed.
func (j evaluation) lost() []string {
	var clauses []string
	for _, each := range j.timing.course.comparison.Lost {
		namespace := each.Namespace
		for redacted, key := range j.timing.course.last.names {
			if redacted.Namespace == namespace {
				namespace = key.Namespace
				break
			}
		}
		clauses = append(clauses, fmt.Sprintf("%s of namespace %s are gone, and "+
			"who deleted them is unknown", words.Count(each.Objects, "object"),
			namespace))
	}
	return clauses
}

// unknown states why nothing is decided.
func (j evaluation) unknown(made Report) string {
	var clauses []string
	for _, each := range made.Unattributed {
		if each.Was != "" && strings.HasPrefix(each.Is, baseline.Missing) {
			clauses = append(clauses, fmt.Sprintf("%s %s is gone, and who deleted it is unknown", each.Object.Kind,
				strings.TrimPrefix(each.Object.Namespace+"/"+each.Object.Name, "/")))
		}
	}
	if unread := j.unread(); len(unread) > 0 || len(clauses) == 0 {
		clauses = append(clauses, "some objects could not be read: "+words.Clauses(unread, maxNames))
	}
	return words.Clauses(clauses, maxNames)
}

// ended states which problem ended a moment ago, that it may come again; false for none.
func (j timing) ended() (text string, recent bool) {
	var last time.Time
	for at, seen := range j.course.Problems {
		over := seen.Ended.Add(resting(seen))
		if seen.Found.Class == regression.Worse && !seen.Ended.IsZero() && seen.Since.After(j.course.last.progress.Settled) &&
			over.After(j.now) && over.After(last) {
			last, text = over, fmt.Sprintf("%s was bad until %s (%s), and "+
				"must stay good until %s", j.course.named(at.Key), timeOf(seen.Ended),
				at.Reason, timeOf(over))
		}
	}
	recovered, settled := j.course.recovered, j.course.last.progress.Settled
	over := recovered.at.Add(baseline.RowOf(recovered.key.Kind).Limit)
	if recovered.at.After(settled) && recovered.at.Before(settled.Add(window)) && over.After(j.now) && over.After(last) {
		last, text = over, fmt.Sprintf("%s was bad until %s, and "+
			"must stay good until %s", recovered.key, timeOf(recovered.at), timeOf(over))
	}
	return text, !last.IsZero()
}

// goodSince is since when the settled cluster is good: a problem that ended before the first sample is not known.
func (j timing) goodSince() time.Time {
	since := j.course.last.progress.Settled
	for _, seen := range j.course.Problems {
		if seen.Found.Class == regression.Worse && seen.Ended.After(since) {
			since = seen.Ended
		}
	}
	return since
}

func (j timing) soaked() time.Time { return j.goodSince().Add(j.question.Soak) }
