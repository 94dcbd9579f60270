package scene

import (
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Predict is what CVO would do with a request, completed with what the administrator
// decided. CVO's precondition reads the condition Upgradeable, which may lag behind its
// causes.
func (s Scene) Predict(request cvo.Request, policy verdict.Policy, findings []finding.Finding) report.CVO {
	if predicted, decides := s.Settings.Estate.Predict(request.Version); decides {
		return predicted
	}
	request.ClusterVersion, request.Force = s.Version, policy.Force
	request.AcceptRisks = slices.Sorted(maps.Keys(policy.Accepted))
	prediction := cvo.Judge(request)
	if causes := upgradeableCauses(s.Version, findings); len(causes) > 0 && (prediction.Accepts == nil || *prediction.Accepts) && !policy.Force {
		return report.CVO{Accepts: new(false), Reason: "PreconditionChecks", Message: "CVO refuses such an update because of " + strings.Join(causes, ", ") +
			", which the condition Upgradeable of ClusterVersion does not report yet"}
	}
	return report.CVO{Accepts: prediction.Accepts, Reason: prediction.Reason, Message: prediction.Message}
}

var _ = catalog.Reasons("The cluster-version operator (CVO) refuses the update, or has read its release: package cvo predicts it.", `
InvalidCurrentVersion | The version of the cluster is no semantic version. | Contact the support of OpenShift.
InvalidDesiredVersion | The version of the target is no semantic version. | Choose a target with a version.
LowDesiredVersion | The target is older than the release of the cluster. | Choose a newer target.
MajorVersionUpdate | The cluster cannot be updated to another major version from its release. | Update to the last minor version of this major version
	first. List the updates of the path. | oc preflight plan
MultipleMinorVersionsUpdate | The target is more than one minor version ahead. | Update one minor version at a time. List the updates of the path. | oc preflight plan
PayloadLoaded | The release was downloaded and verified.
PreconditionChecks | A precondition of the update fails; the message names it. | Do what the finding about the precondition states.`)

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

// StartOf is the step that starts the update of the cluster to a release, of a hosted cluster that of its control
// plane; none where there is no such command.
func (s Scene) StartOf(target update.Release) []finding.Action {
	start, isHosted := s.Settings.Estate.Start(target.Image)
	if !isHosted && s.Version != nil {
		if words := cvo.Start(s.Version, target.Version, target.Image); words != nil {
			start = finding.Change("oc").Adding(words...)
		}
	}
	if start.Command == "" {
		return nil
	}
	return []finding.Action{start.Start()}
}
