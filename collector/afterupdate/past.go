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
)

// Past is what earlier samples leave, for a process that takes the next one. Keys are those of the compared states, which may be
// redacted.
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

// Pack encodes what the samples have shown.
func (p Past) Pack() ([]byte, error) {
	made := packedPast{Number: p.Number, Gaps: p.Gaps, First: p.First, Last: p.Last, Cordoned: slices.SortedFunc(maps.Keys(p.Cordoned), baseline.Key.Compare)}
	for at, seen := range p.Problems {
		if seen.Found.Class == regression.Worse {
			made.Problems = append(made.Problems, packedSeen{Key: at.Key, Reason: at.Reason, Began: seen.Began, First: seen.First, Since: seen.Since, Ended: seen.Ended, Bad: seen.Bad, Times: seen.Times, Was: seen.Found.Was})
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
		return nil, fmt.Errorf("could not encode what the samples have shown: %w", err)
	}
	return text, nil
}

// UnpackPast decodes what Pack has encoded.
func UnpackPast(text []byte) (Past, error) {
	var of packedPast
	if err := json.Unmarshal(text, &of); err != nil {
		return Past{}, fmt.Errorf("could not decode what the samples have shown: %w", err)
	}
	past := Past{Number: of.Number, Gaps: of.Gaps, First: of.First, Last: of.Last, Problems: map[Problem]Seen{}, Cordoned: map[baseline.Key]bool{}}
	for _, each := range of.Problems {
		found := regression.Found{Key: each.Key, Problem: baseline.Problem{Reason: each.Reason}, Class: regression.Worse, Was: each.Was, Origin: regression.Origin{Key: each.Key}}
		past.Problems[Problem{each.Key, each.Reason}] = Seen{Began: each.Began, First: each.First, Since: each.Since, Ended: each.Ended, Bad: each.Bad, Times: each.Times, Found: found}
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
