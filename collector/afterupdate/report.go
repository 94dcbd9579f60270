// Package afterupdate answers: was the update good?
//
// [Judge] compares the states of a cluster after an update with the baseline of the run before it, and returns the
// [Report]. It is pure: its input is states, progress and times.
package afterupdate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate/regression"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
)

// Kind of a Report; its APIVersion is report.APIVersion.
const Kind = "PreflightAfterUpdate"

// Decision is whether the update was good.
type Decision string

// The decisions. Good, Regressed and RolledBack are final; the others are about now.
const (
	// Good means that the update has settled, and nothing that was good before it is bad.
	Good Decision = "Good"
	// Regressed means that something that was good before the update is bad, for longer than its limit.
	Regressed Decision = "Regressed"
	// Settling means that the update is complete but its rollout is not, or that a problem has not lasted long enough
	// to count.
	Settling Decision = "Settling"
	// Unfinished means that the cluster-version operator has not completed the update.
	Unfinished Decision = "Unfinished"
	// RolledBack means that the cluster runs the release before the update again.
	RolledBack Decision = "RolledBack"
	// Undecided means that there is no baseline, or that too little could be read.
	Undecided Decision = "Undecided"
)

// Decisions are all of them.
func Decisions() []Decision {
	return []Decision{Good, Regressed, Settling, Unfinished, RolledBack, Undecided}
}

// Final reports whether later states cannot change the decision.
func (d Decision) Final() bool { return d == Good || d == Regressed || d == RolledBack }

// Report is the judgement of one update.
type Report struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Cluster    report.Cluster `json:"cluster"`
	Update     Update         `json:"update"`
	Decision   Decision       `json:"decision"`
	// Message is a sentence about the decision.
	Message string `json:"message"`
	// Baseline is that with which the cluster was compared; nil for none.
	Baseline *Baseline `json:"baseline,omitempty"`
	// Stored is when a baseline of the cluster's current release was taken, with which the next update is compared,
	// RFC 3339 in UTC; empty if none is stored, or Baseline is set.
	Stored  string  `json:"stored,omitempty"`
	Samples Samples `json:"samples"`
	// Regressions were good before, and have been bad for longer than their limit. Pending have not been bad for that
	// long. Unchanged were bad before. Excused are bad since their owner changed them. Each is sorted by name and object,
	// with at most MaxListed entries.
	Regressions []Regression `json:"regressions"`
	Pending     []Regression `json:"pending,omitempty"`
	Unchanged   []Regression `json:"unchanged,omitempty"`
	Excused     []Regression `json:"excused,omitempty"`
	// Unattributed are problems that may have existed before the update.
	Unattributed []Regression `json:"unattributed,omitempty"`
	// Counts are the numbers of problems of each kind, including the ones that are not listed.
	Counts Counts `json:"counts"`
	// Waiting are why the update has not settled.
	Waiting []string `json:"waiting,omitempty"`
	// Notices are further remarks on the judgement, such as a paused pool, which it excludes.
	Notices []string `json:"notices,omitempty"`
	// Unread are the kinds of objects that were not read completely, now or in the baseline.
	Unread []string `json:"unread,omitempty"`
	// NotCovered are problems that cannot be detected from cluster objects.
	NotCovered []string `json:"notCovered"`
}

// MaxListed bounds each list of a Report.
const MaxListed = 500

// Update is the update that the report evaluates.
type Update struct {
	// Run is the ID of the run that took the baseline; empty for none.
	Run string `json:"run,omitempty"`
	// From and To are versions; To is the version of the last request. Image is the pull spec of To.
	From  string `json:"from"`
	To    string `json:"to"`
	Image string `json:"image,omitempty"`
	// Retargeted are the versions that were requested since From, and were not completed.
	Retargeted []string `json:"retargeted,omitempty"`
	// StartTime and CompletionTime are RFC 3339 in UTC; CompletionTime is empty while the update is in progress.
	StartTime      string `json:"startTime,omitempty"`
	CompletionTime string `json:"completionTime,omitempty"`
	// SettledTime is since when the rollout has settled; empty while it has not.
	SettledTime string `json:"settledTime,omitempty"`
}

// Baseline is the state with which the cluster was compared.
type Baseline struct {
	// Time is when it was taken, RFC 3339 in UTC.
	Time string `json:"time"`
	// Objects is how many it has.
	Objects int `json:"objects"`
}

// Samples are the states after the update.
type Samples struct {
	Number int `json:"number"`
	// First and Last are RFC 3339 in UTC.
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
}

// Counts are numbers of entries.
type Counts struct {
	Regressions int `json:"regressions"`
	Pending     int `json:"pending"`
	Unchanged   int `json:"unchanged"`
	Excused     int `json:"excused"`
	// Unattributed are of unknown origin.
	Unattributed int `json:"unattributed"`
	// Good is how many objects have no problem now.
	Good int `json:"good"`
}

// Regression is one cause: a problem of an object, with the problems that follow from it.
type Regression struct {
	// Name is a finding's name of the kind of the object and the reason, such as "RouteNotAdmitted". It has no name of
	// an object, unless that is part of the release: "ClusterOperatorDegraded-ingress".
	Name   string         `json:"name"`
	Object finding.Object `json:"object"`
	// Was and Is are clauses.
	Was string `json:"was"`
	Is  string `json:"is"`
	// Since is when the problem began, RFC 3339 in UTC; empty if unknown.
	Since string `json:"since,omitempty"`
	// CountsTime is when a pending problem counts, if it lasts, RFC 3339 in UTC; empty if that depends on the rollout.
	CountsTime string `json:"countsTime,omitempty"`
	// Step is the step of the update that it coincides with, such as "the reboot of node worker-1"; empty for none.
	Step string `json:"step,omitempty"`
	// Command shows more about it.
	Command string         `json:"command"`
	Action  finding.Action `json:"-"`
	// Follows are the problems that follow from this one, of the object and of its dependents, such as its Service.
	// Unlisted is the number of further ones.
	Follows  []Folded `json:"follows,omitempty"`
	Unlisted int      `json:"unlisted,omitempty"`
}

// Folded is a problem that follows from another. It has the fields of a Regression.
type Folded struct {
	Name   string         `json:"name"`
	Object finding.Object `json:"object"`
	Is     string         `json:"is"`
}

// Past is the summary of earlier samples for a process that takes the next one. Keys are the keys of the compared
// states, which may be redacted.
type Past struct {
	// Number is how many samples there were; Gaps are how many of the last ones, in a row, were not complete.
	Number, Gaps int
	First, Last  time.Time
	Problems     map[Problem]Seen
	Cordoned     map[baseline.Key]bool
	Restarts     map[baseline.Key]Growth
}

// Resume is a course that continues from what earlier samples have left.
func Resume(past Past) Course { return Course{Past: past} }

// packedPast is the JSON of a Past: of the problems those that are worse, since the others count at once.
type packedPast struct {
	Number   int            `json:"number"`
	Gaps     int            `json:"gaps,omitempty"`
	First    time.Time      `json:"first"`
	Last     time.Time      `json:"last"`
	Problems []packedSeen   `json:"problems,omitempty"`
	Cordoned []baseline.Key `json:"cordoned,omitempty"`
	Restarts []packedGrowth `json:"restarts,omitempty"`
}

type packedGrowth struct {
	Key baseline.Key `json:"key"`

	Growth
}

type packedSeen struct {
	Key    baseline.Key  `json:"key"`
	Reason string        `json:"reason"`
	Began  time.Time     `json:"began,omitzero"`
	First  time.Time     `json:"first"`
	Since  time.Time     `json:"since"`
	Ended  time.Time     `json:"ended,omitzero"`
	Bad    time.Duration `json:"bad,omitempty"`
	Times  int           `json:"times,omitempty"`
	Was    string        `json:"was,omitempty"`
}

// maxProblems bounds the problems of a packed Past: the first ones are kept.
const maxProblems = 10_000

// Pack encodes the history of the samples.
func (p Past) Pack() ([]byte, error) {
	made := packedPast{
		Number: p.Number, Gaps: p.Gaps, First: p.First, Last: p.Last,
		Cordoned: slices.SortedFunc(maps.Keys(p.Cordoned), baseline.Key.Compare),
	}
	for at, seen := range p.Problems {
		if seen.Found.Class == regression.Worse {
			made.Problems = append(made.Problems, packedSeen{
				Key: at.Key, Reason: at.Reason, Began: seen.Began, First: seen.First, Since: seen.Since,
				Ended: seen.Ended, Bad: seen.Bad, Times: seen.Times, Was: seen.Found.Was,
			})
		}
	}
	for key, grown := range p.Restarts {
		made.Restarts = append(made.Restarts, packedGrowth{key, grown})
	}
	slices.SortFunc(made.Restarts, func(a, b packedGrowth) int { return a.Key.Compare(b.Key) })
	made.Restarts = made.Restarts[:min(len(made.Restarts), maxProblems)]
	slices.SortFunc(made.Problems, func(a, b packedSeen) int { return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Reason, b.Reason)) })
	made.Problems = made.Problems[:min(len(made.Problems), maxProblems)]
	text, err := json.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("could not encode the history of the samples: %w", err)
	}
	return text, nil
}

// UnpackPast decodes what Pack has encoded.
func UnpackPast(text []byte) (Past, error) {
	var of packedPast
	if err := json.Unmarshal(text, &of); err != nil {
		return Past{}, fmt.Errorf("could not decode the history of the samples: %w", err)
	}
	past := Past{
		Number: of.Number, Gaps: of.Gaps, First: of.First, Last: of.Last, Problems: map[Problem]Seen{},
		Cordoned: map[baseline.Key]bool{},
	}
	for _, each := range of.Problems {
		found := regression.Found{
			Key: each.Key, Problem: baseline.Problem{Reason: each.Reason}, Class: regression.Worse, Was: each.Was,
			Origin: regression.Origin{Key: each.Key},
		}
		past.Problems[Problem{each.Key, each.Reason}] = Seen{
			Began: each.Began, First: each.First, Since: each.Since, Ended: each.Ended,
			Bad: each.Bad, Times: each.Times, Found: found,
		}
	}
	past.Restarts = map[baseline.Key]Growth{}
	for _, each := range of.Restarts {
		past.Restarts[each.Key] = each.Growth
	}
	for _, key := range of.Cordoned {
		past.Cordoned[key] = true
	}
	return past, nil
}
