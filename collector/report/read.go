package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/verdict"
)

// maxStored bounds a stored report, in bytes: that of 5 000 checks which all use
// the 4 KiB of a container's message is a third of it.
const maxStored = 64 << 20

// Read reads a report that was written as JSON or YAML. Fields that it does not
// know are ignored. Anything else than a report of this APIVersion with a
// decision is an error, and so is a decision that its findings do not make.
func Read(r io.Reader) (Report, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxStored+1))
	if err != nil {
		return Report{}, fmt.Errorf("could not read the report: %w", err)
	}
	if len(text) > maxStored {
		return Report{}, fmt.Errorf("this is no report: it is larger than %d MiB", maxStored>>20)
	}
	if text, err = asJSON(text); err != nil {
		return Report{}, err
	}
	if err := checkHead(text); err != nil {
		return Report{}, err
	}
	var stored Report
	if err := json.Unmarshal(text, &stored); err != nil {
		return Report{}, fmt.Errorf("this is no report: %w", err)
	}
	switch stored.Verdict.Decision {
	case verdict.Ready, verdict.NothingKnown, verdict.Blocked, verdict.Undecided:
		if err := stored.consistent(); err != nil {
			return Report{}, err
		}
		return stored, nil
	}
	return Report{}, fmt.Errorf("this report has no verdict: its decision is %q", stored.Verdict.Decision)
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

// checkHead checks the apiVersion and kind of the document first.
func checkHead(text []byte) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return errors.New("this is no report: it has no apiVersion and kind")
	}
	switch {
	case head.Kind != Kind:
		return fmt.Errorf("this is no report: its kind is %q, not %q", head.Kind, Kind)
	case head.APIVersion != APIVersion:
		return fmt.Errorf("this report is of another version: its apiVersion is %q, and this tool reads %q", head.APIVersion, APIVersion)
	}
	return nil
}
