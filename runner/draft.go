package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/site"
)

// reasonNotSelected is reported for a check that the selection of the run leaves
// out.
//
// Cause: the check is excluded by name, or the run is without Jobs.
//
// Remedy: run the preflight without the exclusion, or accept the finding.
const reasonNotSelected finding.Reason = "NotSelected"

// plan is the fourth stage: which checks of the release are to run.
type plan struct {
	manifests
	draft jobplan.Draft
	// sources are the results of this stage and those before it.
	sources []collector.Source
}

// draft selects the checks of the release, and checks that the user has the
// permissions to run and record them. Nothing is created.
func draft(ctx context.Context, m manifests) (plan, error) {
	p, err := newPlan(m)
	if err != nil {
		return plan{}, err
	}
	return p, p.options.writingNeeds(p.draft).Check(ctx, p.cluster.Kubernetes.AuthorizationV1())
}

// newPlan is pure.
func newPlan(m manifests) (plan, error) {
	drafted, withoutJobs := m.drafted()
	if m.hop != nil {
		drafted = drafted.Along(m.hop.versions(), m.target.Version)
	}
	if err := m.options.matches(drafted.Checks); err != nil {
		return plan{}, err
	}
	m.contents, m.site = withoutJobs, nil
	p := plan{manifests: m, draft: drafted, sources: append(slices.Clip(m.sources), refused(drafted.Refused)...)}
	p.draft.Checks = nil
	for _, check := range drafted.Checks {
		if findings, known := m.shared.find(drafted, check); known && m.options.selects(check) {
			p.sources = append(p.sources, collector.Known(check.Name, finding.SourceJob, findings...))
			continue
		}
		if m.options.selects(check) {
			p.draft.Checks = append(p.draft.Checks, check)
			continue
		}
		p.sources = append(p.sources, collector.Known(check.Name, finding.SourceJob,
			finding.Unknown(reasonNotSelected, "excluded by the selection; not run").Named(check.Name).
				Remedy("Run the check, or accept the finding.").
				Do(finding.Retry(finding.OptionSelection), finding.Accept(check.Name))))
	}
	return p, nil
}

// refused are checks that may not run: each was expected to report, and did not
// pass.
func refused(findings []finding.Finding) []collector.Source {
	var sources []collector.Source
	for _, f := range findings {
		sources = append(sources, collector.Known(f.Name, finding.SourceJob, f))
	}
	return sources
}

func (o Options) selects(check jobplan.Check) bool {
	matches := func(selector string) bool { return selects(selector, check) }
	return !o.NoJobs &&
		(len(o.Only) == 0 || slices.ContainsFunc(o.Only, matches)) &&
		!slices.ContainsFunc(o.Skip, matches)
}

// matches refuses a selector that matches no check of the release.
func (o Options) matches(checks []jobplan.Check) error {
	for _, selector := range slices.Concat(o.Only, o.Skip) {
		if slices.ContainsFunc(checks, func(check jobplan.Check) bool { return selects(selector, check) }) {
			continue
		}
		var names []string
		for _, check := range checks {
			names = append(names, check.Name)
		}
		return badInput("%q selects no check of this release; it has: %s", selector, words.List(names, 20))
	}
	return nil
}

// selects compares a selector with a check's component, spelled as in the release
// or in CamelCase, and with its name.
func selects(selector string, check jobplan.Check) bool {
	return strings.EqualFold(selector, check.Name) || strings.EqualFold(selector, check.Prefix()) || selector == check.Component
}

// narrowed states what the options leave out of the judgement.
func (o Options) narrowed() []string {
	var all []string
	add := func(format string, names []string) {
		for _, name := range names {
			all = append(all, words.Line(fmt.Sprintf(format, name), maxNarrowed))
		}
	}
	if o.NoJobs {
		add("%s", []string{"all checks of the release"})
	}
	add("checks other than %s", o.Only)
	add("check %s", o.Skip)
	add("alert %s", o.IgnoredAlerts)
	add("alerts in namespace %s", o.IgnoredNamespaces)
	if stated := o.Fixed.String(); stated != "" {
		add("clients of removed APIs until %s", []string{stated})
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) > record.MaxNarrowed {
		rest := len(all) - record.MaxNarrowed + 1
		all = append(all[:record.MaxNarrowed-1], fmt.Sprintf("%d others", rest))
	}
	return all
}

// maxNarrowed bounds each text of narrowed, in bytes.
const maxNarrowed = 256

// intent is the record before the first Job exists.
func (p plan) intent(id string) record.Intent {
	intent := record.Intent{
		ID: id, From: p.about.Version, Target: p.target, ToolVersion: p.options.ToolVersion, Selection: p.selection(),
		Attachment: p.attachment(), Requester: p.options.Requester, Generation: p.version.Generation, Provisional: p.hop != nil,
		Narrowed: p.options.narrowed(),
	}
	for _, check := range p.draft.Checks {
		intent.Checks = append(intent.Checks, check.Name)
	}
	return intent
}

// selection is what a run covers. Runs of one release that differ in it are
// different runs.
type selection struct {
	Only   []string `json:"only,omitempty"`
	Skip   []string `json:"skip,omitempty"`
	NoJobs bool     `json:"noJobs,omitempty"`
	// Site has the pull specs and digests of the checks of the site.
	Site              []string `json:"site,omitempty"`
	Images            string   `json:"images"`
	IgnoredAlerts     []string `json:"ignoredAlerts,omitempty"`
	IgnoredNamespaces []string `json:"ignoredNamespaces,omitempty"`
	Fixed             string   `json:"fixed,omitempty"`
	// Path is set for a later update of a path: the releases before the target.
	Path []pathRelease `json:"path,omitempty"`
}

// pathRelease is a release of a path in a record.
type pathRelease struct {
	Version string `json:"version"`
	Image   string `json:"image"`
}

// Selection is the text by which the record of a run states what the run covers. It is
// equal for options that select the same.
func (o Options) Selection() string { return o.selection(nil) }

// selection is that of the run.
func (p plan) selection() string {
	if p.hop == nil {
		return p.options.Selection()
	}
	var path []pathRelease
	for _, each := range p.hop.releases {
		path = append(path, pathRelease{Version: each.Version, Image: each.Image})
	}
	return p.options.selection(path)
}

func (o Options) selection(path []pathRelease) string {
	sorted := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	text, err := json.Marshal(selection{
		Only: sorted(o.Only), Skip: sorted(o.Skip), NoJobs: o.NoJobs, Site: site.IDs(o.Site), Images: string(cmp.Or(o.Images, image.Manifests)),
		IgnoredAlerts: sorted(o.IgnoredAlerts), IgnoredNamespaces: sorted(o.IgnoredNamespaces), Fixed: o.Fixed.String(), Path: path,
	})
	if err != nil {
		return err.Error() // lists of strings always encode
	}
	return string(text)
}

// attachment are the directories of the checks of the site, for the record.
func (p plan) attachment() []byte {
	archive, err := site.Archive(p.options.Site)
	if err != nil {
		return nil // Options.validate reports it
	}
	return archive
}
