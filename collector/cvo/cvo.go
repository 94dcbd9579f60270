// Package cvo answers: what would this cluster's cluster-version operator (CVO) do with the same request?
//
// It is pure: it evaluates the content of ClusterVersion as CVO does (cluster-version-operator lib/validation,
// pkg/cvo and pkg/payload/precondition). Where releases of CVO differ, the version that the cluster runs decides;
// releases from 4.14 on are known.
package cvo

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// Evaluate runs the request through the steps of CVO: validation, retrieval of the payload, the check of its version,
// the preconditions. It returns a certain rejection even if an earlier step could not be evaluated. If CVO
// currently fails with the same request, it never predicts acceptance: CVO retries, and fails until the cause is
// fixed.
func Evaluate(request Request) Prediction {
	prediction := evaluate(request)
	if request.ClusterVersion == nil || request.Force || prediction.Accepts != nil && !*prediction.Accepts {
		return prediction
	}
	if failed := Failed(request.ClusterVersion, request.Version, request.Image); failed != nil {
		return unknown("CVO currently fails with this request%s, and each retry fails until the cause is fixed: %s",
			aside(failed.Reason), cmp.Or(failed.Message, "no message"))
	}
	return prediction
}

// evaluate evaluates the steps without regard to what CVO reports about them.
func evaluate(request Request) Prediction {
	if request.ClusterVersion == nil {
		return unknown("the cluster has no ClusterVersion")
	}
	if prediction, done := validate(request); done {
		return prediction
	}
	if prediction, done := retrieve(&request); done {
		return prediction
	}
	version := request.PayloadVersion
	if version == "" {
		version = request.Version
	}
	if version == "" {
		return unknown("the version of %s, on which the preconditions depend, is unknown", request.Image)
	}
	request.Version = version
	return preconditions(request)
}

// retrieve evaluates the retrieval of the payload and the check of its version. It sets the image of a request by
// version.
func retrieve(request *Request) (prediction Prediction, done bool) {
	running := request.ClusterVersion.Status.Desired
	if request.Image == "" {
		request.Image = imageOf(*request)
	}
	switch {
	case request.Image == "" && request.Version == running.Version:
		return accepts("the cluster runs %s or is being updated to it, so nothing changes", running.Version), true
	case request.Image == "":
		return refuses("NoTarget", "%s is only in status.history, which passes the validation but gives no image: the cluster silently "+
			"stays at %s; name the image too",
			request.Version, running.Version), true
	case request.Image == running.Image:
		return accepts("Payload loaded version=%q image=%q: the cluster runs this image or is being updated to it, so nothing is "+
			"verified and nothing changes",
			running.Version, running.Image), true
	case !request.Force && !strings.Contains(request.Image, "@"):
		return refuses("RetrievePayload", "Retrieving payload failed version=%q image=%q failure=The update cannot be verified: the "+
			"image is not named by its digest",
			request.Version, request.Image), true
	case !request.Force && request.Signed != nil && !*request.Signed:
		return refuses("RetrievePayload", "Retrieving payload failed version=%q image=%q failure=The update cannot be verified",
			request.Version, request.Image), true
	case request.Version != "" && request.PayloadVersion != "" && request.Version != request.PayloadVersion:
		return refuses("VerifyPayloadVersion", "Verifying payload failed version=%q image=%q failure=release image version %s does not "+
			"match the expected upstream version %s",
			request.Version, request.Image, request.PayloadVersion, request.Version), true
	}
	return Prediction{}, false
}

// preconditions evaluates all of them, in CVO's order. Force turns a violation that blocks into a warning.
func preconditions(request Request) Prediction {
	var violations []Violation
	for _, precondition := range []func(*configv1.ClusterVersion, string) *Violation{Rollback, GiantHop, Upgradeable, recommended} {
		if violation := precondition(request.ClusterVersion, request.Version); violation != nil {
			violations = append(violations, *violation)
		}
	}
	if request.Force {
		return forced(request, violations)
	}
	blocking, uncertain := first(violations, Blocking), first(violations, Uncertain)
	summary := summarize(violations)
	_, judged := known(request.ClusterVersion.Status.Desired.Version)
	switch {
	case !judged:
		return unknown("the preconditions of the CVO of release %q are unknown", request.ClusterVersion.Status.Desired.Version)
	case blocking != nil:
		return refuses("PreconditionChecks", "Preconditions failed for payload loaded version=%q image=%q: %s", request.Version, request.Image,
			summary)
	case uncertain != nil:
		return unknown("%s", uncertain.Message)
	case request.Signed == nil:
		return unknown("no precondition blocks %s, but whether CVO can verify its signature is unknown", request.Image)
	case summary != "":
		return accepts("Payload loaded version=%q image=%q; accepted with warnings: %s", request.Version, request.Image, summary)
	}
	return accepts("Payload loaded version=%q image=%q", request.Version, request.Image)
}

func forced(request Request, violations []Violation) Prediction {
	summary := summarize(violations)
	switch {
	case first(violations, Blocking) != nil:
		return accepts("Payload loaded version=%q image=%q; Forced through blocking failures: %s", request.Version, request.Image, summary)
	case summary != "":
		return accepts("Payload loaded version=%q image=%q; forced, with warnings: %s", request.Version, request.Image, summary)
	}
	return accepts("Payload loaded version=%q image=%q; forced, and no known precondition blocks it", request.Version, request.Image)
}

// NotEvaluated is the reason of a Prediction whose Accepts is nil.
const NotEvaluated = "NotEvaluated"

// Prediction predicts how CVO responds to a request.
type Prediction struct {
	// Accepts is nil when unknown.
	Accepts *bool
	// Reason is the reason of the condition of ClusterVersion that would report the prediction: InvalidClusterVersion
	// of Invalid; of ReleaseAccepted the step that rejects the request (RetrievePayload, VerifyPayloadVersion,
	// PreconditionChecks) or PayloadLoaded. NoTarget, which is not a reason of CVO, means that CVO stays at the
	// current release and reports nothing. NotEvaluated means that Accepts is nil.
	Reason string
	// Message is the cause, in CVO's own words if it has a message.
	Message string
}

func accepts(format string, args ...any) Prediction {
	return Prediction{Accepts: new(true), Reason: "PayloadLoaded", Message: fmt.Sprintf(format, args...)}
}

func refuses(reason, format string, args ...any) Prediction {
	return Prediction{Accepts: new(false), Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Prediction {
	return Prediction{Reason: NotEvaluated, Message: fmt.Sprintf(format, args...)}
}

// Weight is the effect of a violation on the update.
type Weight string

// The weights of violations.
const (
	// Blocking prevents the update, unless it is forced.
	Blocking Weight = "Blocking"
	// Warning is only recorded, in status.history[].acceptedRisks.
	Warning Weight = "Warning"
	// Uncertain blocks the update with some releases of CVO of this minor version, and not with others.
	Uncertain Weight = "Uncertain"
	// Unchecked violates a rule that this release of CVO does not check yet.
	Unchecked Weight = "Unchecked"
)

// Violation is a precondition of CVO that an update violates.
type Violation struct {
	// Precondition is its name, e.g. ClusterVersionRollback.
	Precondition string
	// Reason and Message are CVO's own.
	Reason, Message string
	Weight          Weight
}

// aside is a reason in parentheses, as it follows a word; empty for none.
func aside(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// first is the first violation of a weight, or nil.
func first(violations []Violation, weight Weight) *Violation {
	for i := range violations {
		if violations[i].Weight == weight {
			return &violations[i]
		}
	}
	return nil
}

// summarize is CVO's message for all violations
// (pkg/payload/precondition/precondition.go), without a reason that is empty.
func summarize(violations []Violation) string {
	var texts []string
	for _, violation := range violations {
		if violation.Weight == Blocking || violation.Weight == Warning {
			cause := ""
			if violation.Reason != "" {
				cause = fmt.Sprintf(" because of %q", violation.Reason)
			}
			texts = append(texts, fmt.Sprintf("Precondition %q failed%s: %s", violation.Precondition, cause,
				cmp.Or(violation.Message, "no message")))
		}
	}
	if len(texts) > 1 {
		return "Multiple precondition checks failed:\n* " + strings.Join(texts, "\n* ")
	}
	return strings.Join(texts, "")
}

type minor struct{ major, minor uint64 }

func minorOf(version semver.Version) minor { return minor{version.Major, version.Minor} }

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

func (m minor) before(other minor) bool {
	return m.major < other.major || (m.major == other.major && m.minor < other.minor)
}

// oldest is the first minor version whose CVO is known.
func oldest() minor { return minor{4, 14} }

func known(version string) (semver.Version, bool) {
	current, err := semver.Parse(version)
	return current, err == nil && !minorOf(current).before(oldest())
}

type change struct {
	// since is the first minor version that has it in all of its releases.
	since minor
	// partly are the minor versions where only some patch releases have it.
	partly []backport
}

// backport is a minor version in which a change was made or reverted after the first release.
type backport struct {
	minor minor
	// settled is the first patch version from which on all releases surely have the
	// change; zero where that is unknown.
	settled uint64
}

// in reports whether the CVO of a release has the change; certain is false where that depends on its patch version.
func (c change) in(current semver.Version) (has, certain bool) {
	for _, backport := range c.partly {
		if minorOf(current) == backport.minor {
			settled := backport.settled > 0 && current.Patch >= backport.settled
			return settled, settled
		}
	}
	return !minorOf(current).before(c.since), true
}

// previousRelease allows the rollback to the previous release within a minor
// version: pull request 996, in 4.15 before its first release (1008) and in 4.14
// since January 2024. In 4.16 it was reverted in July 2024 (1065) and restored in
// August (1077).
func previousRelease() change {
	return change{since: minor{4, 15}, partly: []backport{{minor: minor{4, 14}, settled: 12}, {minor: minor{4, 16}, settled: 10}}}
}

// noGiantHops is the precondition ClusterVersionGiantHop (pull request 1112).
func noGiantHops() change {
	return change{since: minor{4, 19}, partly: []backport{{minor: minor{4, 18}}}}
}

// majorFive makes ClusterVersionGiantHop accept updates from 4.y to 5.0 (pull request 1275).
func majorFive() change { return change{since: minor{4, 22}} }

// fromDesired makes ClusterVersionUpgradeable measure from status.desired, not
// from the last completed release, so that an update in progress can be
// retargeted within its minor version (pull request 1094, in 4.17 since the end of October
// 2024: 1095).
func fromDesired() change {
	return change{since: minor{4, 18}, partly: []backport{{minor: minor{4, 17}, settled: 5}}}
}

// acksOfDesired makes CVO evaluate the admin gates of its own release instead of the last completed one
// (pkg/risk/adminack).
func acksOfDesired() change { return change{since: minor{4, 23}} }

// risksByName makes CVO evaluate each risk once for all updates, by its name. Before,
// it evaluated the risks of every update by the definitions of that update.
func risksByName() change { return change{since: minor{4, 22}} }

// EvaluatesRisksByName reports whether the CVO of a release evaluates one definition
// of a risk for all updates. It is true for a version that is not SemVer.
func EvaluatesRisksByName(version string) bool {
	current, err := semver.Parse(version)
	has, _ := risksByName().in(current)
	return err != nil || has
}

// adminGates is the first release with the ConfigMap admin-gates. They came with 4.9, and with 4.8.14.
func adminGates() semver.Version { return semver.MustParse("4.8.14") }

// HasAdminGates reports whether the CVO of a release reads the ConfigMap admin-gates.
func HasAdminGates(release semver.Version) bool {
	return release.GTE(adminGates()) || minor{4, 8}.before(minorOf(release))
}

// whileUpdating is the cause ClusterVersionUpdating of Upgradeable=False (pull request 1080).
func whileUpdating() change { return change{since: minor{4, 19}} }

// NamesGate reports whether CVO has a gate of this name: a cause of Upgradeable=False of
// ClusterVersion (pkg/risk/{adminack, overrides, updating, deletion, upgradeable}). The checks
// of these gates have the same names, in every release.
func NamesGate(name string) bool {
	switch name {
	case updating, "ClusterVersionOverrides", "ResourceDeletionInProgress", "AdminAckUnknown", "ClusterOperatorUpgradeableUnknown":
		return true
	}
	return strings.HasPrefix(name, "AdminAck-") || strings.HasPrefix(name, "ClusterOperatorUpgradeable-")
}

// updating is the gate that is closed while an update is in progress.
const updating = "ClusterVersionUpdating"

// MakesUpgradeable reports whether the CVO of a release makes Upgradeable=False of a gate. It
// is false for a version that is not SemVer.
func MakesUpgradeable(version, gate string) bool {
	release, err := semver.Parse(version)
	if err != nil || !NamesGate(gate) {
		return false
	}
	if gate == updating {
		has, _ := whileUpdating().in(release)
		return has
	}
	return true
}

// AllowsRetarget reports whether the CVO of a release lets an update in progress to
// its minor version be retargeted within that version in spite of Upgradeable=False.
// It is certain unless that depends on the patch version.
func AllowsRetarget(release semver.Version) (allowed, certain bool) {
	return fromDesired().in(release)
}

// AcksOf returns the release whose admin gates CVO evaluates while an update from the last completed release to
// the desired one is in progress.
func AcksOf(completed, desired semver.Version) semver.Version {
	if has, _ := acksOfDesired().in(desired); has {
		return desired
	}
	return completed
}

// patchDespiteOverrides makes CVO accept patch updates despite overrides (pull request
// 1314).
func patchDespiteOverrides() change { return change{since: minor{4, 22}} }

// OverridesBlockPatches reports whether the CVO of a release refuses patch updates
// while spec.overrides makes objects unmanaged, as it does up to 4.21. It is false
// for a version that is not SemVer.
func OverridesBlockPatches(version string) bool {
	current, ok := known(version)
	has, _ := patchDespiteOverrides().in(current)
	return ok && !has
}

// CompletedVersion returns the release that CVO considers installed: the last completed one, else the first in
// status.history; empty if the history is.
func CompletedVersion(status configv1.ClusterVersionStatus) string {
	for _, past := range status.History {
		if past.State == configv1.CompletedUpdate {
			return past.Version
		}
	}
	if count := len(status.History); count > 0 {
		return status.History[count-1].Version
	}
	return ""
}
