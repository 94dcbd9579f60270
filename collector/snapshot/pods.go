package snapshot

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/snapshot/field"
	"github.com/openshift/update-preflight/collector/words"
)

// maxPods bounds the pods that are listed: three times as many as Kubernetes supports.
const maxPods = 500_000

// Pods returns all pods, sorted by namespace and name, with the fields on which their eviction and their placement
// depend ([podRules]), and the volumes that are bound to a place or to the host. The status contains the
// containers and init containers that wait or have restarted: the reason for waiting, the restarts, and the last
// termination. Pods of a controller share equal parts. Of annotations, only the mark of a mirror pod is kept; pods
// in the namespaces of the cluster itself also keep the annotations about SCCs, and the keys of annotations that
// no component of the cluster sets ([Foreign]).
func (c *Cluster) Pods(ctx context.Context) ([]corev1.Pod, error) {
	return once(ctx, c, "pods", func(ctx context.Context) ([]corev1.Pod, error) {
		r := &reader[corev1.Pod]{
			cluster: c, resource: corev1.SchemeGroupVersion.WithResource("pods"), rules: podRules(),
			platform: platformPodRules(), most: maxPods,
		}
		known := map[string]string{}
		r.keep = func(pod *corev1.Pod) {
			pod.Annotations = marks(pod.Annotations, known)
			pod.Spec.Volumes = bound(pod.Spec.Volumes)
			pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = disturbed(pod.Status.ContainerStatuses),
				disturbed(pod.Status.InitContainerStatuses)
		}
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

// disturbed are the states of the containers that wait or have restarted. Most pods have none, and no memory is kept for them.
func disturbed(containers []corev1.ContainerStatus) []corev1.ContainerStatus {
	waits := func(of *corev1.ContainerStatus) bool { return of.State.Waiting != nil && of.State.Waiting.Reason != "" }
	count := 0
	for i := range containers {
		if containers[i].RestartCount > 0 || waits(&containers[i]) {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	kept := make([]corev1.ContainerStatus, 0, count)
	for i := range containers {
		of := &containers[i]
		if of.RestartCount == 0 && !waits(of) {
			continue
		}
		state := corev1.ContainerStatus{RestartCount: of.RestartCount, State: corev1.ContainerState{Waiting: of.State.Waiting}}
		if of.RestartCount > 0 {
			state.LastTerminationState.Terminated = of.LastTerminationState.Terminated
		}
		kept = append(kept, state)
	}
	return kept
}

// The annotations about SecurityContextConstraints: the one by which a pod was admitted, and the one that it names
// (openshift/api security/v1).
const (
	AdmittedSCC = "openshift.io/scc"
	RequiredSCC = "openshift.io/required-scc"
)

// Foreign reports whether the key of a label or an annotation has a domain that is not of Kubernetes, OpenShift or the network of pods.
func Foreign(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && !slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "openshift.io", "ovn.org", "cncf.io"}, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
}

// OfCluster reports whether a namespace belongs to the cluster itself, not to a workload.
func OfCluster(namespace string) bool {
	return strings.HasPrefix(namespace, "openshift-") || strings.HasPrefix(namespace, "kube-") || namespace == "openshift"
}

// marks are the annotations that are kept: of foreign ones, only the keys. Pods share the texts that are known.
func marks(annotations, known map[string]string) map[string]string {
	var kept map[string]string
	keep := func(key, value string) {
		for _, text := range []string{key, value} {
			if _, ok := known[text]; !ok {
				known[text] = text
			}
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[known[key]] = known[value]
	}
	for key, value := range annotations {
		switch {
		case key == corev1.MirrorPodAnnotationKey:
			return map[string]string{key: value} // which no controller creates
		case key == AdmittedSCC || key == RequiredSCC:
			keep(key, value)
		case Foreign(key):
			keep(key, "")
		}
	}
	return kept
}

var podRules = sync.OnceValue(func() field.Rules { //nolint:gochecknoglobals // a constant that is computed once
	of := commonPodRules()
	of.Drop(reflect.TypeFor[corev1.Pod](), "metadata.annotations["+corev1.MirrorPodAnnotationKey+"]")
	return of
})

var platformPodRules = sync.OnceValue(func() field.Rules { //nolint:gochecknoglobals // a constant that is computed once
	of := commonPodRules()
	of.Own(reflect.TypeFor[corev1.Pod](), "metadata.annotations")
	return of
})

// commonPodRules are the rules without annotations.
func commonPodRules() field.Rules {
	pod := reflect.TypeFor[corev1.Pod]()
	of := allBut[corev1.Pod](
		"metadata.generateName", "metadata.resourceVersion", "metadata.uid",
		"spec.ephemeralContainers", "spec.hostAliases", "spec.imagePullSecrets", "spec.dnsConfig", "spec.readinessGates",
		"status.conditions.message", "status.conditions.lastProbeTime", "status.conditions.lastTransitionTime",
		"status.conditions.observedGeneration",
		"status.message", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "status.observedGeneration",
		"status.ephemeralContainerStatuses", "status.resourceClaimStatuses",
	)
	dropContent(of, pod, "spec")
	for _, containers := range []string{"status.containerStatuses.", "status.initContainerStatuses."} {
		dropState(of, pod, containers)
	}
	of.Own(
		pod, "metadata.name", "metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds",
		"metadata.finalizers",
		"spec.nodeName", "spec.hostname", "spec.affinity", "spec.volumes", "status.startTime", "status.nominatedNodeName",
		"status.containerStatuses", "status.initContainerStatuses",
	)
	return of
}

// dropState drops what is not read of the states of containers, given the path of one.
func dropState(from field.Rules, of reflect.Type, state string) {
	for _, name := range []string{
		"name", "ready", "started", "image", "imageID", "containerID", "allocatedResources", "resources", "volumeMounts", "user",
		"allocatedResourcesStatus", "stopSignal", "state.running", "state.terminated", "state.waiting.message", "lastState.running",
		"lastState.waiting",
		"lastState.terminated.exitCode", "lastState.terminated.signal", "lastState.terminated.reason", "lastState.terminated.message",
		"lastState.terminated.startedAt", "lastState.terminated.containerID",
	} {
		from.Drop(of, state+name)
	}
}

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

// Restriction is a NetworkPolicy, a ResourceQuota or a LimitRange.
type Restriction struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Hard corev1.ResourceList `json:"hard"`
		Used corev1.ResourceList `json:"used"`
	} `json:"status"`
}

// Restrictions are the objects of such a resource in the namespaces of the cluster itself, sorted by namespace and name.
func (c *Cluster) Restrictions(ctx context.Context, resource schema.GroupVersionResource) ([]Restriction, error) {
	return once(ctx, c, "restrictions by "+resource.String(), func(ctx context.Context) ([]Restriction, error) {
		return listPages(ctx, c.api.Dynamic, resource, 0, func(object *Restriction) bool { return OfCluster(object.Namespace) })
	})
}

// HandMade returns the client of a person, or the tool that applies what a person wrote, if no other writer
// changed the object, by its managed fields. It is empty for the object of another program, and if unknown.
// Writers that change only the metadata or subresources do not count.
func HandMade(object metav1.Object) string {
	by := ""
	for _, entry := range object.GetManagedFields() {
		switch {
		case entry.Subresource != "" || !writesContent(entry.FieldsV1):
		case !OfPerson(entry.Manager) && !appliesForPerson(entry.Manager):
			return ""
		default:
			by = entry.Manager
		}
	}
	return words.External(by)
}

// writesContent reports whether fields are not of the metadata and the status only. Those that cannot be read are.
func writesContent(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(fields.GetRawString()), &members); err != nil {
		return true
	}
	for name := range members {
		if name != "f:metadata" && name != "f:status" {
			return true
		}
	}
	return false
}

// appliesForPerson reports whether a field manager is a tool by which people apply their manifests: Argo CD, Flux, Helm,
// Terraform, and the policies of Advanced Cluster Management.
func appliesForPerson(manager string) bool {
	return manager == "helm" || slices.ContainsFunc([]string{
		"argocd", "kustomize-controller", "helm-controller", "Helm", "Terraform",
		"terraform", "HashiCorp", "config-policy-controller",
	}, func(tool string) bool {
		return strings.HasPrefix(manager, tool)
	})
}
