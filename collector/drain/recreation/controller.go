package recreation

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Controller is how a controller of Kubernetes creates its pods.
type Controller struct {
	// Replicas is how many pods it keeps.
	Replicas int
	// Ordered is true for a StatefulSet that creates a pod only while those with lower ordinals are ready.
	Ordered bool
	// Late is true for one that creates a pod when the one before is gone, and not when its deletion begins.
	Late bool
	// Failures is how many of its pods may fail before it creates none: of a Job, of which an evicted pod
	// counts as failed; Unlimited for others.
	Failures int
	// First is the lowest ordinal of a StatefulSet.
	First int
	// Scaler names the Deployment that scales a ReplicaSet, and Scale is how many pods all ReplicaSets of that Deployment
	// have together. Scaler is empty for a controller that is scaled alone.
	Scaler string
	Scale  int
	// Unscaled is true for a Job, of which the disruption controller cannot count the expected pods.
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
	return fmt.Sprintf("is of %q, which is being deleted", of.Name)
}

// failureOf is the message of a failed creation; empty for that of a quota, which has room when a pod
// of it is gone, and for one that was not read.
func failureOf(message string) string {
	if strings.Contains(message, "exceeded quota") {
		return ""
	}
	return message
}

func fromStatefulSet(set *appsv1.StatefulSet) controller {
	of := controller{
		of:   Controller{Replicas: number(set.Spec.Replicas), Late: true, Failures: Unlimited, Ordered: set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement},
		name: fmt.Sprintf("StatefulSet %q", set.Name), template: &set.Spec.Template, revisions: revisions{updated: set.Status.UpdateRevision, current: set.Status.CurrentRevision},
		lost: leaving(&set.ObjectMeta),
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
		of: Controller{Replicas: number(job.Spec.Parallelism), Late: true, Unscaled: true, Failures: failuresOf(job)}, name: fmt.Sprintf("Job %q", job.Name),
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
	return fmt.Sprintf("is of Job %q, whose backoffLimit %d its eviction exceeds", job.Name, backoffLimit(job))
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
