package runner

import (
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// report folds everything that was collected into the report of the run.
func (s *session) report(collection collector.Collection, phase string) report.Report {
	expected := verdict.Expectation{
		Checks: collection.Expected, Reported: collection.Expected - len(collection.Missing), Missing: collection.Missing,
	}
	decided, findings := verdict.Fold(collection.Findings, expected, s.policy())
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Run: report.Run{
			ID: s.id, StartTime: s.start.Format(time.RFC3339), CompletionTime: time.Now().UTC().Format(time.RFC3339),
			Phase: phase, ToolVersion: s.config.ToolVersion,
		},
		Cluster:  s.cluster,
		Target:   s.reportedTarget(),
		Verdict:  decided,
		Expected: expected,
		CVO:      s.cvo(findings),
		Findings: findings,
		Created:  s.created(),
	}
}

func (s *session) policy() verdict.Policy {
	policy := verdict.Policy{Accepted: map[string]string{}, Force: s.config.Force}
	for _, name := range s.config.Accept {
		policy.Accepted[name] = "--accept"
	}
	return policy
}

func (s *session) reportedTarget() report.Target {
	target := report.Target{Version: s.target.version, Image: s.target.image, Signers: []string{}}
	if s.proof != nil && s.proof.Verified() {
		target.Verified, target.Signers = true, s.proof.Signers()
	}
	if asked, err := update.Parse(s.cluster.Version, s.target.version); err == nil {
		target.UpdateKind = string(asked.Kind())
	}
	return target
}

// cvo says what the cluster-version operator would do with the same request, as
// far as this run looked. CVO has preconditions that are not looked at here, so
// it is never said to accept.
func (s *session) cvo(findings []preflight.Finding) report.CVO {
	for _, finding := range findings {
		if finding.Outcome != preflight.Fail || !verdict.Open(finding) {
			continue
		}
		switch finding.Source {
		case preflight.SourceSignature:
			if refusal, refuses := s.refusedByCVO(finding); refuses {
				return refusal
			}
		case preflight.SourceGate:
			return report.CVO{Accepts: new(false), Reason: "PreconditionChecks", Message: finding.Name + ": " + finding.Message}
		case preflight.SourcePayload, preflight.SourceImage, preflight.SourceJob, preflight.SourceRisk, preflight.SourceHealth:
			// CVO does not know of these.
		}
	}
	return report.CVO{Reason: "NotEvaluated", Message: "CVO has preconditions that this run did not look at"}
}

// refusedByCVO is what CVO makes of a signature that is refused here; it is
// laxer in places, see the documentation of package signature.
func (s *session) refusedByCVO(finding preflight.Finding) (report.CVO, bool) {
	switch {
	case finding.Name == releasePolicy:
		// The node refuses the pod in which CVO unpacks the release.
		return report.CVO{Accepts: new(false), Reason: "RetrievePayload", Message: "Unable to download and prepare the update: " + finding.Message}, true
	case finding.Name == imagesPolicy:
		return report.CVO{}, false // CVO does not know of it
	case s.acceptedByCVO == nil:
		return report.CVO{Reason: "NotEvaluated", Message: "it is not known what CVO makes of the signatures: " + finding.Message}, true
	case *s.acceptedByCVO:
		return report.CVO{}, false
	}
	return report.CVO{Accepts: new(false), Reason: "RetrievePayload", Message: "The update cannot be verified: " + finding.Message}, true
}
