// Package guard answers: how is an unmodified cluster-version operator (CVO) made to
// honor a verdict?
//
// By one of three switches, each of which is a few objects in the cluster, and all of
// which are off until they are applied:
//
//   - [Alert] is advice. An alert is a risk of every update to oc and, with the feature
//     gate ClusterUpdateAcceptRisks, to CVO. A second alert fires when no verdict can be
//     read, so that silence is no pass.
//   - [ClusterOperator] blocks updates that leave the minor version, to all targets,
//     while the chosen target is not Ready. It takes CVO up to four minutes to notice.
//   - [Admission] warns of, or denies, the selection of a target that is not Ready, patch
//     updates included, before CVO starts. It needs Kubernetes 1.30.
//
// Force bypasses each of them. None outlasts [Switch.Remove]. A [Set] is all of them as
// they were chosen, and the ClusterOperator, which must-gather and "oc adm inspect" follow;
// it exists also while its switch is off, without Upgradeable.
//
// The alerts select metrics with the job "update-preflight": the Service of the metrics
// must have that name ([Service]), and its ServiceMonitor no jobLabel.
//
// Without the controller, which applies the switches again when a verdict changes or
// expires, the objects do not change: the second alert fires, and Upgradeable and the
// verdicts of the policy remain. A target without a verdict then results in a warning or
// a denial, and one that was Ready passes although its verdict has expired, since a
// policy has no clock.
//
// No permission in a namespace opens a switch but the one to edit the PrometheusRule: the
// other objects are of the cluster.
package guard

import (
	"cmp"
	"fmt"
	"regexp"
	"time"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/words"
)

// Ready is the decision that allows an update. Any other decision, and none, does not.
const Ready = "Ready"

// MaxVerdicts bounds the verdicts of one [Switch.Apply].
const MaxVerdicts = 500

// State is what the objects state.
type State struct {
	// Verdicts are those on the targets, at most MaxVerdicts.
	Verdicts []Verdict
	// Degraded is why the verdicts may not be current; empty while they are.
	Degraded string
}

// Verdict is the newest verdict on one target.
type Verdict struct {
	// Digest identifies the release image, "sha256:" and 64 hex digits; empty for an image
	// without one, which is never Ready.
	Digest string
	// Version is the semantic version of the release; empty where it is unknown.
	Version string
	// Decision is the decision of the report; empty while there is none.
	Decision string
	// Refusal is why the verdict does not permit the update, as a clause about its run; empty where it does.
	// Remark is in what its run differs from those of the controller; empty for nothing.
	Refusal, Remark string
	// ValidUntil ends the verdict: from then on it is as if there were none.
	ValidUntil time.Time
	// Chosen marks the target that Upgradeable of the ClusterOperator depends on; at
	// most one verdict is chosen.
	Chosen bool
}

// target names the target of the verdict in a message.
func (v Verdict) target() string { return cmp.Or(v.Version, v.Digest, "an image without a digest") }

// isReady reports whether the verdict allows the update at that time.
func (v Verdict) isReady(now time.Time) bool {
	return v.Digest != "" && v.Decision == Ready && v.Refusal == "" && now.Before(v.ValidUntil)
}

// maxCause bounds the cause in an answer, in bytes.
const maxCause = 256

// Answer is Ready, or why the update is not allowed at that time: what the policies state.
func (v Verdict) Answer(now time.Time) string {
	switch {
	case v.isReady(now):
		return Ready
	case v.Decision == "":
		return "missing"
	case v.Decision != Ready:
		return words.Line(v.Decision, maxCause)
	case v.Refusal != "":
		return words.Line("not valid: "+v.Refusal, maxCause)
	}
	return "not valid: it was valid until " + words.Time(v.ValidUntil)
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Check returns an error for verdicts that no object can express.
func Check(verdicts []Verdict) error {
	if len(verdicts) > MaxVerdicts {
		return fmt.Errorf("%d verdicts are more than the %d that a switch can have", len(verdicts), MaxVerdicts)
	}
	digests, chosen := map[string]bool{}, ""
	for _, verdict := range verdicts {
		if verdict.Digest != "" && !digestPattern.MatchString(verdict.Digest) {
			return fmt.Errorf("the digest %q of a verdict is not sha256: and 64 hex digits", verdict.Digest)
		}
		if _, err := semver.Parse(verdict.Version); err != nil && verdict.Version != "" {
			return fmt.Errorf("the version %q of the verdict on %s is no semantic version: %w", verdict.Version, verdict.Digest, err)
		}
		if digests[verdict.Digest] {
			return fmt.Errorf("two verdicts are on %s", verdict.Digest)
		}
		if verdict.Chosen && chosen != "" {
			return fmt.Errorf("both %s and %s are chosen", chosen, verdict.target())
		}
		digests[verdict.Digest] = true
		if verdict.Chosen {
			chosen = verdict.target()
		}
	}
	return nil
}
