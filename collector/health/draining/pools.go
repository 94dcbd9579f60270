package draining

import (
	"slices"
	"time"

	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
)

// pools are the pools that are drained. Those of a hosted cluster are NodePools.
type pools struct {
	all []order.Pool
	// limits are the times after which the nodes of NodePools are deleted, by node.
	limits map[string]time.Duration
}

func poolsOf(all []order.Pool) pools {
	found := pools{all: all, limits: map[string]time.Duration{}}
	for i := range all {
		for _, node := range all[i].Nodes {
			if all[i].Timeout > 0 {
				found.limits[node] = all[i].Timeout
			}
		}
	}
	return found
}

// limit is after what time a node is deleted although its drain has not ended; 0 for never.
func (p pools) limit(node string) time.Duration { return p.limits[node] }

func (p pools) kind(name string) string {
	if slices.ContainsFunc(p.all, func(pool order.Pool) bool { return pool.Name == name && pool.Unordered }) {
		return "NodePool"
	}
	return "MachineConfigPool"
}

// about names the pool in a finding, with the command to look at one that is in the cluster.
func (p pools) about(name string, f finding.Finding) finding.Finding {
	if p.kind(name) == "NodePool" {
		return f.About(finding.Object{APIVersion: "hypershift.openshift.io/v1beta1", Kind: "NodePool", Name: name})
	}
	return f.About(finding.Object{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: name}).
		Do(finding.Read("oc get machineconfigpool %s", name))
}
