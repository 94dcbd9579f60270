package selection

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
)

// Asked is what a verdict must cover for those who act on it. The zero value asks for everything, by the settings of the
// cluster. The controller publishes its own, so that every reader asks the same.
type Asked struct {
	// By names who asks, for remarks, such as "the controller".
	By string `json:"by"`
	// ToolVersion is the version of the program that asks; empty compares none.
	ToolVersion string `json:"toolVersion"`
	// Covers is what the runs of who asks cover, and Narrowed what they leave out, as in a record.
	Covers   Coverage `json:"covers"`
	Narrowed []string `json:"narrowed,omitempty"`
}

// String is the JSON form, which [ParseAsked] reads.
func (a Asked) String() string {
	text, err := json.Marshal(a)
	if err != nil {
		return err.Error() // texts and lists of texts always encode
	}
	return string(text)
}

// ParseAsked reads the JSON form.
func ParseAsked(text string) (Asked, error) {
	var asked Asked
	err := json.Unmarshal([]byte(text), &asked)
	return asked, err
}

// Lacks states what is asked and a run does not cover, as clauses about the run; none where it covers everything. What a
// run leaves out is lacking unless who asks leaves out exactly the same.
func (a Asked) Lacks(run record.Record) []string {
	covered, err := Recorded(run)
	if err != nil {
		return []string{"it is unknown what the run covers"}
	}
	var lacks []string
	if len(run.Narrowed) > 0 && !slices.Equal(run.Narrowed, a.Narrowed) {
		lacks = append(lacks, verdict.Verdict{Narrowed: run.Narrowed}.LeavesOut()...)
	}
	missing := slices.DeleteFunc(slices.Clone(a.Covers.Site), func(source string) bool { return slices.Contains(covered.Site, source) })
	if len(missing) > 0 {
		lacks = append(lacks, fmt.Sprintf("the run lacks the checks of the site %s", words.External(words.List(missing, maxLacking))))
	}
	if wanted := image.Mode(a.Covers.Images); wanted != "" && !image.Mode(covered.Images).Covers(wanted) {
		lacks = append(lacks, fmt.Sprintf("the run has --images %s, and not %s", words.External(covered.Images), wanted))
	}
	if a.Covers.Rehearsal != "" && covered.Rehearsal == "" {
		lacks = append(lacks, "the run did not rehearse the writes of the update")
	}
	if wanted := a.Covers.Dependencies; wanted != "" && covered.Dependencies != wanted {
		lacks = append(lacks, "the run does not ask the same dependencies outside of the cluster")
	}
	if wanted := a.Covers.HostedCluster; wanted != "" && (covered.HostedCluster != wanted || !slices.Equal(covered.NodePools, a.Covers.NodePools)) {
		lacks = append(lacks, "the run is about another selection of hosted clusters and NodePools")
	}
	return lacks
}

// maxLacking bounds the names in a clause.
const maxLacking = 5

// Remarks state in what a run differs from those of who asks without lacking anything, as clauses about the run.
func (a Asked) Remarks(run record.Record) []string {
	var remarks []string
	if a.ToolVersion != "" && run.ToolVersion != a.ToolVersion {
		remarks = append(remarks, fmt.Sprintf("the run was made by version %s, which differs from %s's %s", words.External(run.ToolVersion), a.By, a.ToolVersion))
	}
	covered, err := Recorded(run)
	if err != nil {
		return remarks
	}
	differs := func(what string, equal bool) {
		if !equal {
			remarks = append(remarks, fmt.Sprintf("the %s of the run differ from %s's", what, a.By))
		}
	}
	differs("keys of releases", covered.Keyrings == a.Covers.Keyrings)
	differs("signature stores", covered.Stores == a.Covers.Stores)
	differs("repositories", slices.Equal(covered.Repositories, a.Covers.Repositories))
	differs("alerts and metrics", covered.Monitoring == a.Covers.Monitoring)
	return remarks
}
