package pull

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// Name names the findings about pulls by nodes.
var Name = finding.NewName("ImagePull", "The findings about the pulls of images by the nodes.")

// Namespace is the namespace of the Jobs: that of the cluster-version operator, which
// pulls the release image there in the same way.
const Namespace = "openshift-cluster-version"

// mostNames bounds the nodes or images in a message.
const mostNames = 5

// Starter creates a Job and returns its UID. It is implemented by launch.Launcher.
type Starter interface {
	Start(ctx context.Context, check jobplan.Check) error
	UID(check jobplan.Check) types.UID
}

// Nodes are the nodes of a cluster.
type Nodes struct {
	Client kubernetes.Interface
	List   func(context.Context) ([]corev1.Node, error)
	Start  Starter
	Run    jobplan.Run
	// Parallelism bounds the nodes that pull concurrently.
	Parallelism int
}

func hasCondition(node *corev1.Node, condition corev1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(each corev1.NodeCondition) bool {
		return each.Type == condition && each.Status == corev1.ConditionTrue
	})
}

func objects(nodes []string) []preflight.Object {
	var references []preflight.Object
	for _, node := range nodes[:min(len(nodes), mostNames)] {
		references = append(references, preflight.Object{APIVersion: "v1", Kind: "Node", Name: node})
	}
	return references
}
