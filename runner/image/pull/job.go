package pull

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// command is the path of a program that no image has.
const command = "/preflight-image-pull"

// draft is the plan for the Job of one node, which is validated against the same policy as the Jobs of a release.
func (n Nodes) draft(node string, images map[string]string) jobplan.Draft {
	return jobplan.New(n.Run.From, &payload.Release{
		Release: n.Run.Target, Images: images,
		Jobs: []payload.Job{{File: "image-references", Component: "image-pull", Job: job(node, images)}},
	})
}

// job is the Job that pulls images onto one node; it tolerates all taints. Its
// containers request minimal resources, since they do not run.
func job(node string, images map[string]string) *batchv1.Job {
	var containers []corev1.Container
	for i, component := range slices.Sorted(maps.Keys(images)) {
		containers = append(containers, corev1.Container{
			Name: fmt.Sprintf("image-%d", i), Image: images[component], ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{command},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), ReadOnlyRootFilesystem: new(true),
				Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		})
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "pull-" + node, Namespace: Namespace},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: containers, AutomountServiceAccountToken: new(false),
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
							Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
						}}}},
					}}},
				},
			},
		},
	}
}

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
