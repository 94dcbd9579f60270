package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	return errors.Join(t.release(ctx, lab.Removed), t.attach(ctx, &found))
}

// attach imitates kubelets: a pod gets ready once its node has its volumes, and a node has a volume that only one node
// has once no pod on another node uses it (Multi-Attach).
func (t *Trial) attach(ctx context.Context, found *lab.Cluster) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"300ms"}}}`, lab.AnnotationReady)
	for i := range found.Pods {
		if pod := &found.Pods[i]; t.attaches(pod, found) {
			_, err := t.Clients.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// attaches reports whether a pod waits for a volume that its node can have, and remembers the node of each volume.
func (t *Trial) attaches(pod *corev1.Pod, found *lab.Cluster) bool {
	claim := t.single(pod)
	if claim == "" || pod.Spec.NodeName == "" || lab.Ended(pod) || pod.Annotations[lab.AnnotationReady] != lab.NeverReady {
		return false
	}
	nodes := map[string]bool{}
	for i := range found.Pods {
		if other := &found.Pods[i]; other.Spec.NodeName != "" && !lab.Ended(other) && t.single(other) == claim {
			nodes[other.Spec.NodeName] = true
		}
	}
	if !nodes[t.attached[claim]] {
		t.attached[claim] = pod.Spec.NodeName
	}
	return t.attached[claim] == pod.Spec.NodeName
}

// single is the claim of a pod for a volume that one node has at a time; empty for none.
func (t *Trial) single(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		of := pod.Spec.Volumes[i].PersistentVolumeClaim
		if of == nil {
			continue
		}
		for j := range t.Created.Volumes {
			volume := &t.Created.Volumes[j]
			if volume.Spec.CSI != nil && volume.Spec.ClaimRef.Name == of.ClaimName && volume.Spec.AccessModes[0] == corev1.ReadWriteOnce {
				return of.ClaimName
			}
		}
	}
	return ""
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
