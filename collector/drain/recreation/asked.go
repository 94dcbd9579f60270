package recreation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/openshift/update-preflight/collector/drain/owner"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Said is the API server's response to the creation of the next pod of a controller, which was sent as a dry run.
type Said struct {
	// Admitted is the pod as it would be stored; nil if it is rejected.
	Admitted *corev1.Pod
	// By refuses it, with Why as a message. Full is true where only a quota without room does, which decides after all else: its room when
	// the pod is evicted is another one than now.
	By, Why string
	Full    bool
}

// Asks is how the API server is asked about the next pods of controllers.
type Asks struct {
	// Ask returns an answer for each of the controllers about which the API server could be asked.
	Ask func(ctx context.Context, controllers []preflight.Object) (map[preflight.Object]Said, error)
	// Differs is called with each difference between the response and the model.
	Differs func(difference string)
}

// ControllerOf is the controller of a pod, in a question to the API server; false for one that Kubernetes does not have, and for a
// DaemonSet, whose pods a drain leaves.
func ControllerOf(pod *corev1.Pod) (preflight.Object, bool) {
	reference := metav1.GetControllerOfNoCopy(pod)
	if reference == nil {
		return preflight.Object{}, false
	}
	switch owner.KindOf(reference) {
	case replicaSet(), statefulSet(), replicationController(), ofJob():
		return preflight.Object{APIVersion: reference.APIVersion, Kind: reference.Kind, Namespace: pod.Namespace, Name: reference.Name}, true
	}
	return preflight.Object{}, false
}

// Use has the answers of the API server count instead of the model's. Differs is called with each difference of the two, once for each
// controller. What webhooks and policies answer is not modeled here.
func (w *Workloads) Use(said map[preflight.Object]Said, differs func(difference string)) {
	w.answers = answers{said: said, differs: differs, reported: map[preflight.Object]bool{}}
}

// answers has what the API server said, by controller.
type answers struct {
	said     map[preflight.Object]Said
	differs  func(string)
	reported map[preflight.Object]bool
}

// admits reports whether the API server admits the next pod of a controller.
func (a *answers) admits(of key) bool {
	for object, said := range a.said {
		if object.Namespace == of.namespace && object.Name == of.name && object.Kind == of.Kind {
			return said.Admitted != nil
		}
	}
	return false
}

// counted is the answer of the model with what the API server said of the next pod, where it was asked. That nothing is created is not
// the API server's to answer, nor is the room of a quota when the pod is evicted. Pods below the partition of a StatefulSet are of
// another template than the one that was asked about.
func (a *answers) counted(by *controller, pod *corev1.Pod, modeled Answer, remake func(spec *corev1.PodSpec) Answer) Answer {
	object, ok := ControllerOf(pod)
	said, asked := a.said[object]
	below := by != nil && by.revisions.current != by.revisions.updated && Ordinal(pod) < by.revisions.partition
	switch {
	case !ok || !asked || below || modeled.Outcome == Lost, said.Full && strings.Contains(modeled.By, "ResourceQuota"):
		return modeled
	case said.Admitted == nil && !said.Full:
		if modeled.Outcome != Refused {
			a.report(object, said.By+" refuses it", modeled)
		}
		return Answer{Outcome: Refused, Why: "cannot be created: " + said.Why, By: said.By}
	case modeled.Outcome != Recreated:
		a.report(object, "the API server admits it", modeled)
	case said.Full || by == nil:
		return modeled
	case alike(&said.Admitted.Spec, specOf(modeled, pod)):
		modeled.Asked = true
		return modeled
	default:
		a.report(object, "the API server admits it with other requests or another choice of nodes", modeled)
	}
	if said.Admitted == nil {
		return remake(nil)
	}
	return remake(&said.Admitted.Spec)
}

func (a *answers) report(of preflight.Object, answer string, modeled Answer) {
	if a.reported[of] {
		return
	}
	a.reported[of] = true
	text := fmt.Sprintf("the next pod of %s %q in namespace %q: %s; the model: %s", of.Kind, of.Name, of.Namespace, answer, modeled.Outcome)
	if modeled.Why != "" {
		text += ", " + modeled.String()
	}
	a.differs(text)
}

// specOf returns the spec of the pod that the model creates. If the model has no pod of its own, it is the spec of
// the evicted pod.
func specOf(modeled Answer, pod *corev1.Pod) *corev1.PodSpec {
	if modeled.Pod != nil {
		return &modeled.Pod.Spec
	}
	return &pod.Spec
}

// alike reports whether two pods run on the same nodes and are charged the same, as far as admission decides.
func alike(x, y *corev1.PodSpec) bool {
	options := helpers.PodResourcesOptions{}
	return equality.Semantic.DeepEqual(helpers.PodRequests(&corev1.Pod{Spec: *x}, options),
		helpers.PodRequests(&corev1.Pod{Spec: *y}, options)) &&
		equality.Semantic.DeepEqual(requirementsOf(x), requirementsOf(y)) && maps.Equal(x.NodeSelector, y.NodeSelector) &&
		len(x.SchedulingGates) == len(y.SchedulingGates)
}

// admitted returns the pod of a controller with the spec that the API server has admitted; without one, with the
// spec of its template.
func admitted(w *Workloads, by *controller, pod *corev1.Pod, spec *corev1.PodSpec) Answer {
	made, _ := by.created(pod, w.namespaces[pod.Namespace])
	made = made.DeepCopy()
	if spec != nil {
		volumes := made.Spec.Volumes
		made.Spec = *spec.DeepCopy()
		made.Spec.Volumes = volumes // with the claims of this pod
	}
	return Answer{Outcome: Recreated, Pod: made, Charges: w.quotas.Of(made), Asked: true}
}

// Controller is how a controller of Kubernetes creates its pods.
type Controller struct {
	// Replicas is how many pods it keeps.
	Replicas int
	// Ordered is true for a StatefulSet that creates a pod only while the pods with lower ordinals are ready.
	Ordered bool
	// Late is true for one that creates a pod when the one before is gone, and not when its deletion begins.
	Late bool
	// Failures is how many of its pods may fail before it creates none: for a Job, where an evicted pod counts as
	// failed; Unlimited for others.
	Failures int
	// First is the lowest ordinal of a StatefulSet.
	First int
	// Scaler names the Deployment that scales a ReplicaSet, and Scale is how many pods all ReplicaSets of that Deployment
	// have together. Scaler is empty for a controller that is scaled alone.
	Scaler string
	Scale  int
	// Unscaled is true for a Job, whose expected pods the disruption controller cannot count.
	Unscaled bool
}

// Unlimited is the Failures of a controller that does not count them.
const Unlimited = math.MaxInt

type controller struct {
	of       Controller
	name     string
	template *corev1.PodTemplateSpec
	claims   []string
	// fixed is true where all pods are known to be of the template.
	fixed     bool
	revisions revisions
	// perIndex is how many pods of each index of a Job may fail; nil where that is not limited.
	perIndex *int32
	// lost is why nothing is created, and failure why the creation fails now.
	lost, failure string
	// admitted is the answer for a pod of the template, once computed.
	admitted *Answer
}

// revisions of a StatefulSet. Its pods have the updated one from the ordinal of partition on.
type revisions struct {
	updated, current string
	partition        int
}

func fromReplicaSet(set *appsv1.ReplicaSet) controller {
	by := metav1.GetControllerOfNoCopy(set)
	of := controller{
		of: Controller{Replicas: number(set.Spec.Replicas), Failures: Unlimited}, name: fmt.Sprintf("ReplicaSet %q", set.Name),
		template: &set.Spec.Template, fixed: by != nil && by.Kind == "Deployment", lost: leaving(&set.ObjectMeta),
	}
	// The disruption controller asks the Deployment (kubernetes pkg/controller/disruption, getPodDeployment), which has
	// each of its ReplicaSets state the replicas that it wants.
	if scale, err := strconv.Atoi(set.Annotations[desiredReplicas]); err == nil && of.fixed {
		of.of.Scaler, of.of.Scale = "Deployment/"+by.Name, scale
	}
	for _, condition := range set.Status.Conditions {
		if condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue {
			of.failure = failureOf(condition.Message)
		}
	}
	return of
}

func fromReplicationController(set *corev1.ReplicationController) controller {
	of := controller{
		of: Controller{Replicas: number(set.Spec.Replicas), Failures: Unlimited}, name: fmt.Sprintf("ReplicationController %q", set.Name),
		template: set.Spec.Template, lost: leaving(&set.ObjectMeta),
	}
	for _, condition := range set.Status.Conditions {
		if condition.Type == corev1.ReplicationControllerReplicaFailure && condition.Status == corev1.ConditionTrue {
			of.failure = failureOf(condition.Message)
		}
	}
	return of
}

// desiredReplicas is the annotation of a ReplicaSet with the replicas of its Deployment
// (kubernetes pkg/controller/deployment/util, DesiredReplicasAnnotation).
const desiredReplicas = "deployment.kubernetes.io/desired-replicas"

// leaving is why a controller creates nothing that is being deleted, and waits for its finalizers: the controllers of
// Kubernetes only clean up after it.
func leaving(of *metav1.ObjectMeta) string {
	if of.DeletionTimestamp == nil {
		return ""
	}
	return fmt.Sprintf("belongs to %q, which is being deleted", of.Name)
}

// failureOf returns the message of a failed creation; empty for the failure of a quota, which has room when one of
// its pods is gone, and for a failure that was not read.
func failureOf(message string) string {
	if strings.Contains(message, "exceeded quota") {
		return ""
	}
	return message
}

func fromStatefulSet(set *appsv1.StatefulSet) controller {
	of := controller{
		of: Controller{
			Replicas: number(set.Spec.Replicas), Late: true, Failures: Unlimited,
			Ordered: set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
		},
		name: fmt.Sprintf("StatefulSet %q", set.Name), template: &set.Spec.Template,
		revisions: revisions{updated: set.Status.UpdateRevision, current: set.Status.CurrentRevision},
		lost:      leaving(&set.ObjectMeta),
	}
	if set.Spec.Ordinals != nil {
		of.of.First = int(set.Spec.Ordinals.Start)
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		of.revisions.partition = int(*rolling.Partition)
	}
	for i := range set.Spec.VolumeClaimTemplates {
		of.claims = append(of.claims, set.Spec.VolumeClaimTemplates[i].Name)
	}
	return of
}

func fromJob(job *batchv1.Job) controller {
	of := controller{
		of:       Controller{Replicas: number(job.Spec.Parallelism), Late: true, Unscaled: true, Failures: failuresOf(job)},
		name:     fmt.Sprintf("Job %q", job.Name),
		template: &job.Spec.Template, fixed: true, lost: cmp.Or(leaving(&job.ObjectMeta), exhausted(job)),
	}
	if !ignoresDisruptions(job) {
		of.perIndex = job.Spec.BackoffLimitPerIndex
	}
	if job.Spec.Completions != nil {
		of.of.Replicas = min(of.of.Replicas, max(0, int(*job.Spec.Completions)-int(job.Status.Succeeded)))
	}
	return of
}

// failsIndex reports whether the index of a pod has failed once it is evicted: so many of its pods have failed before
// (kubernetes pkg/controller/job, backoffLimitPerIndex).
func (c *controller) failsIndex(pod *corev1.Pod) bool {
	if c.perIndex == nil {
		return false
	}
	failures, err := strconv.Atoi(cmp.Or(pod.Annotations[batchv1.JobIndexFailureCountAnnotation], "0"))
	return err == nil && failures >= int(*c.perIndex)
}

// number is a number of replicas, one by default.
func number(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return int(*replicas)
}

// failuresOf is how many more pods of a Job may fail. With a limit for each index, the Job counts none together.
func failuresOf(job *batchv1.Job) int {
	if ignoresDisruptions(job) || job.Spec.BackoffLimitPerIndex != nil {
		return Unlimited
	}
	return max(0, backoffLimit(job)-int(job.Status.Failed))
}

func backoffLimit(job *batchv1.Job) int {
	const byDefault = 6
	if job.Spec.BackoffLimit == nil {
		return byDefault
	}
	return int(*job.Spec.BackoffLimit)
}

// exhausted is why a Job creates no pod in place of one that is evicted: an evicted pod counts
// as failed, unless a rule of its podFailurePolicy ignores disruptions.
func exhausted(job *batchv1.Job) string {
	if failuresOf(job) > 0 {
		return ""
	}
	return fmt.Sprintf("belongs to Job %q, whose backoffLimit %d its eviction exceeds", job.Name, backoffLimit(job))
}

func ignoresDisruptions(job *batchv1.Job) bool {
	if job.Spec.PodFailurePolicy == nil {
		return false
	}
	for _, rule := range job.Spec.PodFailurePolicy.Rules {
		for _, condition := range rule.OnPodConditions {
			if rule.Action == batchv1.PodFailurePolicyActionIgnore && condition.Type == corev1.DisruptionTarget {
				return true
			}
		}
	}
	return false
}

var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { //nolint:gochecknoglobals // a constant that is computed once
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// secure returns what rejects a pod because of its namespace's level of Pod Security, or of its ServiceAccount,
// and the reason as a clause about the pod; both are empty if nothing does.
func (w *Workloads) secure(pod *corev1.Pod) (by, why string) {
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	if of := w.accounts[pod.Namespace]; len(of) > 0 && !of[account] {
		return "the API server", fmt.Sprintf("has ServiceAccount %q, which does not exist", account)
	}
	namespace := w.namespaces[pod.Namespace]
	if pod.Spec.SecurityContext == nil {
		return "", "" // the API server sets it, so that it was not read
	}
	if namespace == nil || namespace.Labels[api.EnforceLevelLabel] == "" {
		return "", ""
	}
	privileged := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	// An invalid label is the level "restricted", as for the API server.
	levels, _ := api.PolicyToEvaluate(namespace.Labels, api.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	checks, err := evaluator()
	if err != nil {
		return "the library of Pod Security", "cannot be evaluated: " + err.Error()
	}
	result := policy.AggregateCheckResults(checks.EvaluatePod(levels.Enforce, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return "", ""
	}
	return fmt.Sprintf("Pod Security %q of namespace %q", levels.Enforce.Level, pod.Namespace), "has " + result.ForbiddenReason()
}
