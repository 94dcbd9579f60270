// Package selection answers: which checks of a release does a run cover?
//
// [Selection.Choose] selects them, and [Coverage] is the text by which the record of a run
// states what the run covers.
package selection

import (
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/site"
)

var reasonNotSelected = finding.NewReason("NotSelected", finding.Explanation{
	Meaning: "Reported for a check that the selection of the run leaves out.",
	Cause:   "The check is excluded by name, or the run is without Jobs.",
	Remedy:  "Run the check, or accept the finding.",
})

// Selection is what a run does of what it could.
type Selection struct {
	// Only and Skip select checks by COMPONENT or COMPONENT.CHECK. A check that is
	// not selected is Unknown.
	Only, Skip []string
	// NoJobs runs none of the release's checks.
	NoJobs bool
	// Site are the administrator's own checks, which are run with those of the release. A
	// run without them is another run.
	Site []site.Source
	// Images is how closely to inspect the release's images; empty means
	// image.Manifests.
	Images image.Mode
	// Rehearsal is whether the writes of the update are rehearsed.
	Rehearsal rehearsal.Mode
}

// Validate returns an *input.Error for a selection that contradicts itself.
func (s Selection) Validate() error {
	if s.Images != "" && !slices.Contains(image.Modes(), s.Images) {
		return input.Errorf("unknown image mode %q; the modes are %q", s.Images, image.Modes())
	}
	if !s.Rehearsal.Known() {
		return input.Errorf("unknown mode of rehearsal %q; the modes are %q and %q", s.Rehearsal, rehearsal.Guarded, rehearsal.Unguarded)
	}
	if s.NoJobs && s.Images.Pulls() {
		return input.Errorf("the image mode %q needs Jobs, and the run is without Jobs", s.Images)
	}
	if err := site.Validate(s.Site); err != nil {
		return &input.Error{Err: err}
	}
	return nil
}

// Choose returns the draft with the selected checks that are to run, and a source for each
// other one. Where known has the findings of a selected check, it is not run again. An
// *input.Error is about a selector that matches no check.
func (s Selection) Choose(drafted jobplan.Draft, known func(jobplan.Check) ([]finding.Finding, bool)) (jobplan.Draft, []collector.Source, error) {
	if err := s.matches(drafted.Checks); err != nil {
		return jobplan.Draft{}, nil, err
	}
	sources := Refused(drafted.Refused)
	checks := drafted.Checks
	drafted.Checks = nil
	for _, check := range checks {
		findings, isKnown := known(check)
		switch {
		case !s.selects(check):
			sources = append(sources, collector.Known(check.Name, finding.SourceJob, notSelected(check)))
		case isKnown:
			sources = append(sources, collector.Known(check.Name, finding.SourceJob, findings...))
		default:
			drafted.Checks = append(drafted.Checks, check)
		}
	}
	return drafted, sources, nil
}

func notSelected(check jobplan.Check) finding.Finding {
	return finding.Unknown(reasonNotSelected, "excluded by the selection; not run").Named(check.Name).
		Do(finding.Retry(finding.OptionSelection), finding.Accept(check.Name))
}

// Refused are sources for checks that may not run: each was expected to report, and did not
// pass.
func Refused(findings []finding.Finding) []collector.Source {
	var sources []collector.Source
	for _, f := range findings {
		sources = append(sources, collector.Known(f.Name, finding.SourceJob, f))
	}
	return sources
}

func (s Selection) selects(check jobplan.Check) bool {
	matches := func(selector string) bool { return selects(selector, check) }
	return !s.NoJobs &&
		(len(s.Only) == 0 || slices.ContainsFunc(s.Only, matches)) &&
		!slices.ContainsFunc(s.Skip, matches)
}

// matches refuses a selector that matches no check of the release.
func (s Selection) matches(checks []jobplan.Check) error {
	for _, selector := range slices.Concat(s.Only, s.Skip) {
		if slices.ContainsFunc(checks, func(check jobplan.Check) bool { return selects(selector, check) }) {
			continue
		}
		var names []string
		for _, check := range checks {
			names = append(names, check.Name)
		}
		return input.Errorf("%q selects no check of this release; it has: %s", selector, words.List(names, 20))
	}
	return nil
}

// selects compares a selector with a check's component, spelled as in the release
// or in CamelCase, and with its name.
func selects(selector string, check jobplan.Check) bool {
	return strings.EqualFold(selector, check.Name) || strings.EqualFold(selector, check.Prefix()) || selector == check.Component
}
