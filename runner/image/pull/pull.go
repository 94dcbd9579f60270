// Package pull answers: do the nodes get images when they try?
//
// One Job for each node that takes pods has a container for each image. What the
// container would do does not matter: its command does not exist. That the node
// comes as far as to say so shows that it has the image. Nothing is pulled onto
// a node that is short of disk space.
//
// The Jobs are made and labeled like those of a release's checks, and go with
// them when the run is cleaned up.
package pull

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch"
)

const (
	ReasonNothingToPull finding.Reason = "NothingToPull"
	ReasonNoNode        finding.Reason = "NoNode"
)

// Name is the name of the findings, but for those about disk space.
const Name = "ImagePull"

// Namespace is where the Jobs are: that of the cluster-version operator, which
// pulls the release image there in the same way.
const Namespace = "openshift-cluster-version"

// Starter creates a Job. It is launch.Launcher.
type Starter interface {
	Start(ctx context.Context, check launch.Check) error
}

// Nodes are those of a cluster.
type Nodes struct {
	Client kubernetes.Interface
	// List reads them.
	List  func(context.Context) ([]corev1.Node, error)
	Start Starter
	// Run is what the Jobs belong to.
	Run launch.Run
	// Parallelism bounds the nodes that pull at one time.
	Parallelism int
}

// Pull has the nodes pull images, given by the name of a component, which take
// so many bytes compressed. It returns findings about disk space and about the
// images: one for each cause, with the nodes that have it.
func (n Nodes) Pull(ctx context.Context, images map[string]string, bytes int64) ([]finding.Finding, error) {
	nodes, err := n.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the nodes that would pull images: %w", err)
	}
	ready, findings := sortOut(nodes)
	room, space := n.lookAtDisks(ctx, ready, bytes)
	findings = append(findings, space...)
	switch {
	case len(images) == 0:
		return append(findings, finding.Skipped(ReasonNothingToPull, "there is no image to pull: the release ships no check that runs").
			Named(Name)), nil
	case len(room) == 0:
		return append(findings, finding.Unknown(ReasonNoNode, "there is no node that images could be pulled onto").
			Named(Name).
			Remedy("Have nodes that are ready, take pods and have room on their disks: oc get nodes")), nil
	}
	return append(findings, judge(n.pullAll(ctx, room, images), images)...), nil
}

// sortOut returns the nodes that take pods, and says why the others
// are left alone.
func sortOut(nodes []corev1.Node) ([]corev1.Node, []finding.Finding) {
	var ready []corev1.Node
	var cordoned, notReady []string
	for i := range nodes {
		node := &nodes[i]
		switch {
		case node.Status.NodeInfo.OperatingSystem == "windows":
			// The release has no image for it.
		case node.Spec.Unschedulable:
			cordoned = append(cordoned, node.Name)
		case !has(node, corev1.NodeReady):
			notReady = append(notReady, node.Name)
		default:
			ready = append(ready, *node)
		}
	}
	var findings []finding.Finding
	if len(cordoned) > 0 {
		findings = append(findings, skipped("NodeCordoned", fmt.Sprintf("nothing was pulled onto %s, which are cordoned", some(cordoned)), cordoned))
	}
	if len(notReady) > 0 {
		findings = append(findings, skipped("NodeNotReady", fmt.Sprintf("nothing was pulled onto %s, which are not ready", some(notReady)), notReady))
	}
	return ready, findings
}

func skipped(reason, message string, nodes []string) finding.Finding {
	return finding.Skipped(finding.Reason(reason), "%s", message).
		Named(Name).
		About(objects(nodes)...)
}

// has says whether a condition is true.
func has(node *corev1.Node, condition corev1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(each corev1.NodeCondition) bool {
		return each.Type == condition && each.Status == corev1.ConditionTrue
	})
}

// pullAll has all nodes pull.
func (n Nodes) pullAll(ctx context.Context, nodes []string, images map[string]string) []attempt {
	attempts := make([]attempt, len(nodes))
	var group errgroup.Group
	group.SetLimit(max(1, n.Parallelism))
	for i, node := range nodes {
		group.Go(func() error {
			draft := n.draft(node, images)
			if len(draft.Checks) == 0 {
				attempts[i] = attempt{node: node, trouble: draft.Refused[0].Message, remedy: draft.Refused[0].Remediation}
				return nil
			}
			attempts[i] = n.pullOnto(ctx, node, draft.Bind(n.Run).Checks[0])
			return nil
		})
	}
	_ = group.Wait() // what went wrong is in the attempts
	return attempts
}
