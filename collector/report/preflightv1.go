package report

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	documentation = "https://github.com/openshift/update-preflight"

	// preflightV1 is the format of openshift/enhancements#1930, which is provisional:
	// it may still change there, and then changes here.
	preflightV1 = "preflight-v1-json"
	// maxRisks is the number of risks that ClusterVersion can have (status.conditionalUpdateRisks).
	maxRisks = 500
	// maxRiskMessage bounds the text of a risk, in bytes.
	maxRiskMessage = 2 << 10
	// moreRisks names the risk in place of those beyond the limit.
	moreRisks = "PreflightMoreFindings"
)

// The values of executionStatus.
const (
	executionCompleted = "completed"
	executionFailed    = "failed"
	executionRunning   = "running"
)

type preflightResult struct {
	Format          string          `json:"format"`
	PreflightID     string          `json:"preflightID"`
	TargetVersion   string          `json:"targetVersion"`
	ExecutionStatus string          `json:"executionStatus"`
	Risks           []preflightRisk `json:"risks"`
}

// preflightRisk is one risk. Who copies it into status.conditionalUpdateRisks of
// ClusterVersion prefixes its message with "Preflight=VERSION: " there, which names their
// source (openshift/enhancements#1930).
type preflightRisk struct {
	Name          string `json:"name"`
	Message       string `json:"message"`
	URL           string `json:"url"`
	TargetVersion string `json:"targetVersion"`
}

// PreflightV1 is the report as preflight-v1-json: a risk for each name of
// findings that fail or are inconclusive, and are not bypassed, or only by force: the format
// cannot state that, and force is not the decision of who reads it. At most 500 are written;
// the last one then counts the others. A target without a semantic version is an error.
func (r Report) PreflightV1() (any, error) {
	version := r.Target.Version
	if _, err := semver.Parse(version); err != nil {
		return nil, fmt.Errorf("the target %q has no semantic version, which the format %s requires (%q): %w", r.Target.Image, preflightV1, version, err)
	}
	return preflightResult{
		Format: preflightV1, PreflightID: r.Run.StartTime + "-preflight-" + version, TargetVersion: version,
		ExecutionStatus: r.executionStatus(), Risks: risksOf(r.Findings, version),
	}, nil
}

// executionStatus is "completed" only for a verdict that holds, is not provisional, and rests
// on a result of every check.
func (r Report) executionStatus() string {
	switch {
	case r.Run.Phase == PhaseRunning:
		return executionRunning
	case r.Run.Phase == PhaseComplete && r.Holds() && !r.Verdict.Provisional && r.Expected.Checks > 0 && r.Expected.Reported >= r.Expected.Checks:
		return executionCompleted
	}
	return executionFailed
}

// risksOf are the risks of findings, in their order. Findings of one name are one risk,
// since ClusterVersion has one risk of a name.
func risksOf(findings []finding.Finding, version string) []preflightRisk {
	risks := []preflightRisk{}
	for _, f := range findings {
		forced := f.Bypass != nil && f.Bypass.By == finding.ByForce
		if !f.Open() && !forced {
			continue
		}
		risk := riskOf(f, version)
		same := slices.IndexFunc(risks, func(other preflightRisk) bool { return other.Name == risk.Name })
		if same < 0 {
			risks = append(risks, risk)
			continue
		}
		risks[same].Message = words.Lines(risks[same].Message+"; "+risk.Message, maxRiskMessage)
	}
	if len(risks) <= maxRisks {
		return risks
	}
	rest := preflightRisk{Name: moreRisks, URL: documentation, TargetVersion: version}
	rest.Message = fmt.Sprintf("%d more findings count against the update", len(risks)-maxRisks+1)
	return append(risks[:maxRisks-1], rest)
}

func riskOf(f finding.Finding, version string) preflightRisk {
	name := f.Name
	if !finding.ValidName(name) {
		name = finding.NameOf("InvalidName", name)
	}
	link := f.URL
	if parsed, err := url.Parse(link); err != nil || !parsed.IsAbs() || parsed.Host == "" {
		link = documentation
	}
	message := words.Lines(f.Message, maxRiskMessage)
	if message == "" {
		message = f.Reason
	}
	return preflightRisk{Name: name, Message: message, URL: link, TargetVersion: version}
}
