package report

import (
	"io"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
)

const (
	// TargetsKind is the kind of Targets.
	TargetsKind = "PreflightTargets"
	// AnyTarget stands for the version of the target in the texts of findings
	// that are about more than one.
	AnyTarget = "TARGET"
)

// Targets is what gates, risks and health say of all updates that the cluster
// knows. Neither the signatures nor the checks of the releases are looked at.
type Targets struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the cluster was looked at, RFC 3339 in UTC.
	Time        string  `json:"time"`
	ToolVersion string  `json:"toolVersion"`
	Cluster     Cluster `json:"cluster"`
	// Channel is spec.channel of ClusterVersion.
	Channel string `json:"channel"`
	// Targets are the newest first; versions that are not SemVer come last.
	Targets []Candidate `json:"targets"`
	// Findings are sorted as in a Report. Each is there once, whatever number
	// of targets it is about: in the texts AnyTarget stands for each of them.
	Findings []TargetFinding `json:"findings"`
}

// Candidate is one update, and the verdict about it.
type Candidate struct {
	Version string `json:"version"`
	Image   string `json:"image"`
	// URL leads to what the release says of itself.
	URL string `json:"url,omitempty"`
	// UpdateKind is as in Target, and empty where the version is not SemVer.
	UpdateKind string `json:"updateKind,omitempty"`
	// Available and Conditional say in which list of ClusterVersion's status it
	// is: CVO has a conditional update that it recommends in both.
	Available   bool `json:"available"`
	Conditional bool `json:"conditional"`
	// Recommended is what CVO says: True, False or Unknown.
	Recommended string              `json:"recommended"`
	Verdict     verdict.Verdict     `json:"verdict"`
	Expected    verdict.Expectation `json:"expected"`
	CVO         CVO                 `json:"cvo"`
}

// TargetFinding is one finding that is the same for some targets.
type TargetFinding struct {
	finding.Finding

	// Targets are the versions that it is about; none where it is about the
	// listing itself.
	Targets []string `json:"targets"`
}

// WriteTargets renders the targets in one of the Formats. As text, one target
// alone is told as a Report is, with every finding and remedy.
func WriteTargets(w io.Writer, format string, targets Targets) error {
	if err := CheckFormat(format); err != nil {
		return err
	}
	if format == formatText {
		return writeTargetsText(w, targets)
	}
	return WriteDocument(w, format, targets)
}
