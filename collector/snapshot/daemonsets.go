package snapshot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DaemonSets are all DaemonSets, sorted by namespace and name, without the templates of
// their pods.
func (c *Cluster) DaemonSets(ctx context.Context) ([]appsv1.DaemonSet, error) {
	return once(ctx, c, "daemonSets", func(ctx context.Context) ([]appsv1.DaemonSet, error) {
		return list(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.api.Kubernetes.AppsV1().DaemonSets(corev1.NamespaceAll).List(ctx, options)
		}, func(set *appsv1.DaemonSet) { set.Spec.Template = corev1.PodTemplateSpec{} })
	})
}
