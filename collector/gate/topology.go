package gate

import (
	"context"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// withoutPools is the result of a check of MachineConfigPools on a cluster whose
// nodes they do not update; it is nil for other clusters.
func withoutPools(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, err
	}
	switch topology {
	case snapshot.HyperShift:
		return []finding.Finding{finding.Skipped(check.ReasonHyperShift,
			"the control plane of this cluster is hosted; NodePools of the hosting cluster update its nodes by their own rules")}, nil
	case snapshot.Kubernetes:
		return []finding.Finding{check.PlainKubernetes("MachineConfigPools")}, nil
	case snapshot.SelfManaged:
	}
	return nil, nil
}
