// Package clusterversion answers: which condition of the ClusterVersion or of a ClusterOperator
// blocks the update?
//
// Each function returns one check. Names repeat the preconditions and risks of the
// cluster-version operator (CVO). [Failing] and [RetrievedUpdates] are about what `oc adm
// upgrade` checks in addition; their findings may be accepted by name, as with `oc adm upgrade
// recommend --accept`.
package clusterversion

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	reasonInvalidCurrentVersion = finding.NewReason("InvalidCurrentVersion", finding.Explanation{
		Meaning: "Reported when the version of the cluster is not a semantic version, so that it cannot be compared with the target.",
		Cause:   "Status.desired.version of ClusterVersion was set by a custom release.",
		Remedy:  "Check which release the cluster runs: `oc get clusterversion version -o yaml`.",
	})
	reasonNotReported = finding.NewReason("NotReported", finding.Explanation{
		Meaning: "Reported when a condition of ClusterVersion is absent or Unknown, so that a check of it is inconclusive.",
		Cause:   "CVO does not run, or has not evaluated the condition yet.",
		Remedy:  "Check that CVO is running: `oc -n openshift-cluster-version get pods`.",
	})
	reasonUnexplained = finding.NewReason("Unexplained", finding.Explanation{
		Meaning: "Reported when a condition blocks the update, or warns of it, without a reason.",
		Cause:   "The operator or CVO set the condition without a reason.",
		Remedy:  "Read the condition of ClusterVersion and those of the ClusterOperators: `oc get clusterversion,clusteroperators -o yaml`.",
	})
)

type situation struct {
	read    gap.Extent
	version *configv1.ClusterVersion
	// update is the update as CVO measures it: not from the last completed release
	// but from status.desired, which is the newer release while an update is in
	// progress.
	update update.Update
	// requested is the update from the last completed release.
	requested update.Update
}

// judgement judges a situation with at least one finding.
type judgement func(situation) []finding.Finding

// onClusterVersion is the Run of a check that reads only the ClusterVersion.
// Findings without objects are about the ClusterVersion.
func onClusterVersion(judge judgement) func(context.Context, check.Subject) ([]finding.Finding, error) {
	return func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		version, err := s.ClusterVersion(ctx)
		if apierrors.IsNotFound(err) {
			return s.WithoutClusterVersion(ctx)
		}
		if err != nil {
			return nil, err
		}
		desired, err := semver.Parse(version.Status.Desired.Version)
		if err != nil {
			return []finding.Finding{invalidVersion(version, err)}, nil
		}
		findings := judge(situation{read: gap.ExtentOf(ctx), version: version, update: update.Update{From: desired, To: s.Update.To}, requested: s.Update})
		for i, f := range findings {
			if f.Objects == nil {
				findings[i] = f.About(check.ClusterVersionObject())
			}
		}
		return findings, nil
	}
}

func invalidVersion(version *configv1.ClusterVersion, err error) finding.Finding {
	return finding.Unknown(reasonInvalidCurrentVersion,
		"status.desired of ClusterVersion %q has the version %q, which is not a semantic version: %v", version.Name, version.Status.Desired.Version, err).
		Remedy("Check which release the cluster runs. CVO itself only warns of such a version.").
		Do(finding.Read("oc get clusterversion version -o yaml")).
		About(check.ClusterVersionObject())
}

// current judges a status that may be older than the spec, which RequestValid
// reports. Of a status that is, only failures count, and only while no other release
// than that of status.desired is requested. A change of spec.channel, spec.upstream
// or the accepted risks changes the known updates and RetrievedUpdates, and a change
// of spec.desiredUpdate changes Invalid: neither can open a gate.
func current(judge judgement) judgement {
	return func(s situation) []finding.Finding {
		if _, stale := s.stale(); !stale {
			return judge(s)
		}
		if !s.requestsAnother() {
			failures := slices.DeleteFunc(judge(s), func(f finding.Finding) bool { return f.Outcome != preflight.Fail })
			if len(failures) > 0 {
				return failures
			}
		}
		return []finding.Finding{finding.Skipped(s.read, check.ReasonStaleStatus,
			"the status of ClusterVersion is out of date, so the check is inconclusive; the finding %s blocks the update", requestName)}
	}
}

// stale is the only finding about a status that is older than the spec; it is false for a current status.
func (s situation) stale() (finding.Finding, bool) {
	if cvo.HasProcessed(s.version) {
		return finding.Finding{}, false
	}
	f, _ := check.Stale(check.ClusterVersionObject(), s.version.Status.ObservedGeneration, s.version.Generation)
	return measure.Changed(f, f.Outcome, "Of the former spec.channel, spec.upstream or spec.desiredUpdate, with its accepted risks, may be "+
		"the available and conditional updates, the release in progress, and the conditions RetrievedUpdates, Invalid, Progressing and Failing.").
		Do(check.CVOPods()), true
}

// requestsAnother reports whether the spec requests another release than that of
// status.desired, from which updates are measured.
func (s situation) requestsAnother() bool {
	request, desired := s.version.Spec.DesiredUpdate, s.version.Status.Desired
	return request != nil &&
		((request.Version != "" && request.Version != desired.Version) || (request.Image != "" && request.Image != desired.Image))
}

// condition returns a condition of ClusterVersion; its status is empty where there is none.
func (s situation) condition(kind configv1.ClusterStatusConditionType) configv1.ClusterOperatorStatusCondition {
	for _, condition := range s.version.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return configv1.ClusterOperatorStatusCondition{Type: kind}
}

func (s situation) target() string { return s.update.To.String() }

func (s situation) minor() string { return update.Line(s.update.From) }

// measure is how a gate is measured which CVO applies by the condition Upgradeable.
func (s situation) measure() measure.Measure {
	return measure.Of(measure.ByUpgradeable, s.update.From, s.requested)
}

// notConcerned is the result of a check that blocks only updates to another minor version.
func (s situation) notConcerned(condition string) []finding.Finding {
	return []finding.Finding{finding.Skipped(s.read, check.ReasonNotConcerned, "%s does not block updates within %s, such as %s", condition, s.minor(), s.target())}
}

// violated is the finding of a precondition of CVO that the update violates, with
// CVO's own reason, and its message followed by notes.
func violated(violation cvo.Violation, notes ...string) finding.Finding {
	outcome := preflight.Fail
	switch violation.Weight {
	case cvo.Blocking:
	case cvo.Unchecked:
		notes = append([]string{"The CVO of this cluster does not check this yet."}, notes...)
	case cvo.Warning:
		outcome = preflight.Warn
	case cvo.Uncertain:
		outcome = preflight.Unknown
	}
	message := strings.Join(append([]string{violation.Message}, notes...), " ")
	return finding.New(outcome, cmp.Or(finding.ReportedReason(violation.Reason), reasonUnexplained), "%s", message)
}

func orAbsent(status configv1.ConditionStatus) string { return cmp.Or(string(status), "absent") }
