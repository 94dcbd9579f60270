// Package measure answers: from which release does a gate measure an update, and what is the effect of a closed
// gate on it, while another update may be in progress?
//
// [Run] returns the function of a check for a judgement; a check that reads ClusterVersion itself calls [Of].
package measure

import (
	"context"
	"slices"

	"github.com/blang/semver/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Rule is how a gate treats the retarget of an update in progress: another target
// in the minor version that the update leads to.
type Rule string

const (
	// RetargetFree does not block a retarget, with any release of CVO.
	RetargetFree Rule = "RetargetFree"
	// ByUpgradeable is the rule of the gates that CVO applies by the condition
	// Upgradeable. CVO blocked a retarget by it up to 4.16, and in some releases of
	// 4.17.
	ByUpgradeable Rule = "ByUpgradeable"
)

// Effect is the effect of a gate that is closed on one update.
type Effect string

const (
	// Blocks prevents the update.
	Blocks Effect = "Blocks"
	// Uncertain prevents the update with some releases of this cluster's CVO.
	Uncertain Effect = "Uncertain"
	// Warns is for a retarget, which the gate does not block.
	Warns Effect = "Warns"
	// None is for an update that does not leave a minor version.
	None Effect = "None"
)

// Measure is how a gate measures an update, which another update in progress may precede.
type Measure struct {
	// Update is the evaluated update. It starts at the release that CVO measures from, and for a retarget at the last
	// completed one: a retarget changes the update in progress, so it is evaluated as a whole.
	Update update.Update
	// Completed is the last completed release; Desired is status.desired,
	// which is later while an update is in progress.
	Completed, Desired semver.Version
	// Within is the minor version in which updates are not blocked.
	Within string
	// Effect is the effect of a closed gate on the update.
	Effect Effect
}

// Of measures an update. It is the only place that decides from which release a gate measures. requested is the
// update from the last completed release. CVO, whose release is taken to be status.desired, measures updates that
// leave the minor version from there:
//
//   - An update that leaves the minor version of status.desired is blocked.
//   - A retarget of an update from another minor version is blocked by
//     ByUpgradeable up to 4.16, uncertain with 4.17, and a warning from 4.18 on.
//     With RetargetFree it is always a warning.
//   - Another update within that minor version is not concerned.
//
// Without an update in progress both releases are the same. A target with an earlier minor version than desired is
// not a retarget.
func Of(by Rule, desired semver.Version, requested update.Update) Measure {
	m := Measure{
		Update: update.Update{From: desired, To: requested.To}, Completed: requested.From, Desired: desired,
		Within: update.Line(desired), Effect: Blocks,
	}
	switch {
	case m.Update.LeavesMinor():
		return m
	case !requested.LeavesMinor():
		m.Effect = None
		return m
	}
	m.Update = requested
	switch allowed, certain := cvo.AllowsRetarget(desired); {
	case update.Line(desired) != update.Line(requested.To):
		m.Within = update.Line(requested.From)
	case by == RetargetFree || (allowed && certain):
		m.Effect = Warns
	case !certain:
		m.Effect = Uncertain
	default:
		m.Within = update.Line(requested.From)
	}
	return m
}

// Run makes the function of a check that blocks only updates that leave a minor version,
// by the measure of its rule. Without a ClusterVersion, or with a version that is not
// SemVer, no update is taken to be in progress; nor for an update from a later release.
func Run(
	by Rule, judge func(context.Context, check.Subject, Measure) ([]finding.Finding, error),
) func(context.Context, check.Subject) ([]finding.Finding, error) {
	return func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		desired := s.Update.From
		version, unread := s.ClusterVersion(ctx)
		if unread == nil && !s.Later {
			if parsed, err := semver.Parse(version.Status.Desired.Version); err == nil {
				desired = parsed
			}
		}
		m := Of(by, desired, s.Update)
		if m.Effect == None {
			return []finding.Finding{m.notConcerned(gap.ExtentOf(ctx))}, nil
		}
		findings, err := judge(ctx, s, m)
		findings = m.Apply(findings)
		if err != nil || unread == nil || apierrors.IsNotFound(unread) || onlySkipped(findings) {
			return findings, err
		}
		return finding.WithoutPasses(findings), unread
	}
}

// notConcerned is the result for an update that does not leave a minor version.
func (m Measure) notConcerned(read gap.Extent) finding.Finding {
	return finding.Skipped(read, check.ReasonNotConcerned, "does not apply to the update from %s to %s (%s)", m.Update.From, m.Update.To,
		m.Update.Kind())
}

// Apply changes findings that would block to the effect of the gate. Their reasons
// stay, and so do findings that are bypassed.
func (m Measure) Apply(findings []finding.Finding) []finding.Finding {
	for i, f := range findings {
		switch {
		case f.Bypass != nil || !f.Blocks:
		case m.Effect == Warns:
			findings[i] = Changed(f, preflight.Warn, "This does not block retargeting the update in progress to %s, but blocks updates "+
				"that leave %s.",
				m.Update.To, m.Within)
		case m.Effect == Uncertain:
			findings[i] = Changed(f, preflight.Unknown,
				"Some releases of the CVO of %s refuse to retarget the update in progress to %s, others do not.", m.Within, m.Update.To)
		}
	}
	return findings
}

// Changed is the finding with another outcome, and a note after its message.
func Changed(f finding.Finding, outcome preflight.Outcome, format string, args ...any) finding.Finding {
	return f.Judged(outcome).Noted(format, args...)
}

func onlySkipped(findings []finding.Finding) bool {
	return !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Outcome != preflight.Skipped })
}
