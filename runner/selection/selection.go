// Package selection answers: which checks of a release does a run cover?
//
// [Selection.Choose] selects them, and [Coverage] is the form in which the record of a run describes its coverage.
package selection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/site"
)

var reasonNotSelected = finding.NewReason("NotSelected", finding.Explanation{
	Meaning: "The selection of the run excludes the check.",
	Cause:   "The check is excluded by name, or the run does not use Jobs.",
	Remedy:  "Run the check, or accept the finding.",
})

// Selection selects the parts of a run.
type Selection struct {
	// Only and Skip select checks by COMPONENT or COMPONENT.CHECK. A check that is
	// not selected is Unknown.
	Only, Skip []string
	// NoJobs runs none of the release's checks.
	NoJobs bool
	// Site are the administrator's own checks, which run with the checks of the release. A run without them is another
	// run.
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
		return input.Errorf("the image mode %q needs Jobs, but the run does not use Jobs", s.Images)
	}
	if err := site.Validate(s.Site); err != nil {
		return &input.Error{Err: err}
	}
	return nil
}

// Choose returns the draft with the selected checks that must run, and a source for each other check. If known has the
// findings of a selected check, it does not run again. It returns an *input.Error for a selector that matches no check.
func (s Selection) Choose(drafted jobplan.Draft, known func(jobplan.Check) ([]finding.Finding, bool)) (jobplan.Draft, []collector.Source,
	error,
) {
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

// Coverage is the coverage of a run. Runs of one release that differ in it are different runs. Defaults are empty,
// except for Images, so that records of other versions compare.
type Coverage struct {
	Only   []string `json:"only,omitempty"`
	Skip   []string `json:"skip,omitempty"`
	NoJobs bool     `json:"noJobs,omitempty"`
	// Site has the pull specs and digests of the checks of the site.
	Site              []string `json:"site,omitempty"`
	Images            string   `json:"images"`
	Rehearsal         string   `json:"rehearsal,omitempty"`
	IgnoredAlerts     []string `json:"ignoredAlerts,omitempty"`
	IgnoredNamespaces []string `json:"ignoredNamespaces,omitempty"`
	Fixed             string   `json:"fixed,omitempty"`
	// Keyrings, Stores, Monitoring and Dependencies identify where keys, signatures, alerts and external URLs come
	// from; empty for the cluster's own. Their content is not recorded.
	Keyrings     string   `json:"keyrings,omitempty"`
	Stores       string   `json:"stores,omitempty"`
	Repositories []string `json:"repositories,omitempty"`
	Monitoring   string   `json:"monitoring,omitempty"`
	Dependencies string   `json:"dependencies,omitempty"`
	// HostedCluster is the name of the hosted cluster in its management cluster, NAMESPACE/NAME, and NodePools are its
	// pools that must be updated as well.
	HostedCluster string   `json:"hostedCluster,omitempty"`
	NodePools     []string `json:"nodePools,omitempty"`
	// Path is set for a later update of a path: the releases before the target.
	Path []Release `json:"path,omitempty"`
	// Graph identifies where the risks of a later update are read from; empty for the update service of the cluster.
	Graph string `json:"graph,omitempty"`
}

// Release is a release of a path in a record.
type Release struct {
	Version string `json:"version"`
	Image   string `json:"image"`
}

// String is equal for runs that cover the same.
func (c Coverage) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return err.Error() // lists of strings always encode
	}
	return string(text)
}

// Recorded is the coverage of a recorded run.
func Recorded(run record.Record) (Coverage, error) {
	var covered Coverage
	if err := json.Unmarshal([]byte(run.Selection), &covered); err != nil {
		return Coverage{}, fmt.Errorf("the record of run %s does not contain its selection: %w", run.ID, err)
	}
	return covered, nil
}

// Selection is the selection of a recorded run, whose record has the checks of the site.
func (c Coverage) Selection(run record.Record) (Selection, error) {
	sources, err := site.Restore(c.Site, run.Attachment)
	if err != nil {
		return Selection{}, fmt.Errorf("the record of run %s does not contain the checks of the site: %w", run.ID, err)
	}
	return Selection{
		Only: c.Only, Skip: c.Skip, NoJobs: c.NoJobs, Images: image.Mode(c.Images), Rehearsal: rehearsal.Mode(c.Rehearsal),
		Site: sources,
	}, nil
}

// Judgement returns a judgement with the parts that a recorded run covers. It returns an *input.Error if the run covers a
// hosted cluster that the settings lack.
func (c Coverage) Judgement(settings scene.Settings, run record.Record) (scene.Judgement, error) {
	if name, pools := settings.Estate.Selected(); name != c.HostedCluster || !slices.Equal(pools, c.NodePools) {
		return scene.Judgement{}, c.otherCluster(run)
	}
	judgement := settings.Judgement
	judgement.IgnoredAlerts, judgement.IgnoredNamespaces = c.IgnoredAlerts, c.IgnoredNamespaces
	var err error
	if judgement.Fixed, err = removedapi.ParseFixTime(c.Fixed); err != nil && c.Fixed != "" {
		return scene.Judgement{}, fmt.Errorf("the record of run %s contains a time of the fix that cannot be parsed: "+
			"%w", run.ID, err)
	}
	return judgement, nil
}

// Confirm returns an *input.Error if the estate has another hosted cluster than a recorded run, which has objects in
// the management cluster. A run of a standalone cluster has none.
func (c Coverage) Confirm(estate hosted.Estate, run record.Record) error {
	if name, _ := estate.Selected(); name == c.HostedCluster || c.HostedCluster == "" {
		return nil
	}
	return Coverage{HostedCluster: c.HostedCluster}.otherCluster(run)
}

// ConfirmOrigin returns an *input.Error if keys, signatures, alerts or URLs have another origin than in a recorded run:
// they are not recorded, and findings from different origins would be mixed.
func (c Coverage) ConfirmOrigin(wanted Coverage, run record.Record) error {
	var flags []string
	differs := func(flag string, equal bool) {
		if !equal {
			flags = append(flags, flag)
		}
	}
	differs("--keyring", c.Keyrings == wanted.Keyrings)
	differs("--signature-store", c.Stores == wanted.Stores)
	differs("--repository", slices.Equal(c.Repositories, wanted.Repositories))
	differs("--prometheus", c.Monitoring == wanted.Monitoring)
	differs("--dependency", c.Dependencies == wanted.Dependencies)
	if len(flags) == 0 {
		return nil
	}
	return input.Errorf("run %s began with other values of %s: pass the original values", run.ID, strings.Join(flags, ", "))
}

// OtherMonitoring reports whether the alerts and metrics of a recorded run came from other monitoring than this
// identity, which is empty for the cluster's. It is false for a record that does not contain one.
func OtherMonitoring(run record.Record, identity string) bool {
	covered, err := Recorded(run)
	return err == nil && run.Verified() == nil && covered.Monitoring != identity
}

// otherCluster is the error for settings of another cluster than the run covers: half of its findings
// could not be made again.
func (c Coverage) otherCluster(run record.Record) error {
	if c.HostedCluster == "" {
		return input.Errorf("run %s evaluated this cluster itself: omit --hosted-cluster, and use the kubeconfig of "+
			"the cluster", run.ID)
	}
	flags := []string{"--hosted-cluster " + c.HostedCluster}
	for _, pool := range c.NodePools {
		flags = append(flags, "--nodepool "+pool)
	}
	return input.Errorf("run %s evaluated a hosted cluster: add %s, with the kubeconfig of its management cluster", run.ID,
		words.Printable(strings.Join(flags, " ")))
}

// Attachment has the directories of the checks of the site, for the record.
func (s Selection) Attachment() []byte {
	archive, err := site.Archive(s.Site)
	if err != nil {
		return nil // Validate reports it
	}
	return archive
}

// Narrowed returns the exclusions of a selection and a judgement, for readers of the verdict.
func Narrowed(s Selection, judgement scene.Judgement) []string {
	var all []string
	add := func(format string, names []string) {
		for _, name := range names {
			all = append(all, words.Line(fmt.Sprintf(format, name), maxNarrowed))
		}
	}
	if s.NoJobs {
		add("%s", []string{"all checks of the release"})
	}
	add("checks other than %s", s.Only)
	add("check %s", s.Skip)
	add("alert %s", judgement.IgnoredAlerts)
	add("alerts in namespace %s", judgement.IgnoredNamespaces)
	if stated := judgement.Fixed.String(); stated != "" {
		add("clients of removed APIs until %s", []string{stated})
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) > record.MaxNarrowed {
		rest := len(all) - record.MaxNarrowed + 1
		all = append(all[:record.MaxNarrowed-1], fmt.Sprintf("%d others", rest))
	}
	return all
}

// maxNarrowed bounds each text of Narrowed, in bytes.
const maxNarrowed = 256

// Asked is the coverage that a verdict must have for those who act on it. The zero value asks for everything, with the
// settings of the cluster. The controller publishes its own, so that every reader asks for the same.
type Asked struct {
	// By names who asks, for remarks, such as "the controller".
	By string `json:"by"`
	// ToolVersion is the version of the program that asks; empty compares none.
	ToolVersion string `json:"toolVersion"`
	// Covers is the coverage of the asking side's runs, and Narrowed their exclusions, as in a record.
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

// Lacks returns the requested coverage that a run does not have, as clauses about the run; none if it covers
// everything. Exclusions of a run are lacking unless the asking side has exactly the same exclusions.
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
		lacks = append(lacks, fmt.Sprintf("the run has --images %s, not %s", words.External(covered.Images), wanted))
	}
	if a.Covers.Rehearsal != "" && covered.Rehearsal == "" {
		lacks = append(lacks, "the run did not rehearse the writes of the update")
	}
	if wanted := a.Covers.Dependencies; wanted != "" && covered.Dependencies != wanted {
		lacks = append(lacks, "the run does not check the same external dependencies")
	}
	if wanted := a.Covers.HostedCluster; wanted != "" &&
		(covered.HostedCluster != wanted || !slices.Equal(covered.NodePools, a.Covers.NodePools)) {
		lacks = append(lacks, "the run selects different hosted clusters and NodePools")
	}
	return lacks
}

// maxLacking bounds the names in a clause.
const maxLacking = 5

// Remarks returns how a run differs from the asking side's runs without lacking anything, as clauses about the run.
func (a Asked) Remarks(run record.Record) []string {
	var remarks []string
	if a.ToolVersion != "" && run.ToolVersion != a.ToolVersion {
		remarks = append(remarks, fmt.Sprintf("the run was made by version %s, which differs from %s's %s", words.External(run.ToolVersion), a.By,
			a.ToolVersion))
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
