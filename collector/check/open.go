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
	Meaning: "The check needs data that the archive does not contain, or contains only in part. Whether the cluster has a problem is " +
		"unknown.",
	Cause:  "The data was not gathered, the file is damaged or too large, or the values were removed.",
	Remedy: "Gather the data that the message names and add it with another --archive, or run the preflight against the cluster.",
})

// nameNotInArchive is the name of a finding about several checks. A finding about one check has
// the name of the check.
var nameNotInArchive = finding.NewName("NotInArchive",
	"Several checks of a kind that miss the same resources of an archive.")

// maxNamed bounds the gaps and the checks that a message names.
const maxNamed = 4

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
			kept[at] = kept[at].Noted("The archive has %s: this counts the objects in the archive.", words.Clauses(clausesOf(gaps), maxNamed))
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
		of.add(lack{clauses: []string{each.String()}, resources: []string{each.Qualified()}})
	}
	return of.finding()
}

// lack lists what checks could not read, without duplicates.
type lack struct{ checks, resources, clauses []string }

func (l *lack) add(other lack) {
	union(&l.checks, other.checks)
	union(&l.resources, other.resources)
	union(&l.clauses, other.clauses)
}

func union(all *[]string, more []string) {
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
	return lack{checks: split(factChecks, ", "), resources: split(factResources, ", "), clauses: split(factMissing, "; ")}, true
}

func (l *lack) finding() finding.Finding {
	slices.Sort(l.checks)
	slices.Sort(l.resources)
	subject := "check " + l.checks[0] + " is"
	if len(l.checks) > 1 {
		subject = "checks " + words.List(l.checks, len(l.checks)) + " are"
	}
	return finding.Unknown(reasonNotInArchive, "the archive has %s, so the %s inconclusive", words.Clauses(l.clauses, maxNamed), subject).
		Remedy("Gather everything that the checks read from the cluster, and add the file with --archive missing.tar.gz.").
		Do(finding.Read("oc preflight collect -o missing.tar.gz")).
		Observed(map[string]string{
			factChecks: strings.Join(l.checks, ", "), factResources: strings.Join(l.resources, ", "), factMissing: strings.Join(l.clauses, "; "),
		})
}

// MergeGaps merges the findings about data that checks miss in an archive into one, in the place of the first: one
// more archive fixes them all. The merged finding is a gate if one of them is, so that no acceptance covers more
// than before. A finding that is accepted by name is not merged: the scope of an acceptance does not depend on
// other checks. The input is not changed.
func MergeGaps(findings []finding.Finding, accepted map[string]string) []finding.Finding {
	var kept []finding.Finding
	first := -1
	for _, each := range findings {
		more, ok := mergeable(each, accepted)
		if !ok || first < 0 {
			if ok {
				first = len(kept)
			}
			kept = append(kept, each)
			continue
		}
		kept[first] = merged(kept[first], each, more)
	}
	return kept
}

func merged(into, other finding.Finding, more lack) finding.Finding {
	of, _ := lackOf(into)
	of.add(more)
	source := into.Source
	if other.Source == finding.SourceGate {
		source = other.Source
	}
	one := of.finding().Named(nameNotInArchive).From(source)
	one.BlockedTargets = slices.Concat(into.BlockedTargets, other.BlockedTargets)
	slices.Sort(one.BlockedTargets)
	one.BlockedTargets = slices.Compact(one.BlockedTargets)
	return one
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
