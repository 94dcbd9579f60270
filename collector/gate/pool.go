package gate

import (
	"context"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
)

var reasonPoolPaused = finding.NewReason("PoolPaused", finding.Explanation{
	Meaning: "Reported when a MachineConfigPool is paused, so that its nodes keep their kubelets.",
	Cause:   "An administrator paused the pool, for example to skip a reboot.",
	Remedy: "Unpause the pool before the release that the message names: `oc patch machineconfigpool NAME --type " +
		"merge --patch '{\"spec\":{\"paused\":false}}'`.",
})

// waitForPool is a command that ends when a pool is up to date.
const waitForPool = "oc wait machineconfigpool %s --for condition=Updated --timeout=-1s"

// withoutPools is the result of a check of MachineConfigPools on a cluster whose
// nodes they do not update; it is nil for other clusters.
func withoutPools(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, err
	}
	switch topology {
	case snapshot.HyperShift:
		return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonHyperShift,
			"the control plane of this cluster is hosted; NodePools of the hosting cluster update its nodes by their own rules")}, nil
	case snapshot.Kubernetes:
		return []finding.Finding{check.PlainKubernetes("MachineConfigPools")}, nil
	case snapshot.SelfManaged:
	}
	return nil, nil
}

func poolObject(name string) finding.Object {
	return finding.Object{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: name}
}
