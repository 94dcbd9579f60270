// Package report answers: how is the verdict told? It holds the report of a
// run, which is the product's stable interface, and one file per output
// format. Formats only render: everything is decided before.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// APIVersion and Kind head every report. Readers ignore fields they do not
// know; fields are added, never changed, within a version.
const (
	APIVersion = "preflight.openshift.io/v1alpha1"
	Kind       = "PreflightReport"
)

// The phases of a run.
const (
	// PhaseComplete means that every check was waited for.
	PhaseComplete = "Complete"
	// PhaseInterrupted means that the run was stopped before that.
	PhaseInterrupted = "Interrupted"
	// PhaseCanceled means that somebody else asked for the end of the run.
	PhaseCanceled = "Canceled"
	// PhaseRunning means that the run goes on: the report has what was found so
	// far, and Expected.Missing names the checks that are still awaited.
	PhaseRunning = "Running"
)

// The output formats.
const (
	formatText = "text"
	formatJSON = "json"
	formatYAML = "yaml"
)

// Report is everything that a run found out. The same inputs make the same
// report, but for the ID of the run and the times.
type Report struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Run        Run                 `json:"run"`
	Cluster    Cluster             `json:"cluster"`
	Target     Target              `json:"target"`
	Verdict    verdict.Verdict     `json:"verdict"`
	Expected   verdict.Expectation `json:"expected"`
	CVO        CVO                 `json:"cvo"`
	// Findings are sorted: what blocks first, then by name.
	Findings []finding.Finding `json:"findings"`
	// Created are the objects that the run made in the cluster, sorted by kind,
	// namespace and name. The pods, which Kubernetes makes of Jobs, are not among
	// them.
	Created []preflight.Object `json:"created"`
	// Removal is nil in a report that was told before the objects were deleted,
	// and where they were kept, or there were none.
	Removal *Removal `json:"removal,omitempty"`
	// Standing is nil in the report that a run tells, and set where it is told
	// again later: whoever shows an old verdict says so.
	Standing *Standing `json:"standing,omitempty"`
}

// Removal says what became of the objects of the run. Where Left is empty, the
// API server found none of them any more when it was asked for all.
type Removal struct {
	// Deleted is what was there and is gone, pods included.
	Deleted []preflight.Object `json:"deleted"`
	// Left is what is still there.
	Left []preflight.Object `json:"left"`
}

// Run says which run this is. Times are RFC 3339 in UTC.
type Run struct {
	ID             string `json:"id"`
	StartTime      string `json:"startTime"`
	CompletionTime string `json:"completionTime"`
	// Phase is Running, Complete, Interrupted or Canceled.
	Phase       string `json:"phase"`
	ToolVersion string `json:"toolVersion"`
	// ChecksFrom is the ID of the earlier run whose results of Jobs these are;
	// empty when they are this run's own.
	ChecksFrom string `json:"checksFrom,omitempty"`
}

// Cluster says what would be updated.
type Cluster struct {
	// ID is spec.clusterID of ClusterVersion.
	ID string `json:"id"`
	// Version and Image are the release that the cluster runs.
	Version string `json:"version"`
	Image   string `json:"image"`
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes"`
}

// Target says what it would be updated to.
type Target struct {
	// Version is empty when the release could not be trusted enough to read it.
	Version string `json:"version"`
	// Image is the pull spec, by digest.
	Image string `json:"image"`
	// UpdateKind is Patch, Minor, Major, SkipLevel, Rollback or Same.
	UpdateKind string `json:"updateKind,omitempty"`
	// Verified is true when the signature of the release was verified.
	Verified bool `json:"verified"`
	// Signers name the keys that signed it.
	Signers []string `json:"signers"`
}

// CVO says what the cluster-version operator of this cluster would do with the
// same request.
type CVO struct {
	// Accepts is nil where that was not found out.
	Accepts *bool `json:"accepts"`
	// Reason is the step that refuses, in the words of the condition
	// ReleaseAccepted of ClusterVersion, or NotEvaluated.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Formats lists the names of the output formats.
func Formats() []string { return []string{formatText, formatJSON, formatYAML} }

// CheckFormat returns an error that names the formats there are when format is
// not one of them.
func CheckFormat(format string) error {
	if slices.Contains(Formats(), format) {
		return nil
	}
	return fmt.Errorf("unknown output format %q: it must be one of %s", format, strings.Join(Formats(), ", "))
}

// Write renders the report in one of the Formats.
func Write(w io.Writer, format string, report Report) error {
	if err := CheckFormat(format); err != nil {
		return err
	}
	if format == formatText {
		return writeText(w, report)
	}
	return WriteDocument(w, format, report)
}
