package drain

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// operate does what the operators of the cluster do: they create their pods, and remove their finalizers.
func (t *Trial) operate(ctx context.Context) error {
	exist := map[string]bool{}
	found := t.read()
	for i := range found.Pods {
		exist[found.Pods[i].Name] = true
	}
	for i := range t.Created.Operated {
		pod := &t.Created.Operated[i]
		if exist[pod.Name] || pod.Spec.NodeName != "" && !takes(&found, pod.Spec.NodeName) {
			continue
		}
		_, err := t.Clients.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		switch {
		case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsForbidden(err): // the latter by a limit
		case apierrors.IsConflict(err): // about the use of a quota, with another pod: the operator tries again
		case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "priority"):
		default:
			return err
		}
	}
	return t.release(ctx, lab.Removed)
}

// takes reports whether a node is ready and takes pods.
func takes(found *lab.Cluster, node string) bool {
	for i := range found.Nodes {
		if found.Nodes[i].Name == node {
			return ready(&found.Nodes[i]) && !found.Nodes[i].Spec.Unschedulable
		}
	}
	return false
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
