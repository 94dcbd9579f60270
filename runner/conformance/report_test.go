package conformance_test

import (
	"bytes"
	"encoding/xml"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/test/golden"
)

// sample has one result of each outcome, and hostile text.
func sample() conformance.Report {
	return conformance.Report{Results: []requirement.Result{
		{Check: "Zoo.Captive", Requirement: "Result", Outcome: preflight.Pass, Reason: "Conforms", Message: "reported Zoo.Animal Pass (Passed) with exit code 0"},
		{Check: "Zoo.Captive", Requirement: "Killed", Outcome: preflight.Skipped, Reason: "TooFast", Message: "it ended by itself"},
		{Check: "Zoo.Captive", Requirement: "Time", Outcome: preflight.Warn, Reason: "Slow", Message: "it took 2m0s", Remediation: "Ask for less."},
		{Check: "Zoo.Captive", Requirement: "NonRoot", Outcome: preflight.Fail, Reason: "RunsAsRoot", Message: "image <will> run\x1b[2J as root", Remediation: "USER 65532"},
		{Check: "Zoo.Other", Requirement: "Result", Outcome: preflight.Unknown, Reason: "ImagePull", Message: "the image cannot be pulled", Remediation: "See the pull secret."},
	}}
}

func TestWrite(t *testing.T) {
	for _, output := range []string{"text", "json", "junit", "markdown", "html"} {
		t.Run(output, func(t *testing.T) {
			var got bytes.Buffer
			if err := format.Write(&got, output, sample(), format.Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/report."+output, got.Bytes())
			if bytes.ContainsRune(got.Bytes(), '\x1b') {
				t.Error("the output has terminal control characters")
			}
		})
	}
	if err := format.Write(&bytes.Buffer{}, "xml", sample(), format.Style{}); err == nil {
		t.Error("an unknown format is accepted")
	}
}

func TestJUnitOfHostileText(t *testing.T) {
	hostile := conformance.Report{Results: []requirement.Result{{Check: "\x00", Requirement: "]]>", Outcome: preflight.Fail, Message: "\xff\x1b", Remediation: "<&"}}}
	var got bytes.Buffer
	if err := format.Write(&got, "junit", hostile, format.Style{}); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(got.Bytes(), new(any)); err != nil {
		t.Errorf("%v:\n%s", err, got.String())
	}
}

func TestOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		outcomes []preflight.Outcome
		want     preflight.Outcome
	}{
		"Nothing":  {reason: "a report without results is not a pass", want: preflight.Unknown},
		"Good":     {reason: "skipped requirements and warnings do not prevent conformance", outcomes: []preflight.Outcome{preflight.Pass, preflight.Skipped, preflight.Warn}, want: preflight.Pass},
		"Untried":  {reason: "a requirement that could not be tested is inconclusive", outcomes: []preflight.Outcome{preflight.Unknown, preflight.Pass}, want: preflight.Unknown},
		"Breaking": {reason: "one violation decides", outcomes: []preflight.Outcome{preflight.Unknown, preflight.Fail, preflight.Pass}, want: preflight.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			var report conformance.Report
			for _, outcome := range tc.outcomes {
				report.Results = append(report.Results, requirement.Result{Outcome: outcome})
			}
			if got := report.Outcome(); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestParseSubstitution(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         conformance.Substitution
		rejected     bool
	}{
		"All":      {reason: "one image for all", text: "registry.example.com/a:1", want: conformance.Substitution{PullSpec: "registry.example.com/a:1"}},
		"One":      {reason: "a port is not a tag", text: "localhost:5000/a=b@sha256:0", want: conformance.Substitution{Source: "localhost:5000/a", PullSpec: "b@sha256:0"}},
		"Tag":      {reason: "a source has no tag", text: "a:1=b:2", rejected: true},
		"Empty":    {reason: "an empty substitution", rejected: true},
		"Half":     {reason: "a substitution without an image", text: "a=", rejected: true},
		"NoSource": {reason: "a substitution with an empty source", text: "=b", rejected: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := conformance.ParseSubstitution(tc.text)
			if (err != nil) != tc.rejected {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
