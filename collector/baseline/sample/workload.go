package sample

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/sweep"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("A workload has a problem after the update that it did not have before.", `
ContainerCreating | Its pods have a node, but their containers are not created: often a volume is not mounted, or the network plugin of the node fails. | `+events+`
CrashLoopBackOff | A container crashes repeatedly. | `+logs+`
CreateContainerError | The container runtime could not create a container, for example because a ConfigMap does not exist. | `+events+`
FailedCreate | Its pods cannot be created: a quota, an admission plugin or a SecurityContextConstraint rejects them. | Read the message of its condition
	ReplicaFailure. | oc describe deployment NAME -n NAMESPACE
ImagePullBackOff | The node cannot pull an image: it does not exist, the registry is unreachable, or the pull secret lacks it. | `+events+
	`
ProgressDeadlineExceeded | Its rollout did not advance within its deadline. | Read its conditions and the events of its pods. | oc describe deployment NAME -n NAMESPACE
Restarting | A running container has restarted often, the last time within minutes. | `+logs+`
RestartsHourly | A container restarts every hour or more often, and did not before. | `+logs+`
RolloutIncomplete | Fewer of its pods have the current revision than requested. | `+events+`
Unavailable | It has fewer ready pods than requested, or its condition Available is not True. | Read its conditions and its pods. | oc describe KIND NAME -n NAMESPACE
Unschedulable | No node suits one of its pods: the labels, taints or free resources of the nodes have changed. | `+events)

// The remedies, with their commands, that several reasons have.
const (
	events = "Read the events of the pods. | oc get events -n NAMESPACE"
	logs   = "Read the log of its last run. | oc logs --previous POD -n NAMESPACE"
)

// Annotations and labels of workloads and their pods.
const (
	deploymentRevision = "deployment.kubernetes.io/revision"
	daemonSetRevision  = "deprecated.daemonset.template.generation"
	configRevision     = "openshift.io/deployment-config.latest-version"
	templateHash       = "pod-template-hash"
)

// Kinds of controllers, as owner references have them, that are none of a State.
const (
	replicaSet       = "ReplicaSet"
	deploymentConfig = "DeploymentConfig"
)

// workloads are the objects that have pods.
type workloads struct {
	sampler *sampler
	// found are the workloads, without what their pods state.
	found map[baseline.Key]baseline.Object
	// sets are the controllers of ReplicaSets that are not of Deployments.
	sets map[baseline.Key]baseline.Key
}

func (w *workloads) read(ctx context.Context) {
	s := w.sampler
	w.deployments(ctx)
	w.statefulSets(ctx)
	w.daemonSets(ctx)
	configs := w.replicationControllers(ctx)
	pods := read(ctx, s, s.cluster.Pods, "pods", baseline.Deployment, baseline.StatefulSet, baseline.DaemonSet, baseline.ReplicationController)
	runs := map[baseline.Key]*podStates{}
	s.controllers, s.pods = make(map[*corev1.Pod]baseline.Key, len(pods)), pods
	for i := range pods {
		pod := &pods[i]
		key, ok := w.controllerOf(pod, configs)
		if !ok || pod.DeletionTimestamp != nil || hasEnded(pod) {
			continue
		}
		s.controllers[pod] = key
		if runs[key] == nil {
			runs[key] = &podStates{now: s.now}
		}
		runs[key].add(pod)
	}
	for key, object := range w.found {
		if states := runs[key]; states != nil {
			states.into(&object, key.Namespace)
		}
		s.keep(key, object)
	}
	for key, states := range runs {
		if _, known := w.found[key]; !known {
			w.other(key, states)
		}
	}
}

// other adds what pods state to their controller of another kind, or makes it an object that has nothing else.
func (w *workloads) other(key baseline.Key, states *podStates) {
	object, exists := w.sampler.state.Objects[key]
	if !exists {
		object.Release = w.sampler.owners.Namespace(key.Namespace)
	}
	states.into(&object, key.Namespace)
	if object.Ready = states.ready; object.Ready < states.count {
		object.Add(baseline.Problem{
			Reason: "PartsNotReady", Since: states.unreadySince(),
			Message: fmt.Sprintf("%d of %s ready", object.Ready, words.Count(int64(states.count), "pod")),
		})
	}
	if !w.sampler.state.Leaving[key.Namespace] {
		w.sampler.state.Objects[key] = object
	}
}

// controllerOf returns the object of the State that recreates a pod; false for a pod that no controller recreates,
// or whose controller is a Job. For a ReplicaSet of another controller than a Deployment, such as a Rollout, it is
// the object of its name. A mirror of a static pod is its own controller, since its name does not change.
func (w *workloads) controllerOf(pod *corev1.Pod, configs map[name]baseline.Key) (baseline.Key, bool) {
	if key, ok := workloadOf(pod, configs); ok {
		if _, exists := w.found[key]; exists {
			return key, true
		}
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil && len(pod.OwnerReferences) > 0 {
		owner = &pod.OwnerReferences[0]
	}
	switch {
	case owner == nil || owner.Kind == "Job":
		return baseline.Key{}, false
	case owner.Kind == string(baseline.Node):
		return baseline.Key{Kind: baseline.Pod, Namespace: pod.Namespace, Name: pod.Name}, true
	}
	key := sweep.KeyOf(*owner, pod.Namespace)
	if owner.Kind != replicaSet {
		return key, true
	}
	for label, hash := range pod.Labels {
		if of, ofHash := strings.CutSuffix(owner.Name, "-"+hash); ofHash && hash != "" && strings.HasSuffix(label, templateHash) {
			key.Name = of
		}
	}
	return w.named(key), true
}

// named is the object that has parts and the name of a ReplicaSet without its hash; the ReplicaSet where there is none.
func (w *workloads) named(set baseline.Key) baseline.Key {
	if known, done := w.sets[set]; done {
		return known
	}
	found := set
	for kind := range w.sampler.state.APIs {
		at := baseline.Key{Kind: kind, Namespace: set.Namespace, Name: set.Name}
		if object, exists := w.sampler.state.Objects[at]; exists && object.Desired > 0 && !kind.Known() {
			found = at
		}
	}
	w.sets[set] = found
	return found
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// name identifies a controller in a namespace.
type name struct{ namespace, name string }

// workloadOf is the object of the State that a pod belongs to; false where it is of none of these kinds. configs are the keys of
// ReplicationControllers. The ReplicaSets are not read for it, of which a cluster has ten for each Deployment: the name of one ends
// with the hash that its pods have as a label (kubernetes pkg/controller/deployment/sync.go).
func workloadOf(pod *corev1.Pod, configs map[name]baseline.Key) (baseline.Key, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return baseline.Key{}, false
	}
	key := baseline.Key{Kind: baseline.Kind(owner.Kind), Namespace: pod.Namespace, Name: owner.Name}
	ofApps := strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/")
	switch {
	case ofApps && owner.Kind == replicaSet:
		hash := pod.Labels[templateHash]
		deployment, ofHash := strings.CutSuffix(owner.Name, "-"+hash)
		key.Kind, key.Name = baseline.Deployment, deployment
		return key, ofHash && hash != ""
	case owner.Kind == string(baseline.ReplicationController) && owner.APIVersion == corev1.SchemeGroupVersion.String():
		key, known := configs[name{pod.Namespace, owner.Name}]
		return key, known
	}
	return key, ofApps && (key.Kind == baseline.StatefulSet || key.Kind == baseline.DaemonSet)
}

// lacking adds the problem of a workload that has fewer ready pods than it should have.
func lacking(object *baseline.Object) {
	if object.Ready < object.Desired {
		object.Add(baseline.Problem{Reason: "Unavailable", Message: fmt.Sprintf("%d of %d pods are ready", object.Ready, object.Desired)})
	}
}

// outdated adds the problem of a workload that has fewer pods of its present revision than it should have.
func outdated(object *baseline.Object, updated int32) {
	if updated < object.Desired {
		object.Add(baseline.Problem{
			Reason:  "RolloutIncomplete",
			Message: fmt.Sprintf("%d of %d pods have its current revision", updated, object.Desired),
		})
	}
}

// replicas are how many pods there should be; the API has a default of one.
func replicas(of *int32) int32 {
	if of == nil {
		return 1
	}
	return *of
}

func (w *workloads) deployments(ctx context.Context) {
	found := kept(w.sampler, baseline.Deployment, read(ctx, w.sampler, w.sampler.cluster.Deployments, "Deployments", baseline.Deployment))
	for i := range found {
		of := &found[i]
		object := baseline.Object{
			Desired: replicas(of.Spec.Replicas), Ready: of.Status.ReadyReplicas, Revision: fact(of.Annotations[deploymentRevision]),
			Generation: of.Generation,
		}
		states := conditionsOf(of.Status.Conditions, ofDeployment)
		lacking(&object)
		if available := states.of(string(appsv1.DeploymentAvailable)); available.Status == conditionFalse && len(object.Problems) > 0 {
			object.Problems[0].Since = at(available.LastTransitionTime)
		}
		if failure := states.of(string(appsv1.DeploymentReplicaFailure)); failure.Status == conditionTrue && object.Desired > 0 {
			object.Add(failure.problem("FailedCreate"))
		}
		if progress := states.of(string(appsv1.DeploymentProgressing)); progress.Reason == "ProgressDeadlineExceeded" {
			object.Add(progress.problem("ProgressDeadlineExceeded"))
		}
		if !of.Spec.Paused { // which does not roll out by choice
			outdated(&object, of.Status.UpdatedReplicas)
		}
		w.sampler.describe(&object, of, appsv1.GroupName, "deployments")
		w.found[baseline.Key{Kind: baseline.Deployment, Namespace: of.Namespace, Name: of.Name}] = object
	}
}

func (w *workloads) statefulSets(ctx context.Context) {
	found := kept(w.sampler, baseline.StatefulSet, read(ctx, w.sampler, w.sampler.cluster.StatefulSets, "StatefulSets", baseline.StatefulSet))
	for i := range found {
		of := &found[i]
		object := baseline.Object{
			Desired: replicas(of.Spec.Replicas), Ready: of.Status.ReadyReplicas, Revision: strconv.FormatInt(of.Generation, 10),
			Generation: of.Generation,
			Detail:     fact(of.Status.UpdateRevision),
		}
		lacking(&object)
		strategy := of.Spec.UpdateStrategy
		partial := strategy.RollingUpdate != nil && strategy.RollingUpdate.Partition != nil && *strategy.RollingUpdate.Partition > 0
		if strategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && !partial {
			outdated(&object, of.Status.UpdatedReplicas)
		}
		w.sampler.describe(&object, of, appsv1.GroupName, "statefulsets")
		w.found[baseline.Key{Kind: baseline.StatefulSet, Namespace: of.Namespace, Name: of.Name}] = object
	}
}

func (w *workloads) daemonSets(ctx context.Context) {
	found := kept(w.sampler, baseline.DaemonSet, read(ctx, w.sampler, w.sampler.cluster.DaemonSets, "DaemonSets", baseline.DaemonSet))
	for i := range found {
		of := &found[i]
		object := baseline.Object{
			Desired: of.Status.DesiredNumberScheduled, Ready: of.Status.NumberReady, Revision: fact(of.Annotations[daemonSetRevision]),
			Generation: of.Generation,
		}
		lacking(&object)
		if of.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
			outdated(&object, of.Status.UpdatedNumberScheduled)
		}
		w.sampler.describe(&object, of, appsv1.GroupName, "daemonsets")
		w.found[baseline.Key{Kind: baseline.DaemonSet, Namespace: of.Namespace, Name: of.Name}] = object
	}
}

// replicationControllers adds the ReplicationControllers that should have pods, by the name of their
// DeploymentConfig if they have one, and returns the key of each.
func (w *workloads) replicationControllers(ctx context.Context) map[name]baseline.Key {
	found := kept(w.sampler, baseline.ReplicationController,
		read(ctx, w.sampler, w.sampler.cluster.ReplicationControllers, "ReplicationControllers", baseline.ReplicationController))
	keys := map[name]baseline.Key{}
	for i := range found {
		of := &found[i]
		desired := replicas(of.Spec.Replicas)
		if desired == 0 {
			continue // it has an earlier revision, or is scaled to none
		}
		key := baseline.Key{Kind: baseline.ReplicationController, Namespace: of.Namespace, Name: of.Name}
		object := baseline.Object{Desired: desired, Ready: of.Status.ReadyReplicas, Generation: of.Generation}
		w.sampler.describe(&object, of, "", "replicationcontrollers")
		if owner := metav1.GetControllerOfNoCopy(of); owner != nil && owner.Kind == deploymentConfig {
			key.Name = owner.Name
			object.Revision, object.Generation, object.UID = fact(of.Annotations[configRevision]), 0, "" // each revision is another object
		}
		keys[name{of.Namespace, of.Name}] = key
		if known, exists := w.found[key]; exists { // a rollout is in progress
			object.Desired, object.Ready = object.Desired+known.Desired, object.Ready+known.Ready
			object.Revision = later(object.Revision, known.Revision)
		}
		object.Problems = nil
		lacking(&object)
		w.found[key] = object
	}
	return keys
}

// later is the greater of two numbers.
func later(a, b string) string {
	if len(a) > len(b) || len(a) == len(b) && a > b {
		return a
	}
	return b
}

// condition has the fields that conditions of all APIs share.
type condition struct {
	Type               string      `json:"type"`
	Status             string      `json:"status"`
	Reason             string      `json:"reason"`
	Message            string      `json:"message"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

const (
	conditionTrue  = string(metav1.ConditionTrue)
	conditionFalse = string(metav1.ConditionFalse)
)

// conditions are the conditions of one object.
type conditions []condition

// of returns a condition by its type; without a status if it is absent.
func (c conditions) of(kind string) condition {
	for _, each := range c {
		if each.Type == kind {
			return each
		}
	}
	return condition{Type: kind}
}

// problem returns a condition as a problem with a reason. The message contains the status if there is no other
// text.
func (c condition) problem(reason string) baseline.Problem {
	message := cmp.Or(clause(c.Reason, c.Message), c.Type+" is "+cmp.Or(words.External(c.Status), "absent"))
	return baseline.Problem{Reason: reason, Since: at(c.LastTransitionTime), Message: message}
}

// since is since when the condition has a status; zero where it has another.
func (c condition) since(status string) time.Time {
	if c.Status != status {
		return time.Time{}
	}
	return at(c.LastTransitionTime)
}

func conditionsOf[T any](all []T, convert func(T) condition) conditions {
	converted := make(conditions, 0, len(all))
	for _, each := range all {
		converted = append(converted, convert(each))
	}
	return converted
}

func ofOperator(c configv1.ClusterOperatorStatusCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofPool(c machineconfigurationv1.MachineConfigPoolCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofNode(c corev1.NodeCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofDeployment(c appsv1.DeploymentCondition) condition {
	return condition{string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}

func ofStandard(c metav1.Condition) condition {
	return condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime}
}
