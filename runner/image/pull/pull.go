// Package pull answers: can the nodes pull these images?
//
// Each schedulable, ready node runs one Job with a container for each image. The
// command of the containers does not exist, so no program of an image is started; a
// container that fails to start shows that the node has its image. No image is pulled
// onto a node that is short of disk space.
//
// The Jobs are built, validated and labeled like the Jobs of a release's checks, and are
// deleted by the cleanup of the run.
package pull

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

// Pull starts a Job on each node that pulls the images, which are pull specs by name
// of component, and waits for the results or the end of ctx. bytes is the compressed
// size of the images. It returns findings about disk space and about the images: one
// for each cause, with its nodes. The error comes from List.
func (n Nodes) Pull(ctx context.Context, images map[string]string, bytes int64) ([]finding.Finding, error) {
	nodes, err := n.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the nodes that pull images: %w", err)
	}
	eligible, findings := eligibleNodes(nodes)
	usable, diskFindings := n.checkDisks(ctx, eligible, bytes)
	findings = append(findings, diskFindings...)
	switch {
	case len(images) == 0:
		return append(findings, finding.Skipped(gap.Proven("the manifests of the release"), reasonNothingToPull, "there are no images to pull: the release has no check that runs").
			Named(Name)), nil
	case len(usable) == 0:
		return append(findings, finding.Unknown(reasonNoNode, "no node is ready, schedulable and has free disk space, so no image was pulled").
			Named(Name).
			Do(finding.Read("oc get nodes"))), nil
	}
	return append(findings, findingsOf(n.pullAll(ctx, usable, images), images)...), nil
}

// eligibleNodes returns the nodes that are ready and schedulable, and findings about
// the others. Windows nodes are ignored, since no release has images for them.
func eligibleNodes(nodes []corev1.Node) ([]corev1.Node, []finding.Finding) {
	var eligible []corev1.Node
	var cordoned, notReady []string
	for i := range nodes {
		node := &nodes[i]
		switch {
		case node.Status.NodeInfo.OperatingSystem == "windows":
		case node.Spec.Unschedulable:
			cordoned = append(cordoned, node.Name)
		case !hasCondition(node, corev1.NodeReady):
			notReady = append(notReady, node.Name)
		default:
			eligible = append(eligible, *node)
		}
	}
	var findings []finding.Finding
	if len(cordoned) > 0 {
		findings = append(findings, skipped(reasonNodeCordoned, "no image was pulled onto cordoned nodes", cordoned))
	}
	if len(notReady) > 0 {
		findings = append(findings, skipped(reasonNodeNotReady, "no image was pulled onto nodes that are not ready", notReady))
	}
	return eligible, findings
}

func skipped(reason finding.Reason, message string, nodes []string) finding.Finding {
	return finding.Skipped(gap.Proven("the conditions of the nodes"), reason, "%s: %s", message, words.List(nodes, mostNames)).
		Named(Name).
		About(objects(nodes)...)
}

func (n Nodes) pullAll(ctx context.Context, nodes []string, images map[string]string) []attempt {
	attempts := make([]attempt, len(nodes))
	var group errgroup.Group
	group.SetLimit(max(1, n.Parallelism))
	for i, node := range nodes {
		group.Go(func() error {
			attempts[i] = attempt{node: node, Result: n.pullOnto(ctx, n.draft(node, images))}
			return nil
		})
	}
	_ = group.Wait() // the results have the errors
	return attempts
}
