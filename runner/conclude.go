package runner

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// report folds everything that was collected into the report of the run.
func (s *session) report(collection collector.Collection, phase string) report.Report {
	policy := verdict.Policy{Accepted: s.account(s.target.version).Accepted(), Force: s.config.Force}
	expected := expectation(collection)
	decided, findings := verdict.Fold(collection.Findings, expected, policy)
	if phase == report.PhaseComplete {
		decided.ValidUntil = s.validUntil(decided.Accepted)
	}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: s.id, StartTime: s.start.Format(time.RFC3339), CompletionTime: s.now().Format(time.RFC3339),
			Phase: phase, ToolVersion: s.config.ToolVersion, ChecksFrom: s.checksFrom(),
		},
		Cluster:  s.cluster,
		Target:   s.reportedTarget(),
		Verdict:  decided,
		Expected: expected,
		CVO:      s.cvo(policy, findings),
		Findings: findings,
		Created:  s.created(),
	}
}

// refold judges the findings of somebody else's run by what this user accepts.
func (s *session) refold(told report.Report) report.Report {
	policy := verdict.Policy{Accepted: s.account(told.Target.Version).Accepted(), Force: s.config.Force}
	findings := slices.Clone(told.Findings)
	for i := range findings {
		if bypass := findings[i].Bypass; bypass != nil && bypass.By != finding.ByAdminAck {
			findings[i].Bypass = nil
		}
	}
	until := told.Verdict.ValidUntil
	told.Verdict, told.Findings = verdict.Fold(findings, told.Expected, policy)
	told.Verdict.ValidUntil = until
	return told
}

// review warns of acceptances that do not do what may be expected of them.
func (s *session) review(findings []finding.Finding) []finding.Finding {
	return acceptance.Review(acceptance.Asked{
		Account: s.account(s.target.version), Findings: findings, NoJobs: s.payload == nil,
	})
}

func expectation(collection collector.Collection) verdict.Expectation {
	return verdict.Expectation{
		Checks: collection.Expected, Reported: collection.Expected - len(collection.Missing), Missing: collection.Missing,
	}
}

func (s *session) reportedTarget() report.Target {
	target := report.Target{Version: s.target.version, Image: s.target.image, Signers: []string{}, UpdateKind: s.kind(s.target.version)}
	if s.proof != nil && s.proof.Verified() {
		target.Verified, target.Signers = true, s.proof.Signers()
	}
	return target
}

// kind is empty for a version that cannot be compared.
func (l *look) kind(version string) string {
	asked, err := update.Parse(l.cluster.Version, version)
	if err != nil {
		return ""
	}
	return string(asked.Kind())
}

// cvo is what CVO would do with the same request: with the image where one was
// named, and otherwise with the version alone, as "oc adm upgrade --to" asks.
func (s *session) cvo(policy verdict.Policy, findings []finding.Finding) report.CVO {
	if refusal, refused := refusedByNodes(findings); refused {
		return refusal
	}
	request := cvo.Request{Version: s.target.version, Signed: s.acceptedByCVO}
	if s.config.Target.Image != "" {
		request.Version, request.Image = "", s.target.image
	}
	if s.payload != nil {
		request.PayloadVersion = s.payload.Version
	}
	return s.ask(request, policy, findings)
}

// ask completes a request to CVO with what the administrator decided. CVO's
// precondition reads the condition Upgradeable; where that does not tell yet of
// what shuts it, CVO is about to.
func (l *look) ask(request cvo.Request, policy verdict.Policy, findings []finding.Finding) report.CVO {
	request.ClusterVersion, request.Force = l.clusterVersion, policy.Force
	request.AcceptRisks = slices.Sorted(maps.Keys(policy.Accepted))
	answer := cvo.Judge(request)
	if shut := shutters(findings); len(shut) > 0 && (answer.Accepts == nil || *answer.Accepts) && !policy.Force {
		return report.CVO{Accepts: new(false), Reason: "PreconditionChecks", Message: "the condition Upgradeable of ClusterVersion does not tell of it yet, but CVO takes no such update because of " +
			strings.Join(shut, ", ")}
	}
	return report.CVO{Accepts: answer.Accepts, Reason: answer.Reason, Message: answer.Message}
}

// shutters are the gates that count and of which CVO makes its condition
// Upgradeable (cluster-version-operator pkg/risk).
func shutters(findings []finding.Finding) []string {
	var names []string
	for _, f := range findings {
		if f.Source == finding.SourceGate && f.Outcome == preflight.Fail && f.Open() && makesUpgradeable(f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

func makesUpgradeable(name string) bool {
	switch name {
	case "AdminAckUnknown", "ClusterVersionOverrides", "ClusterVersionUpdating", "ResourceDeletionInProgress":
		return true
	}
	return strings.HasPrefix(name, "AdminAck-") || strings.HasPrefix(name, "ClusterOperatorUpgradeable-")
}

// refusedByNodes says whether the cluster's image policies keep the release from
// the pod in which CVO unpacks it. No force gets past them.
func refusedByNodes(findings []finding.Finding) (report.CVO, bool) {
	for _, f := range findings {
		if f.Name == releasePolicy && f.Outcome == preflight.Fail {
			return report.CVO{Accepts: new(false), Reason: "RetrievePayload", Message: "Unable to download and prepare the update: " + f.Message}, true
		}
	}
	return report.CVO{}, false
}
