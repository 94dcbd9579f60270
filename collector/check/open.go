package check

import (
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// What the findings of this file have as reason.
var reasonNotInArchive = finding.NewReason("NotInArchive", finding.Explanation{
	Meaning: "Reported for a check that reads what the archive, which stands for the cluster, does not have, or of which " +
		"it has a part: nothing is known to be wrong, and nothing to be right.",
	Cause:  "It was not gathered, the file is damaged or too large, or the values were removed.",
	Remedy: "Gather what the message names, and add it by another --archive, or read the cluster itself.",
})

// maxNamed bounds the gaps that a message names, and the commands that gather them.
const maxNamed = 3

// open is the result of a check of which gaps leave open whether it passes. What it found wrong
// stays, and so does what it reported as inconclusive itself.
func open(name string, found []finding.Finding, err error, gaps []gap.Gap) ([]finding.Finding, error) {
	if len(gaps) == 0 {
		return found, err
	}
	if gap.Is(err) {
		err = nil
	}
	kept := slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool {
		return f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped || f.Reason == reasonUnread.String() // said better by the gap
	})
	if slices.ContainsFunc(kept, func(f finding.Finding) bool { return f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown }) {
		return found, err
	}
	return append(kept, notInArchive(name, gaps)), err
}

func notInArchive(name string, gaps []gap.Gap) finding.Finding {
	var lacks, resources []string
	var actions []finding.Action
	for _, each := range gaps {
		lacks = append(lacks, each.String())
		if !slices.Contains(resources, each.Qualified()) {
			resources = append(resources, each.Qualified())
		}
		if command := finding.Run("%s", each.Command()); len(actions) < maxNamed && !slices.Contains(actions, command) {
			actions = append(actions, command)
		}
	}
	slices.Sort(resources)
	return finding.Unknown(reasonNotInArchive, "the archive has %s, so the check %s is inconclusive", words.Clauses(lacks, maxNamed), name).
		Remedy("Gather what is missing, and add it by another --archive, or run the preflight on the cluster.").
		Do(actions...).
		Observed(map[string]string{"missing": strings.Join(resources, ", ")})
}
