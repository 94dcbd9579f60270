package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

// maxStored bounds a stored report, in bytes: that of 5 000 checks which all use
// the 4 KiB of a container's message is a third of it.
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
	// Kind is that which the document states; empty for none.
	Kind string
	// apiVersion is that which the document states, and text its content as JSON.
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
		return Document{}, fmt.Errorf("this is no report: it is larger than %d MiB", maxStored>>20)
	}
	if text, err = asJSON(text); err != nil {
		return Document{}, err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Document{}, errors.New("this is no report: it has no apiVersion and kind")
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

// unforce gives a report the decision without force: in those of earlier versions, force bypassed findings.
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
		return fmt.Errorf("this is no report: its kind is %q, not %q", d.Kind, kind)
	case d.apiVersion != APIVersion:
		return fmt.Errorf("this report is of another version: its apiVersion is %q, and this tool reads %q", d.apiVersion, APIVersion)
	}
	if err := json.Unmarshal(d.text, into); err != nil {
		return fmt.Errorf("this is no report: %w", err)
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
		return fmt.Errorf("the path contradicts itself: it has %s, and the reports of %s", words.Count(len(p.Versions), "version"), words.Count(len(p.Updates), "update"))
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
	if stated == folded || r.Run.Phase != PhaseComplete && stated == verdict.Undecided && (folded == verdict.Ready || folded == verdict.NothingKnown) {
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
		return nil, errors.New("this is no report: it is neither JSON nor YAML")
	}
	return converted, nil
}
