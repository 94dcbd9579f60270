package record

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// packReport compresses a report, after a line with what it rests on; without
// either it is nothing.
func packReport(report []byte, basis map[string]string) ([]byte, error) {
	if len(report) == 0 && len(basis) == 0 {
		return nil, nil
	}
	line, err := json.Marshal(basis)
	if err != nil {
		return nil, fmt.Errorf("could not encode what the report rests on: %w", err)
	}
	text := append(append(line, '\n'), report...)
	if len(text) > maxText {
		return nil, fmt.Errorf("the report has %d bytes, and a record takes %d", len(text), maxText)
	}
	return pack(text)
}

// unpackReport is the opposite of packReport.
func unpackReport(packed []byte) ([]byte, map[string]string, error) {
	if len(packed) == 0 {
		return nil, nil, nil
	}
	text, err := unpack(packed, maxText)
	if err != nil {
		return nil, nil, err
	}
	line, report, _ := bytes.Cut(text, []byte("\n"))
	var basis map[string]string
	if err := json.Unmarshal(line, &basis); err != nil {
		return nil, nil, fmt.Errorf("could not decode what the report rests on: %w", err)
	}
	if len(report) == 0 {
		report = nil
	}
	return report, basis, nil
}
