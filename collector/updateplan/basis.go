package updateplan

import (
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// Basis is everything that a plan is made of.
type Basis struct {
	Graph *graph.Graph
	// Sources are the names of the graphs that Graph is the union of.
	Sources      []string
	From         string
	Architecture string
	// Channel is the present channel; empty without a cluster.
	Channel string
	// Accepted are the details of the acceptances for a version, by the name of the risk.
	Accepted func(version string) map[string]string
	// Assess is whether a risk applies.
	Assess   func(graph.Risk) Assessment
	ImageSet imageset.Format

	// Cluster is the ID of the cluster; empty without one.
	Cluster string
	Rollout Rollout
	// Findings are the findings of gates, by the version that they are about.
	Findings map[string][]finding.Finding
	// Missing are parts that could not be determined, and Notices limitations of what the plan is made of.
	Missing     []string
	Notices     []string
	Now         time.Time
	ToolVersion string
}

// Rollout has the inputs of the times and reboots.
type Rollout struct {
	Model rollout.Model
	// Basis is where the numbers of the model come from.
	Basis []string
	Pools []Nodes
	// ProlongedBy names what makes the updates take longer.
	ProlongedBy []string
	// Notices are limitations that follow from the topology.
	Notices []string
}

// Nodes are the nodes of one pool beside the control plane.
type Nodes struct {
	Name            string
	Nodes, Parallel int
	Paused          bool
	// Kubelet is the minor version of the oldest kubelet.
	Kubelet uint64
}

func (b Basis) finder() *path.Finder {
	accepted := map[string]map[string]string{}
	return path.NewFinder(b.Graph, func(to graph.Node, risk graph.Risk) bool {
		if accepted[to.Version] == nil {
			accepted[to.Version] = b.Accepted(to.Version)
		}
		_, isAccepted := accepted[to.Version][risk.Name]
		return !isAccepted && b.Assess(risk).Applies != False
	})
}
