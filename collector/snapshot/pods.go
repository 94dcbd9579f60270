package snapshot

import (
	"context"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/snapshot/field"
)

// maxPods bounds the pods that are listed: three times as many as Kubernetes supports.
const maxPods = 500_000

// Pods are all pods, sorted by namespace and name, with the fields on which their eviction and
// their placement depend ([podRules]), and the volumes that are bound to a place or to the host.
// Pods of a controller share what they have in common.
func (c *Cluster) Pods(ctx context.Context) ([]corev1.Pod, error) {
	return once(ctx, c, "pods", func(ctx context.Context) ([]corev1.Pod, error) {
		r := &reader[corev1.Pod]{cluster: c, resource: corev1.SchemeGroupVersion.WithResource("pods"), rules: podRules(), most: maxPods}
		r.keep = func(pod *corev1.Pod) { pod.Spec.Volumes = bound(pod.Spec.Volumes) }
		return r.all(ctx)
	})
}

// bound are the volumes without those that have files of the API server or of the pod itself, which any node has.
func bound(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		if of := &volumes[i]; of.ConfigMap == nil && of.Secret == nil && of.Projected == nil && of.DownwardAPI == nil && of.EmptyDir == nil {
			kept = append(kept, *of)
		}
	}
	return kept
}

var podRules = sync.OnceValue(func() field.Rules { //nolint:gochecknoglobals // they are derived once
	pod := reflect.TypeFor[corev1.Pod]()
	of := allBut[corev1.Pod](
		"metadata.annotations["+corev1.MirrorPodAnnotationKey+"]", "metadata.generateName", "metadata.resourceVersion", "metadata.uid",
		"spec.ephemeralContainers", "spec.hostAliases", "spec.imagePullSecrets", "spec.dnsConfig", "spec.readinessGates",
		"status.conditions.message", "status.conditions.lastProbeTime", "status.conditions.lastTransitionTime", "status.conditions.observedGeneration",
		"status.message", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "status.observedGeneration",
		"status.containerStatuses", "status.initContainerStatuses", "status.ephemeralContainerStatuses", "status.resourceClaimStatuses",
	)
	dropContent(of, pod, "spec")
	of.Own(
		pod, "metadata.name", "metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.finalizers",
		"spec.nodeName", "spec.hostname", "spec.affinity", "spec.volumes", "status.startTime", "status.nominatedNodeName",
	)
	return of
})

// dropContent drops what the containers of a pod run, and the content of its volumes, given the path of its spec.
func dropContent(from field.Rules, of reflect.Type, spec string) {
	for _, containers := range []string{"containers.", "initContainers."} {
		for _, name := range []string{
			"image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom", "volumeMounts", "volumeDevices",
			"livenessProbe", "readinessProbe", "lifecycle", "terminationMessagePath", "terminationMessagePolicy",
		} {
			from.Drop(of, spec+"."+containers+name)
		}
	}
	for _, items := range []string{"configMap.items", "secret.items", "projected.sources", "downwardAPI.items"} {
		from.Drop(of, spec+".volumes."+items)
	}
}
