package gate

import (
	"context"
	"fmt"

	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// noPools says why a check of what the machine-config-operator updates makes no
// sense on a cluster; it is nil where it does.
func noPools(ctx context.Context, cluster *snapshot.Cluster) ([]preflight.Finding, error) {
	topology, err := cluster.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
	}
	switch topology {
	case snapshot.HyperShift:
		return []preflight.Finding{{
			Outcome: preflight.Skipped, Reason: "HyperShift",
			Message: "the control plane of this cluster is hosted; NodePools of the hosting cluster update its nodes, by rules of their own",
		}}, nil
	case snapshot.Kubernetes:
		return []preflight.Finding{plainKubernetes()}, nil
	case snapshot.SelfManaged:
	}
	return nil, nil
}

func plainKubernetes() preflight.Finding {
	return preflight.Finding{
		Outcome: preflight.Skipped, Reason: "PlainKubernetes",
		Message: "the cluster has no Infrastructure \"cluster\", so it is not OpenShift, and OpenShift's operators do not look after it",
	}
}

// apiMissing is the answer where the API server does not serve what every
// OpenShift cluster has.
func apiMissing(kind, group string) []preflight.Finding {
	return []preflight.Finding{{
		Outcome: preflight.Unknown, Reason: "APIMissing",
		Message:     fmt.Sprintf("the API server does not serve %s of %s, so nobody can tell", kind, group),
		Remediation: "See what became of the API: oc api-resources --api-group=" + group + "; oc get clusteroperators",
	}}
}
