// Package report answers: how is a verdict written down?
//
// [Report] is the result of a run, [Path] the result of a path, and [Targets] the result of all updates: these
// documents are the stable interface of the product. [Read] reads a stored document. Package reportview shows them
// to people.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
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
	// PhaseComplete means that every check has ended.
	PhaseComplete = "Complete"
	// PhaseInterrupted means that the run was interrupted before that.
	PhaseInterrupted = "Interrupted"
	// PhaseCanceled means that the end of the run was requested from outside.
	PhaseCanceled = "Canceled"
	// PhaseRunning means that the run is in progress: the report has the findings so
	// far, and Expected.Missing names the checks that have not reported.
	PhaseRunning = "Running"
)

// Report is the result of a run. The same inputs give the same report, but for the ID of the run and the times.
type Report struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Run        Run     `json:"run"`
	Cluster    Cluster `json:"cluster"`
	Target     Target  `json:"target"`
	// Path is set for a later update of a path: the versions that the cluster goes through, from its own to the
	// target's. The verdict is provisional.
	Path []string `json:"path,omitempty"`
	// AskedAgain are the checks that can be evaluated only when the cluster runs the release before the target; none
	// for an update from the current release.
	AskedAgain []AskedAgain        `json:"askedAgain,omitempty"`
	Verdict    verdict.Verdict     `json:"verdict"`
	Expected   verdict.Expectation `json:"expected"`
	CVO        CVO                 `json:"cvo"`
	// Duration is an estimate of the update; nil where the nodes or their pools could not be read.
	Duration *Duration `json:"duration,omitempty"`
	// Findings are sorted: what blocks first, then by name.
	Findings []finding.Finding `json:"findings"`
	// Created are the objects that the run created in the cluster, sorted by kind,
	// namespace and name, without the pods of the Jobs.
	Created []Object `json:"created"`
	// Removal is nil before the objects are deleted, and if they are kept or there are none.
	Removal *Removal `json:"removal,omitempty"`
	// Standing is nil in the report that a run returns, and set when it is shown again later.
	Standing *Standing `json:"standing,omitempty"`
	// Switches are the switches by which the controller makes CVO honor its verdicts, at the time when the report is
	// shown again; the report that a run returns has none.
	Switches []Switch `json:"switches,omitempty"`
	// AfterUpdate is the judgement of the update, when the report is shown again later; nil if there is none.
	AfterUpdate *AfterUpdate `json:"afterUpdate,omitempty"`
	// Notices are further remarks on the run, for example that no baseline is stored.
	Notices []string `json:"notices,omitempty"`
	// Actions are next steps. A run returns the step that starts the update, if it permits the update: see Permits.
	// The program that shows the report adds the steps of its own command line.
	Actions []finding.Action `json:"actions,omitempty"`
}

// AskedAgain is a check that was not evaluated in advance.
type AskedAgain struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// From is the version that the update starts from.
func (r Report) From() string {
	if before := len(r.Path) - 2; before >= 0 {
		return r.Path[before]
	}
	return r.Cluster.Version
}

// Standing is whether the verdict of a stored report still holds.
type Standing struct {
	// Time is when that was determined, RFC 3339 in UTC, by the cluster's clock if known.
	Time string `json:"time"`
	// Judged is when gates, risks and health were evaluated, RFC 3339 in UTC; everything else was evaluated at the end
	// of the run. Empty if all was.
	Judged string `json:"judged,omitempty"`
	// Holder is the process that holds a run in progress; empty when none does.
	Holder string `json:"holder,omitempty"`
	// Ended lists why the verdict no longer holds; empty while it does.
	Ended []string `json:"ended,omitempty"`
	// Lacks are requested parts that the verdict does not cover, as clauses; empty for none.
	Lacks []string `json:"lacks,omitempty"`
	// Remarks are differences between the run and the current request that have no consequence, such as the version
	// of the tool.
	Remarks []string `json:"remarks,omitempty"`
}

// Holds reports whether the verdict of the report is current. The verdict of a new report is.
func (r Report) Holds() bool { return r.Standing == nil || len(r.Standing.Ended) == 0 }

// Refusal says why the report does not permit the update now, as a clause; empty if it does. The verdict must be
// Ready, current and complete, not forced, and cover everything that is requested: everything, unless Standing
// narrows it.
func (r Report) Refusal() string {
	lacks := r.Verdict.LeavesOut()
	if r.Standing != nil {
		lacks = r.Standing.Lacks
	}
	switch {
	case r.Run.Phase != PhaseComplete:
		return "the run is not complete: " + cmp.Or(r.Run.Phase, "its phase is unknown")
	case !r.Holds():
		return "its verdict no longer holds: " + words.Clauses(r.Standing.Ended, mostCauses)
	case r.Verdict.Decision != verdict.Ready:
		return "its verdict is " + cmp.Or(string(r.Verdict.Decision), "without a decision")
	case r.Verdict.Provisional:
		return "the run is about a later update of a path"
	case r.Verdict.Forced:
		return "the run was forced, and a forced run permits no update"
	case len(lacks) > 0:
		return words.Clauses(lacks, mostCauses)
	}
	return ""
}

const mostCauses = 5

// Permits reports whether the report permits the update now.
func (r Report) Permits() bool { return r.Refusal() == "" }

// Switch is a switch that is on in the cluster.
type Switch struct {
	// Name is alert, clusterOperator, admission or hostedAdmission.
	Name string `json:"name"`
	// Mode is Warn or Deny; empty for a switch without modes.
	Mode string `json:"mode,omitempty"`
	// Limit is the extent of the switch: its effects, and what it does not do.
	Limit string `json:"limit"`
	// WithoutController is the behavior while the controller is not running.
	WithoutController string `json:"withoutController"`
}

// AfterUpdate is the judgement of the update after a run, without its lists.
type AfterUpdate struct {
	// Decision is Good, Regressed or RolledBack, Unverified for a stored judgement that is not authentic, or NotJudged
	// if none is stored.
	Decision string `json:"decision"`
	// Message is a clause about the decision.
	Message string `json:"message"`
	// Time is when the cluster was last read for it, RFC 3339 in UTC; empty for one that is not authentic.
	Time string `json:"time,omitempty"`
}

// Object is an object of a run.
type Object struct {
	preflight.Object

	// Cluster is "management" for an object in the management cluster of a hosted cluster; empty for an object in the
	// evaluated cluster.
	Cluster string `json:"cluster,omitempty"`
}

// String names the object in a list.
func (o Object) String() string {
	text := o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
	if o.Cluster != "" {
		text += " in the " + o.Cluster + " cluster"
	}
	return text
}

// Removal describes the removal of the run's objects. If Left is empty, a final list of all objects of the run was
// empty.
type Removal struct {
	// Deleted are the objects that are gone, pods included.
	Deleted []Object `json:"deleted"`
	// Left are the objects that are still in the cluster.
	Left []Object `json:"left"`
	// Foreign are objects that have the label of the run and are not of the run; they were not deleted.
	Foreign []Object `json:"foreign,omitempty"`
}

// Run identifies a run. Times are RFC 3339 in UTC.
type Run struct {
	// ID is a UUID; empty for a run that is not recorded.
	ID             string `json:"id"`
	StartTime      string `json:"startTime"`
	CompletionTime string `json:"completionTime"`
	// Phase is Running, Complete, Interrupted or Canceled.
	Phase string `json:"phase"`
	// Detached is true for an interrupted run whose checks continue in the cluster, until a process attaches to it.
	Detached    bool   `json:"detached,omitempty"`
	ToolVersion string `json:"toolVersion"`
	// ChecksFrom is the ID of the earlier run whose Job results are reused; empty when the Jobs are this run's own.
	ChecksFrom string `json:"checksFrom,omitempty"`
	// Baseline is when the stored state of the cluster was taken with which "after" compares, RFC 3339 in UTC; empty
	// if none is stored.
	Baseline string `json:"baseline,omitempty"`
}

// Cluster is the cluster that would be updated.
type Cluster struct {
	// ID is spec.clusterID of ClusterVersion.
	ID string `json:"id"`
	// Version and Image are the release that the cluster runs.
	Version string `json:"version"`
	Image   string `json:"image"`
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes"`
}

// Target is the release that the cluster would be updated to.
type Target struct {
	// Version is empty when the release is selected by image and may not be read.
	Version string `json:"version"`
	// Image is the pull spec, by digest.
	Image string `json:"image"`
	// Child is the digest of the image for the architecture of the control plane, where Image is an
	// index of several; empty otherwise.
	Child string `json:"child,omitempty"`
	// UpdateKind is Patch, Minor, Major, SkipLevel, Rollback or Same.
	UpdateKind string `json:"updateKind,omitempty"`
	// Verified is true when the signature of the release was verified.
	Verified bool `json:"verified"`
	// Signers name the keys that signed it.
	Signers []string `json:"signers"`
}

// ReasonHyperShift is the Reason of CVO for a hosted cluster: HyperShift decides on the request.
const ReasonHyperShift = "HyperShift"

// CVO is the expected response of this cluster's cluster-version operator to the same request; for a hosted
// cluster, the response of HyperShift.
type CVO struct {
	// Accepts is nil if unknown.
	Accepts *bool `json:"accepts"`
	// Reason is the step that refuses, as the reason of the condition ReleaseAccepted
	// of ClusterVersion, NotEvaluated, or ReasonHyperShift.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Acceptable names the open findings that an administrator may accept; none of a detached
// run, whose checks have not ended.
func (r Report) Acceptable() []string {
	if r.Run.Detached {
		return nil
	}
	var names []string
	for _, f := range r.Findings {
		if f.Open() && f.Source.Acceptable() && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Range is an estimate of a duration, in minutes.
type Range struct {
	Low      int `json:"lowMinutes"`
	Expected int `json:"expectedMinutes"`
	High     int `json:"highMinutes"`
}

// RangeOf is an estimate, rounded.
func RangeOf(estimate rollout.Range) Range {
	rounded := estimate.Rounded()
	minutes := func(d time.Duration) int { return int(d / time.Minute) }
	return Range{minutes(rounded.Low), minutes(rounded.Expected), minutes(rounded.High)}
}

// String is the range in hours and minutes.
func (r Range) String() string {
	return fmt.Sprintf("%s (%s to %s)", hours(r.Expected), hours(r.Low), hours(r.High))
}

func hours(minutes int) string {
	const hour = 60
	switch {
	case minutes < hour:
		return fmt.Sprintf("%dm", minutes)
	case minutes%hour == 0:
		return fmt.Sprintf("%dh", minutes/hour)
	}
	return fmt.Sprintf("%dh%dm", minutes/hour, minutes%hour)
}

// Duration is how long one update, or all updates of a path, take.
type Duration struct {
	// ControlPlane is without the nodes of other pools. Total has those as well.
	ControlPlane Range `json:"controlPlane"`
	Total        Range `json:"total"`
	// DrainsRehearsed is true if both include the time of the rehearsed drains; otherwise each drain is assumed to be
	// quick.
	DrainsRehearsed bool `json:"drainsRehearsed,omitempty"`
	// Basis are the sources of the numbers.
	Basis []string `json:"basis"`
	// ProlongedBy are the causes that make the updates take longer.
	ProlongedBy []string `json:"prolongedBy,omitempty"`
}

// String is both ranges on one line.
func (d Duration) String() string {
	text := "control plane " + d.ControlPlane.String()
	if d.Total != d.ControlPlane {
		text += "; all nodes " + d.AllNodes()
	}
	return text
}

// AllNodes is the total on one line, with the assumption about the drains.
func (d Duration) AllNodes() string {
	if d.DrainsRehearsed {
		return d.Total.String() + ", with the drains as rehearsed"
	}
	return d.Total.String() + ", if every drain is quick"
}
