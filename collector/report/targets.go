package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// TargetsKind is the kind of Targets.
	TargetsKind = "PreflightTargets"
	// AnyTarget stands for the version of the target in the texts of findings that are about more than one.
	AnyTarget = "TARGET"
)

// Targets is the verdict of gates, risks and health on every update that the cluster
// knows. The releases are not verified and their checks not run, so no target is
// proven to be Ready.
type Targets struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the cluster was read, RFC 3339 in UTC.
	Time        string  `json:"time"`
	ToolVersion string  `json:"toolVersion"`
	Cluster     Cluster `json:"cluster"`
	// Channel is spec.channel of ClusterVersion.
	Channel string `json:"channel"`
	// Targets are the newest first; versions that are not SemVer come last.
	Targets []Candidate `json:"targets"`
	// Findings are sorted as in a Report. A finding about several targets is listed
	// once: in its texts AnyTarget stands for each of them.
	Findings []TargetFinding `json:"findings"`
	// Actions are the next steps. The program that shows the document adds them.
	Actions []finding.Action `json:"actions,omitempty"`
}

// Next returns the target to continue with: the newest clear one, or the newest if none is clear, and an available
// update rather than a conditional one; false if there are no targets.
func (t Targets) Next() (Candidate, bool) {
	listed := t.ByUrgency()
	if len(listed) == 0 {
		return Candidate{}, false
	}
	for _, each := range listed {
		if each.Available && each.Verdict.Decision == listed[0].Verdict.Decision {
			return each, true
		}
	}
	return listed[0], true
}

// ByUrgency are the targets that are clear, then the undecided and the blocked ones, each the newest first.
func (t Targets) ByUrgency() []Candidate {
	rank := func(target Candidate) int {
		switch target.Verdict.Decision {
		case verdict.Ready:
			return 0
		case verdict.Blocked:
			return 2
		case verdict.Undecided, verdict.NothingKnown:
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(t.Targets), func(a, b Candidate) int { return cmp.Compare(rank(a), rank(b)) })
}

// Candidate is one update, and the verdict about it.
type Candidate struct {
	Version string `json:"version"`
	Image   string `json:"image"`
	// URL links to the errata of the release.
	URL string `json:"url,omitempty"`
	// UpdateKind is as in Target, and empty if the version is not SemVer.
	UpdateKind string `json:"updateKind,omitempty"`
	// Available and Conditional are the lists of ClusterVersion's status that have it:
	// CVO lists a conditional update that it recommends in both.
	Available   bool `json:"available"`
	Conditional bool `json:"conditional"`
	// Recommended is CVO's condition: True, False or Unknown.
	Recommended string              `json:"recommended"`
	Verdict     verdict.Verdict     `json:"verdict"`
	Expected    verdict.Expectation `json:"expected"`
	CVO         CVO                 `json:"cvo"`
	// Duration is as in Report.
	Duration *Duration `json:"duration,omitempty"`
	// Actions are the step that starts the update, once a run of the target is Ready; none unless no finding
	// counts, and the request left nothing out.
	Actions []finding.Action `json:"actions,omitempty"`
}

// TargetFinding is one finding that is the same for some targets.
type TargetFinding struct {
	finding.Finding

	// Targets are the versions that it is about; none if it is about the list.
	Targets []string `json:"targets"`
}

// PathKind is the kind of Path.
const PathKind = "PreflightPath"

// Path is the result of the preflights of all updates of a path. The first starts from the current release; the
// others are provisional, since the cluster will have changed.
type Path struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	ToolVersion string `json:"toolVersion"`
	// Time is when the last of the preflights ended, RFC 3339 in UTC.
	Time    string  `json:"time"`
	Cluster Cluster `json:"cluster"`
	// Versions are the versions that the cluster goes through, its own first. The version of an update that was
	// selected by image and not read is empty.
	Versions []string `json:"versions"`
	// Decision is Blocked if the decision about an update is; otherwise Undecided if one is Undecided or has no
	// report; otherwise the decision about the first update.
	Decision verdict.Decision `json:"decision"`
	// Forced is true when force was requested.
	Forced bool `json:"forced"`
	// ForceReason is why, and ForcedBy the user who requested it; empty without force, and if unknown.
	ForceReason string `json:"forceReason,omitempty"`
	ForcedBy    string `json:"forcedBy,omitempty"`
	// Updates are the reports in order. There are fewer than updates of the path if the preflight ended before.
	Updates []Report `json:"updates"`
	// Notices are limitations of the update graph, such as the age of a stored one.
	Notices []string `json:"notices,omitempty"`
}

// NewPath makes the document of a path from the reports of its updates, in order. At least
// one is required; versions are the releases of the whole path.
func NewPath(versions []string, updates []Report) Path {
	first, last := updates[0], updates[len(updates)-1]
	made := Path{
		APIVersion: APIVersion, Kind: PathKind, ToolVersion: first.Run.ToolVersion, Time: last.Run.CompletionTime,
		Cluster: first.Cluster, Versions: versions, Updates: updates,
		Forced: first.Verdict.Forced, ForceReason: first.Verdict.ForceReason, ForcedBy: first.Verdict.ForcedBy,
	}
	made.Decision = made.fold()
	return made
}

func (p Path) fold() verdict.Decision {
	var decisions []verdict.Decision
	for _, each := range p.Updates {
		decisions = append(decisions, each.Verdict.Decision)
	}
	for range max(0, p.planned()-len(p.Updates)) {
		decisions = append(decisions, verdict.Undecided)
	}
	return verdict.Whole(decisions)
}

// Holds reports whether the verdicts of all updates are current.
func (p Path) Holds() bool {
	return !slices.ContainsFunc(p.Updates, func(r Report) bool { return !r.Holds() })
}

func (p Path) planned() int { return len(p.Versions) - 1 }

// Interrupted reports whether a preflight of the path was interrupted or canceled.
func (p Path) Interrupted() bool {
	for _, each := range p.Updates {
		if each.Run.Phase == PhaseInterrupted || each.Run.Phase == PhaseCanceled {
			return true
		}
	}
	return false
}

// maxStored bounds a stored report, in bytes: a report of 5 000 checks that all use the 4 KiB of a container's
// message needs a third of it.
const maxStored = 64 << 20

// Read reads a report that was written as JSON or YAML. Fields that it does not
// know are ignored. Anything else than a report of this APIVersion with a
// decision is an error, and so is a decision that its findings do not make.
func Read(r io.Reader) (Report, error) {
	stored, err := Load(r)
	if err != nil {
		return Report{}, err
	}
	return stored.Report()
}

// Document is a stored document whose content has not been decoded.
type Document struct {
	// Kind is the kind that the document gives; empty for none.
	Kind string
	// apiVersion is the apiVersion that the document gives, and text its content as JSON.
	apiVersion string
	text       []byte
}

// Load reads a document that was written as JSON or YAML, of at most 64 MiB.
func Load(r io.Reader) (Document, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxStored+1))
	if err != nil {
		return Document{}, fmt.Errorf("could not read the report: %w", err)
	}
	if len(text) > maxStored {
		return Document{}, fmt.Errorf("this is not a report: it is larger than %d MiB", maxStored>>20)
	}
	if text, err = asJSON(text); err != nil {
		return Document{}, err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Document{}, errors.New("this is not a report: it has no apiVersion and kind")
	}
	return Document{Kind: head.Kind, apiVersion: head.APIVersion, text: text}, nil
}

// JSON is the content of the document.
func (d Document) JSON() io.Reader { return bytes.NewReader(d.text) }

// Report is the document as the report that Read returns, with the same errors.
func (d Document) Report() (Report, error) {
	var stored Report
	if err := d.decode(Kind, &stored); err != nil {
		return Report{}, err
	}
	stored.unforce()
	return stored, stored.check()
}

// unforce gives a report the decision without force: in reports of earlier versions, force bypassed findings.
func (r *Report) unforce() {
	if !r.Verdict.Forced || r.Verdict.Decision == verdict.Blocked || r.Verdict.Decision == verdict.Undecided {
		return
	}
	for i := range r.Findings {
		if bypass := r.Findings[i].Bypass; bypass != nil && bypass.By == "Force" {
			r.Findings[i].Bypass = nil
			r.Findings[i].Effect = r.Findings[i].EffectOf()
		}
	}
	until := r.Verdict.ValidUntil
	r.Verdict = r.Verdict.Refold(r.Findings, r.Expected)
	r.Verdict.ValidUntil = until
}

// Path is the document as the document of a path. Its updates are checked as Read checks a
// report; a decision that they do not make is an error.
func (d Document) Path() (Path, error) {
	var stored Path
	if err := d.decode(PathKind, &stored); err != nil {
		return Path{}, err
	}
	if stored.Forced {
		for i := range stored.Updates {
			stored.Updates[i].unforce()
		}
		stored.Decision = stored.fold()
	}
	return stored, stored.check()
}

// decode decodes the content of a document that must have that kind.
func (d Document) decode(kind string, into any) error {
	switch {
	case d.Kind != kind:
		return fmt.Errorf("this is not a report: its kind is %q, not %q", d.Kind, kind)
	case d.apiVersion != APIVersion:
		return fmt.Errorf("this report has another version: its apiVersion is %q, and this tool reads %q", d.apiVersion, APIVersion)
	}
	if err := json.Unmarshal(d.text, into); err != nil {
		return fmt.Errorf("this is not a report: %w", err)
	}
	return nil
}

// check returns an error for a report without a verdict, or that contradicts itself.
func (r Report) check() error {
	switch r.Verdict.Decision {
	case verdict.Ready, verdict.NothingKnown, verdict.Blocked, verdict.Undecided:
		return r.consistent()
	}
	return fmt.Errorf("this report has no verdict: its decision is %q", r.Verdict.Decision)
}

// check returns an error for a path with an update that is none or not in its place, or
// with a decision that its updates do not make.
func (p Path) check() error {
	if len(p.Updates) == 0 || len(p.Updates) > p.planned() {
		return fmt.Errorf("the path contradicts itself: it has %s, but reports for %s", words.Count(len(p.Versions), "version"),
			words.Count(len(p.Updates), "update"))
	}
	for i, each := range p.Updates {
		if err := each.check(); err != nil {
			return fmt.Errorf("update %d: %w", i+1, err)
		}
		if each.Verdict.Provisional != (i > 0) {
			return fmt.Errorf("the path contradicts itself: update %d is provisional: %t", i+1, each.Verdict.Provisional)
		}
	}
	if folded := p.fold(); p.Decision != folded {
		return fmt.Errorf("the path contradicts itself: its decision is %s, but its updates make it %s", p.Decision, folded)
	}
	return nil
}

// consistent returns an error if the decision contradicts the findings. A run that has
// not completed may be Undecided whatever its findings are.
func (r Report) consistent() error {
	stated, folded := r.Verdict.Decision, r.Verdict.Refold(r.Findings, r.Expected).Decision
	if stated == folded || r.Run.Phase != PhaseComplete && stated == verdict.Undecided &&
		(folded == verdict.Ready || folded == verdict.NothingKnown) {
		return nil
	}
	return fmt.Errorf("the report contradicts itself: its decision is %s, but its findings make it %s", stated, folded)
}

// asJSON turns YAML into JSON, and leaves JSON alone.
func asJSON(text []byte) ([]byte, error) {
	if json.Valid(text) {
		return text, nil
	}
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, errors.New("this is not a report: it is neither JSON nor YAML")
	}
	return converted, nil
}
