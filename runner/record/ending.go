package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/openshift/update-preflight/collector/verdict"
)

// Ending is the final part of a record.
type Ending struct {
	// Phase is one of the final phases.
	Phase Phase
	// Verdict is that of the report; its decision is empty if there is none.
	Verdict verdict.Verdict
	// Report is JSON of at most 64 MiB; nil if there is none.
	Report []byte
	// Fingerprint is the state of the cluster to which the verdict applies.
	Fingerprint map[string]string
}

// pack encodes the report for the record.
func (e Ending) pack() ([]byte, error) {
	if !e.Phase.final() {
		return nil, fmt.Errorf("%q is not a final phase", e.Phase)
	}
	return packReport(e.Report, e.Fingerprint)
}

// packReport compresses a report, after a line with its fingerprint; nil without both.
func packReport(report []byte, fingerprint map[string]string) ([]byte, error) {
	if len(report) == 0 && len(fingerprint) == 0 {
		return nil, nil
	}
	line, err := json.Marshal(fingerprint)
	if err != nil {
		return nil, fmt.Errorf("could not encode the fingerprint: %w", err)
	}
	text := append(append(line, '\n'), report...)
	if len(text) > maxText {
		return nil, fmt.Errorf("the report has %d bytes, more than %d", len(text), maxText)
	}
	return pack(text)
}

// unpackReport reverses packReport.
func unpackReport(packed []byte) ([]byte, map[string]string, error) {
	if len(packed) == 0 {
		return nil, nil, nil
	}
	text, err := unpack(packed, maxText)
	if err != nil {
		return nil, nil, err
	}
	line, report, _ := bytes.Cut(text, []byte("\n"))
	var fingerprint map[string]string
	if err := json.Unmarshal(line, &fingerprint); err != nil {
		return nil, nil, fmt.Errorf("could not decode the fingerprint: %w", err)
	}
	if len(report) == 0 {
		report = nil
	}
	return report, fingerprint, nil
}
