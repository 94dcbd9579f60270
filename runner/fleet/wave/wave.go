// Package wave answers: may the next wave of an update start?
//
// [Decide] returns the [Gate] for the clusters of a wave; it is pure. The terms follow the rollout strategy of Open
// Cluster Management (cluster/v1alpha1, RolloutStrategy): a wave is a decision group of a Placement, a cluster succeeds
// when it has been successful for minSuccessTime, and maxFailures clusters of a group may fail. In a mandatory group,
// none may fail.
package wave

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// Kind of a Gate; its APIVersion is report.APIVersion.
const Kind = "PreflightGate"

// maxClockDifference is how far the clock of a cluster may be ahead of the gate's clock.
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
	// Silent means that nothing is currently known about the cluster.
	Silent Stage = "Silent"
)

// Progress is how far the update of one cluster of a wave is.
type Progress struct {
	Name  string
	Stage Stage
	// Since is when the stage became Updated or Updating, by the clock of the cluster; zero if unknown.
	Since time.Time
	// Message is why the stage is not Updated.
	Message string
	// Judgement is whether the update was good; nil if no judgement is stored, in which case the cluster counts from
	// the end of its update.
	Judgement *Judgement
}

// Judgement is whether the update of a cluster was good, as the cluster reports it.
type Judgement struct {
	// Status is the status of the condition AfterUpdate: True for Good, False for Regressed or RolledBack, Unknown if
	// it is undecided or unknown, and empty if a cluster of a hub does not report it.
	Status string
	// Since is the start time, by the clock of the cluster; zero if unknown.
	Since time.Time
	// Message is why the status is not True.
	Message string
}

// Strategy has the conditions that a wave has to fulfil.
type Strategy struct {
	To string
	// Wave is the name of the decision group; empty for all clusters.
	Wave string
	// MinSuccessTime is how long a cluster must have been successful: updated and, if this is reported, Good.
	MinSuccessTime time.Duration
	// ProgressDeadline is how long an update may take before it counts as failed; 0 for no limit.
	ProgressDeadline time.Duration
	// MaxFailures is how many clusters may fail. A mandatory group has the zero value.
	MaxFailures Limit
	// Incomplete is why clusters of the wave may be missing, which must not open the gate; empty if none is.
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
	// Unknown is the status of a cluster about which nothing is currently known. It counts neither as success nor as
	// failure.
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
	// Decision is Ready if the next wave may start, Blocked if more clusters have failed than may fail, and Undecided
	// if too little is known, or it is too early.
	Decision verdict.Decision `json:"decision"`
	// Message is a sentence about the decision.
	Message string `json:"message"`
	// MinSuccessTime and MaxFailures come from the strategy; FailuresAllowed is how many clusters of this wave may
	// fail.
	MinSuccessTime  string `json:"minSuccessTime"`
	MaxFailures     string `json:"maxFailures"`
	FailuresAllowed int    `json:"failuresAllowed"`
	// Clusters are sorted by status, those against the next wave first, then by name.
	Clusters []Result `json:"clusters"`
	// Notices are further remarks about the clusters; the caller sets them.
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
			return TimeOut, fmt.Sprintf("the update has taken %s, longer than %s; %s", took.Round(time.Minute), s.ProgressDeadline,
				cmp.Or(cluster.Message, "its state is unknown"))
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

// soaked returns the status of an updated cluster. The soak begins when the update became Good.
func (s Strategy) soaked(cluster Progress, now time.Time) (status Status, message string) {
	since, word := cluster.Since, "updated"
	if judged := cluster.Judgement; judged != nil && (s.MinSuccessTime > 0 || judged.Status == string(metav1.ConditionUnknown)) {
		switch metav1.ConditionStatus(judged.Status) {
		case metav1.ConditionTrue:
			word = "good after the update"
			if judged.Since.IsZero() || judged.Since.After(since) {
				since = judged.Since
			}
		case metav1.ConditionUnknown:
			return Progressing, "it is unknown whether the update was good: " + cmp.Or(judged.Message, "no cause is given")
		case metav1.ConditionFalse:
		default:
			return Unknown, "the cluster does not report whether the update was good: its controller is older, or " +
				"has no baseline"
		}
	}
	ahead := since.Sub(now)
	switch {
	case since.IsZero():
		return Unknown, "it is unknown since when the cluster is " + word
	case ahead > maxClockDifference:
		return Unknown, "the cluster reports a time that is more than an hour ahead of the clock of this machine"
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
		text += fmt.Sprintf(": a limit of %s exceeds their number, and counts as 0, as in Open Cluster Management", l)
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
		g.Decision, g.Message = verdict.Undecided,
			fmt.Sprintf("%d %s succeeded, and %d failed: %d not updated, %d updating or not updated for long enough, %d without an answer",
				counts[Succeeded], of, failed, counts[ToApply], counts[Progressing], counts[Unknown])
	case counts[Succeeded] == 0:
		g.Decision, g.Message = verdict.Undecided, "no cluster succeeded"
	default:
		g.Decision, g.Message = verdict.Ready, fmt.Sprintf("%d %s succeeded, and %d failed; %s", counts[Succeeded], of, failed, allowance)
	}
}

// listed is how many clusters that succeeded are listed by default.
const listed = 20

// Document is the decision, and the clusters, those against the next wave first.
func (g Gate) Document(view document.View) document.Document {
	name := cmp.Or(g.Wave, "all clusters")
	level := document.Caution
	switch g.Decision {
	case verdict.Ready:
		level = document.Good
	case verdict.Blocked:
		level = document.Bad
	case verdict.Undecided, verdict.NothingKnown:
	}
	terms := document.Table{Title: "Terms"}
	terms.Row("Release", g.Target)
	terms.Row("Wave", name)
	terms.Row("Soak", g.MinSuccessTime)
	terms.Row("May fail", g.MaxFailures)
	table := document.Table{Title: "Clusters", Columns: []string{"Cluster", "Status", "Since", "Cause"}, Result: "Status"}
	succeeded := 0
	for _, each := range g.Clusters {
		if each.Status == Succeeded {
			succeeded++
			if succeeded > view.Entries(len(g.Clusters), listed) {
				table.More++
				continue
			}
		}
		table.Rows = append(table.Rows, []string{each.Name, string(each.Status), each.Since, each.Message})
	}
	return document.Document{
		Title: "Gate after " + name, Source: "The JSON document has all data.",
		Blocks: []document.Block{
			document.Verdict{
				Mark: document.Mark{Level: level, Word: string(g.Decision)}, Subject: "the wave after " + name,
				Meaning: words.Sentence(words.Line(g.Message, maxMessage)),
			},
			terms, table,
			document.List{Lead: "Notices", Entries: g.Notices},
		},
	}
}

// Limit is a number or a percentage of clusters, as maxFailures of a rollout strategy. Its zero value is none.
type Limit struct {
	number  int
	percent bool
}

// ParseLimit reads a limit, such as "3" or "5%".
func ParseLimit(text string) (Limit, error) {
	// The pattern of maxFailures in the API.
	if !regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]{1,9})$`).MatchString(text) {
		return Limit{}, fmt.Errorf("%q is neither a number of clusters nor a percentage up to 100%%", text)
	}
	digits, percent := strings.CutSuffix(text, "%")
	number, err := strconv.Atoi(digits)
	return Limit{number, percent}, err
}

// String is the limit as [ParseLimit] reads it.
func (l Limit) String() string {
	if l.percent {
		return strconv.Itoa(l.number) + "%"
	}
	return strconv.Itoa(l.number)
}

// Of is the limit for that many clusters, as Open Cluster Management calculates it
// (calculateRolloutSize in pkg/apis/cluster/v1alpha1/rollout.go of sdk-go): a percentage is rounded up,
// and a number that exceeds the clusters counts as none.
func (l Limit) Of(clusters int) int {
	const whole = 100
	switch {
	case l.percent:
		return (clusters*l.number + whole - 1) / whole
	case l.exceeds(clusters):
		return 0
	}
	return l.number
}

// exceeds reports whether the limit is a number of more clusters than there are.
func (l Limit) exceeds(clusters int) bool { return !l.percent && l.number > clusters }

// OfTable returns the clusters of a table for the update to a version. A row that was read longer than maxAge before
// that time, or that does not contain the progress of the update, is Silent. A document of another kind, or about
// another release, results in an *input.Error.
func OfTable(table fleet.Table, to string, maxAge time.Duration, now time.Time) ([]Progress, error) {
	switch {
	case table.Kind != fleet.Kind || table.APIVersion != report.APIVersion:
		return nil, input.Errorf("it is not a table of a fleet: its kind is %q of %q, not %s of %s", words.External(table.Kind),
			words.External(table.APIVersion), fleet.Kind, report.APIVersion)
	case table.Target == "":
		return nil, input.Errorf("the table is about the best update of each cluster, not about one release: create "+
			"it with --to %s", to)
	case table.Target != to:
		return nil, input.Errorf("the table is about %s, not %s", words.External(table.Target), to)
	}
	clusters := make([]Progress, 0, len(table.Rows))
	for _, row := range table.Rows {
		clusters = append(clusters, ofRow(fleet.Bounded(row), to, maxAge, now))
	}
	return clusters, nil
}

func ofRow(row fleet.Row, to string, maxAge time.Duration, now time.Time) Progress {
	made := Progress{Name: row.Cluster.Name, Stage: Silent}
	read, err := time.Parse(time.RFC3339, row.Observed)
	switch {
	case row.State == fleet.Unreachable || row.State == fleet.Hibernating || row.State == fleet.NotInstalled:
		made.Message = fmt.Sprintf("the cluster is %s; %s", row.State, row.Message)
	case row.Target != to:
		made.Message = fmt.Sprintf("the row is about %q, not %s", row.Target, to)
	case row.Update == nil:
		made.Message = "the table does not contain how far the update of this cluster has progressed"
	case err != nil:
		made.Message = "the table does not contain when this cluster was read"
	case read.Sub(now) > maxClockDifference:
		made.Message = fmt.Sprintf("the row is dated %s, which is more than an hour ahead of the clock of this "+
			"machine", words.Time(read))
	case now.Sub(read) > maxAge:
		made.Message = fmt.Sprintf("the row is dated %s, older than %s: create the table again", words.Time(read), maxAge)
	default:
		made.Stage, made.Message = Stage(row.Update.Stage), row.Update.Message
		made.Since, _ = time.Parse(time.RFC3339, row.Update.Since)
		if judged := row.Update.Judgement; judged != nil {
			made.Judgement = &Judgement{Status: judged.Status, Message: judged.Message}
			made.Judgement.Since, _ = time.Parse(time.RFC3339, judged.Since)
		}
	}
	return made
}
