package gate

import (
	"context"
	"fmt"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
)

const ReasonHyperShift finding.Reason = "HyperShift"

// noPools says why a check of what the machine-config-operator updates makes no
// sense on a cluster; it is nil where it does.
func noPools(ctx context.Context, cluster *snapshot.Cluster) ([]finding.Finding, error) {
	topology, err := cluster.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
	}
	switch topology {
	case snapshot.HyperShift:
		return []finding.Finding{finding.Skipped(ReasonHyperShift,
			"the control plane of this cluster is hosted; NodePools of the hosting cluster update its nodes, by rules of their own")}, nil
	case snapshot.Kubernetes:
		return []finding.Finding{plainKubernetes()}, nil
	case snapshot.SelfManaged:
	}
	return nil, nil
}

func plainKubernetes() finding.Finding {
	return finding.Skipped(ReasonPlainKubernetes,
		"the cluster has no Infrastructure \"cluster\", so it is not OpenShift, and OpenShift's operators do not look after it")
}

// apiMissing is the answer where the API server does not serve what every
// OpenShift cluster has.
func apiMissing(kind, group string) []finding.Finding {
	return []finding.Finding{finding.Unknown(ReasonAPIMissing, "the API server does not serve %s of %s, so nobody can tell", kind, group).
		Remedy("See what became of the API: oc api-resources --api-group=%s; oc get clusteroperators", group)}
}
