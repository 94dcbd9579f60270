package gate

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// rule is how a gate treats the retarget of an update in progress: another target
// in the minor version that the update leads to.
type rule string

const (
	// retargetFree does not block a retarget, with any release of CVO.
	retargetFree rule = "RetargetFree"
	// byUpgradeable is the rule of the gates that CVO applies by the condition
	// Upgradeable. CVO blocked a retarget by it up to 4.16, and in some releases of
	// 4.17.
	byUpgradeable rule = "ByUpgradeable"
)

// effect is the effect of a gate that is closed on one update.
type effect string

const (
	// blocks prevents the update.
	blocks effect = "Blocks"
	// uncertain prevents the update with some releases of this cluster's CVO.
	uncertain effect = "Uncertain"
	// warns is for a retarget, which the gate does not block.
	warns effect = "Warns"
	// none is for an update that does not leave a minor version.
	none effect = "None"
)

// measure is how a gate measures an update, which another update in progress may
// precede.
type measure struct {
	// update is the one that is judged. It starts at the release that CVO measures
	// from, and for a retarget at the last completed one: a retarget is a change of
	// the update in progress, so it is judged as a whole.
	update update.Update
	// completed is the last completed release; desired is that of status.desired,
	// which is later while an update is in progress.
	completed, desired semver.Version
	// within is the minor version in which updates are not blocked.
	within string
	effect effect
}

// measureOf is the only place that decides from which release a gate measures. requested
// is the update from the last completed release. CVO, whose release is taken to be
// status.desired, measures updates that leave the minor version from there:
//
//   - An update that leaves the minor version of status.desired is blocked.
//   - A retarget of an update from another minor version is blocked by
//     byUpgradeable up to 4.16, uncertain with 4.17, and a warning from 4.18 on.
//     With retargetFree it is always a warning.
//   - Another update within that minor version is not concerned.
//
// Without an update in progress both releases are the same. An earlier minor version
// than that of desired is no retarget.
func measureOf(by rule, desired semver.Version, requested update.Update) measure {
	m := measure{
		update: update.Update{From: desired, To: requested.To}, completed: requested.From, desired: desired,
		within: update.Line(desired), effect: blocks,
	}
	switch {
	case m.update.LeavesMinor():
		return m
	case !requested.LeavesMinor():
		m.effect = none
		return m
	}
	m.update = requested
	switch allowed, certain := cvo.AllowsRetarget(desired); {
	case update.Line(desired) != update.Line(requested.To):
		m.within = update.Line(requested.From)
	case by == retargetFree || (allowed && certain):
		m.effect = warns
	case !certain:
		m.effect = uncertain
	default:
		m.within = update.Line(requested.From)
	}
	return m
}

// measured is the Run of a check that blocks only updates that leave a minor version,
// by the measure of its rule. Without a ClusterVersion, or with a version that is not
// SemVer, no update is taken to be in progress; nor for an update from a later release.
func measured(
	by rule, judge func(context.Context, check.Subject, measure) ([]finding.Finding, error),
) func(context.Context, check.Subject) ([]finding.Finding, error) {
	return func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		desired := s.Update.From
		version, unread := s.ClusterVersion(ctx)
		if unread == nil && !s.Later {
			if parsed, err := semver.Parse(version.Status.Desired.Version); err == nil {
				desired = parsed
			}
		}
		m := measureOf(by, desired, s.Update)
		if m.effect == none {
			return []finding.Finding{m.notConcerned()}, nil
		}
		findings, err := judge(ctx, s, m)
		findings = m.apply(findings)
		if err != nil || unread == nil || apierrors.IsNotFound(unread) || onlySkipped(findings) {
			return findings, err
		}
		return withoutPasses(findings), unread
	}
}

// notConcerned is the result for an update that does not leave a minor version.
func (m measure) notConcerned() finding.Finding {
	return finding.Skipped(check.ReasonNotConcerned, "does not apply to the update from %s to %s (%s)", m.update.From, m.update.To, m.update.Kind())
}

// apply changes findings that would block to the effect of the gate. Their reasons
// stay, and so do findings that are bypassed.
func (m measure) apply(findings []finding.Finding) []finding.Finding {
	for i, f := range findings {
		switch {
		case f.Bypass != nil || !f.Blocks:
		case m.effect == warns:
			findings[i] = changed(f, preflight.Warn, "This does not block the retarget of the update in progress to %s, but updates that leave %s.", m.update.To, m.within)
		case m.effect == uncertain:
			findings[i] = changed(f, preflight.Unknown, "Some releases of the CVO of %s refuse the retarget of the update in progress to %s, others do not.", m.within, m.update.To)
		}
	}
	return findings
}

// changed is the finding with another outcome, and a note after its message.
func changed(f finding.Finding, outcome preflight.Outcome, format string, args ...any) finding.Finding {
	noted := finding.New(outcome, finding.Reason(f.Reason), "%s\n%s", f.Message, fmt.Sprintf(format, args...))
	f.Outcome, f.Message, f.Blocks = noted.Outcome, noted.Message, noted.Blocks
	return f
}

func onlySkipped(findings []finding.Finding) bool {
	return !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Outcome != preflight.Skipped })
}

// withoutPasses are the findings that hold beside an error.
func withoutPasses(findings []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(findings, func(f finding.Finding) bool { return f.Outcome == preflight.Pass })
}
