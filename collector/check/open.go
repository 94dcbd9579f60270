package check

import (
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// reasonNotInArchive is the reason where a gap leaves a check open.
var reasonNotInArchive = finding.NewReason("NotInArchive", finding.Explanation{
	Meaning: "Reported for a check that reads what the archive, which stands for the cluster, does not have, or of which " +
		"it has a part: nothing is known to be wrong, and nothing to be right.",
	Cause:  "It was not gathered, the file is damaged or too large, or the values were removed.",
	Remedy: "Gather what the message names, and add it by another --archive, or read the cluster itself.",
})

// nameNotInArchive is the name of a finding about several checks. A finding about one check has
// the name of the check.
var nameNotInArchive = finding.NewName("NotInArchive", "The finding about several checks of a kind that miss the same resources of an archive.")

const (
	// maxNamed bounds the gaps and the checks that a message names.
	maxNamed = 4
	// maxGathered bounds the commands that gather what is missing.
	maxGathered = 8
)

// The facts of a finding about gaps.
const (
	factChecks, factResources = "checks", "resources"
	// factMissing has a clause for each gap.
	factMissing = "missing"
)

// open is the result of a check of which gaps leave open whether it passes. What it found wrong
// stays, and so does what it reported as inconclusive itself.
func open(name string, found []finding.Finding, err error, gaps []gap.Gap) ([]finding.Finding, error) {
	if len(gaps) == 0 {
		return found, err
	}
	if gap.Is(err) {
		err = nil
	}
	kept := slices.DeleteFunc(finding.WithoutPasses(slices.Clone(found)), func(f finding.Finding) bool {
		return f.Reason == reasonUnread.String() // the gap states it better
	})
	for at := range kept {
		if kept[at].Outcome != preflight.Skipped {
			kept[at] = kept[at].Noted("The archive has %s: this counts what is there.", words.Clauses(clausesOf(gaps), maxNamed))
		}
	}
	if slices.ContainsFunc(kept, func(f finding.Finding) bool { return f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown }) {
		return kept, err
	}
	// Beside a failure, what does not apply stays. Alone it would be a conclusion from objects that are not there.
	kept = slices.DeleteFunc(kept, func(f finding.Finding) bool { return f.Outcome == preflight.Skipped })
	return append(kept, notInArchive(name, gaps)), err
}

func clausesOf(gaps []gap.Gap) []string {
	var clauses []string
	for _, each := range gaps {
		clauses = append(clauses, each.String())
	}
	return clauses
}

func notInArchive(name string, gaps []gap.Gap) finding.Finding {
	of := lack{checks: []string{name}}
	for _, each := range gaps {
		of.add(lack{clauses: []string{each.String()}, resources: []string{each.Qualified()}, actions: actionsFor(each)})
	}
	return of.finding()
}

// lack lists what checks could not read, without duplicates.
type lack struct {
	checks, resources, clauses []string
	actions                    []finding.Action
}

func (l *lack) add(other lack) {
	union(&l.checks, other.checks)
	union(&l.resources, other.resources)
	union(&l.clauses, other.clauses)
	union(&l.actions, other.actions)
}

func union[T comparable](all *[]T, more []T) {
	for _, each := range more {
		if !slices.Contains(*all, each) {
			*all = append(*all, each)
		}
	}
}

func lackOf(f finding.Finding) (lack, bool) {
	if f.Reason != reasonNotInArchive.String() || f.Evidence[factResources] == "" {
		return lack{}, false
	}
	split := func(fact, by string) []string { return strings.Split(f.Evidence[fact], by) }
	one := slices.DeleteFunc(slices.Clone(f.Actions), func(action finding.Action) bool { return action == gatherAll() })
	return lack{checks: split(factChecks, ", "), resources: split(factResources, ", "), clauses: split(factMissing, "; "), actions: one}, true
}

func gatherAll() finding.Action { return finding.Run("oc preflight collect") }

func (l *lack) finding() finding.Finding {
	slices.Sort(l.checks)
	slices.Sort(l.resources)
	subject := "check " + l.checks[0] + " is"
	if len(l.checks) > 1 {
		subject = "checks " + words.List(l.checks, len(l.checks)) + " are"
	}
	actions := l.actions[:min(maxGathered, len(l.actions))]
	if len(actions) > 1 {
		actions = append(slices.Clip(actions), gatherAll())
	}
	return finding.Unknown(reasonNotInArchive, "the archive has %s, so the %s inconclusive", words.Clauses(l.clauses, maxNamed), subject).
		Remedy("Gather what is missing, and add it as another archive; \"oc preflight collect\" gathers all that the checks read.").
		Do(actions...).
		Observed(map[string]string{
			factChecks: strings.Join(l.checks, ", "), factResources: strings.Join(l.resources, ", "), factMissing: strings.Join(l.clauses, "; "),
		})
}

// MergeGaps makes one finding of those about checks of a kind that miss the same resources of an
// archive, directly or by way of another check, in the place of the first. The finding of a check
// that is accepted by name is left alone: what an acceptance covers does not depend on which other
// checks miss the same. The input is not changed.
func MergeGaps(findings []finding.Finding, accepted map[string]string) []finding.Finding {
	merged := slices.Clone(findings)
	for at := 0; at < len(merged); at++ {
		of, ok := mergeable(merged[at], accepted)
		if !ok {
			continue
		}
		for other := at + 1; other < len(merged); other++ {
			more, ok := mergeable(merged[other], accepted)
			if !ok || merged[other].Source != merged[at].Source || !slices.ContainsFunc(more.resources, func(each string) bool { return slices.Contains(of.resources, each) }) {
				continue
			}
			of.add(more)
			one := of.finding().Named(nameNotInArchive).From(merged[at].Source)
			one.BlockedTargets = merged[at].BlockedTargets
			merged[at] = one
			merged = slices.Delete(merged, other, other+1)
			other = at // a check before it can miss what this one does
		}
	}
	return merged
}

func mergeable(f finding.Finding, accepted map[string]string) (lack, bool) {
	of, ok := lackOf(f)
	for _, each := range of.checks {
		if _, named := accepted[each]; named {
			return lack{}, false
		}
	}
	return of, ok && f.Open()
}

func actionsFor(missing gap.Gap) []finding.Action {
	command := missing.Command()
	if command == "" {
		return nil
	}
	return []finding.Action{finding.Run("%s", command)}
}
