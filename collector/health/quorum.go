package health

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameEtcdQuorum = finding.NewName("EtcdQuorum",
		"The check for a highly available control plane of two nodes. It concerns every update: patch updates reboot nodes, too.")

	reasonTwoMembers = finding.NewReason("TwoControlPlaneNodes", finding.Explanation{
		Meaning: "Reported when a control plane whose topology is HighlyAvailable has two nodes.",
		Cause: "A node of the control plane was deleted or never added, for instance with useUnsupportedUnsafeNonHANonProductionUnstableEtcd in " +
			"spec.unsupportedConfigOverrides of the Etcd \"cluster\". Two members of etcd have no quorum while one of them reboots, and with it the API server " +
			"does not respond (etcd.io, FAQ: \"What is failure tolerance?\").",
		Remedy:  "Add the third node of the control plane, and wait until etcd has three members.",
		Command: "oc get nodes -l node-role.kubernetes.io/master",
	})
)

// quorate is the least number of members of etcd of which one may be down.
const quorate = 3

// EtcdQuorum is the check EtcdQuorum. Two nodes with an arbiter, or with fencing, have topologies of their own.
func EtcdQuorum() check.Check {
	return check.Check{
		Name: nameEtcdQuorum, Kind: finding.SourceHealth, NotHosted: "its etcd runs in the management cluster",
		Reads: append(check.ReadsTopology(), check.List("", "nodes")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.Kubernetes {
				return []finding.Finding{check.PlainKubernetes("a topology of the control plane")}, nil
			}
			infrastructure, err := s.Cluster.Infrastructure(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
			}
			ctx, missing := gap.Watch(ctx)
			nodes, err := s.Cluster.Nodes(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the nodes: %w", err)
			}
			f := judgeQuorum(gap.ExtentOf(ctx), infrastructure.Status.ControlPlaneTopology, nodes)
			if err := missing.Err(); f.Blocks && err != nil { // an archive may lack the third node
				return nil, err
			}
			return []finding.Finding{f}, nil
		},
	}
}

func judgeQuorum(read gap.Extent, topology configv1.TopologyMode, nodes []corev1.Node) finding.Finding {
	var members []string
	for i := range nodes {
		_, master := nodes[i].Labels["node-role.kubernetes.io/master"]
		_, controlPlane := nodes[i].Labels["node-role.kubernetes.io/control-plane"]
		if master || controlPlane {
			members = append(members, nodes[i].Name)
		}
	}
	if topology != configv1.HighlyAvailableTopologyMode || len(members) != quorate-1 {
		return finding.Pass(read, check.ReasonAsExpected, "the control plane has %s, with the topology %s", words.Count(len(members), "node"), words.External(string(topology)))
	}
	return finding.Fail(reasonTwoMembers, "the control plane has the topology HighlyAvailable and two nodes, %s: etcd has no quorum, and the API server does not respond, while one of them reboots",
		words.List(members, maxNamed)).
		Remedy("Add the third node of the control plane, and wait until etcd has three members, then update.").
		Do(finding.Read("oc get nodes -l node-role.kubernetes.io/master"), finding.Read("oc get etcds.operator.openshift.io cluster -o yaml"))
}
