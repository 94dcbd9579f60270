package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/fingerprint"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// conclude is the last stage: it folds everything that was collected into the
// report.
func (e execution) conclude(ctx context.Context, collected collection) report.Report {
	decided := e.judge(collected.Collection, collected.phase, e.cluster.Now())
	decided.Run.ID, decided.Run.StartTime, decided.Run.ChecksFrom = e.id, timestamp(e.started), e.reused.id
	decided.Created, decided.Duration = e.created(), e.duration(ctx, e.target.Version)
	if collected.phase == report.PhaseComplete {
		decided.Verdict.ValidUntil = timestamp(e.validUntil(decided.Verdict.Accepted))
	}
	return decided
}

// judge folds findings into a report, without what belongs to a run.
func (m manifests) judge(collected collector.Collection, phase string, now time.Time) report.Report {
	policy := m.policy(m.target.Version)
	expected := expectation(collected)
	decided, findings := verdict.Fold(collected.Findings, expected, policy)
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, AskedAgain: m.askedAgain(),
		Run:      report.Run{StartTime: timestamp(m.start), CompletionTime: timestamp(now), Phase: phase, ToolVersion: m.options.ToolVersion},
		Cluster:  m.about,
		Target:   m.reportedTarget(),
		Path:     m.hop.path(m.target.Version),
		Verdict:  decided,
		Expected: expected,
		CVO:      m.askCVO(policy, findings),
		Findings: findings,
		Created:  []finding.Object{},
	}
}

func expectation(collected collector.Collection) verdict.Expectation {
	return verdict.Expectation{
		Checks: collected.Expected, Reported: collected.Expected - len(collected.Missing), Missing: collected.Missing,
	}
}

func (m manifests) reportedTarget() report.Target {
	target := report.Target{Version: m.target.Version, Image: m.target.Image, Signers: []string{}, UpdateKind: m.kind(m.target.Version)}
	if signers := m.proof.signers(); len(signers) > 0 {
		target.Verified, target.Signers = true, signers
	}
	return target
}

// validUntil is when a verdict that is made now ends to hold, unless the cluster
// changes before: reused results may be older, and an acceptance may expire.
func (e execution) validUntil(accepted []string) time.Time {
	until := e.cluster.Now().Add(fingerprint.MaxAge)
	if e.reused.id != "" {
		until = e.reused.until
	}
	if expiry := e.accounts(e.target.Version).Until(accepted); !expiry.IsZero() && expiry.Before(until) {
		until = expiry
	}
	return until
}

// askCVO is what CVO would do with the same request: with the image where one was
// named, otherwise with the version alone, as "oc adm upgrade --to" requests it.
func (m manifests) askCVO(policy verdict.Policy, findings []finding.Finding) report.CVO {
	if m.hop != nil {
		return report.CVO{Reason: "NotEvaluated", Message: fmt.Sprintf("CVO evaluates this update when the cluster runs %s", m.from())}
	}
	if refusal, refused := refusedByNodes(findings); refused {
		return refusal
	}
	request := cvo.Request{Version: m.target.Version, Signed: m.proof.acceptedByCVO(), PayloadVersion: m.contents.version()}
	if m.requested.Image != "" {
		request.Version, request.Image = "", m.target.Image
	}
	return m.predictCVO(request, policy, findings)
}

// predictCVO completes a request with what the administrator decided. CVO's
// precondition reads the condition Upgradeable, which may lag behind its causes.
func (v view) predictCVO(request cvo.Request, policy verdict.Policy, findings []finding.Finding) report.CVO {
	request.ClusterVersion, request.Force = v.version, policy.Force
	request.AcceptRisks = slices.Sorted(maps.Keys(policy.Accepted))
	prediction := cvo.Judge(request)
	if causes := upgradeableCauses(v.version, findings); len(causes) > 0 && (prediction.Accepts == nil || *prediction.Accepts) && !policy.Force {
		return report.CVO{Accepts: new(false), Reason: "PreconditionChecks", Message: "CVO refuses such an update because of " + strings.Join(causes, ", ") +
			", which the condition Upgradeable of ClusterVersion does not report yet"}
	}
	return report.CVO{Accepts: prediction.Accepts, Reason: prediction.Reason, Message: prediction.Message}
}

// upgradeableCauses are the open gates from which CVO makes its condition Upgradeable.
func upgradeableCauses(version *configv1.ClusterVersion, findings []finding.Finding) []string {
	if version == nil {
		return nil
	}
	var names []string
	for _, f := range findings {
		if f.Source == finding.SourceGate && f.Outcome == preflight.Fail && f.Open() && cvo.MakesUpgradeable(version.Status.Desired.Version, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// refusedByNodes reports whether the image policies of the cluster refuse the
// release to the pod in which CVO unpacks it. Force does not get past them.
func refusedByNodes(findings []finding.Finding) (report.CVO, bool) {
	for _, f := range findings {
		if f.Name == nameReleasePolicy && f.Outcome == preflight.Fail {
			return report.CVO{Accepts: new(false), Reason: "RetrievePayload", Message: "Unable to download and prepare the update: " + f.Message}, true
		}
	}
	return report.CVO{}, false
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
