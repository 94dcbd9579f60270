package recreation

import (
	"fmt"
	"math"
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
		template: &set.Spec.Template, fixed: by != nil && by.Kind == "Deployment",
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
		template: set.Spec.Template,
	}
	for _, condition := range set.Status.Conditions {
		if condition.Type == corev1.ReplicationControllerReplicaFailure && condition.Status == corev1.ConditionTrue {
			of.failure = failureOf(condition.Message)
		}
	}
	return of
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
		template: &job.Spec.Template, fixed: true, lost: exhausted(job),
	}
	if job.Spec.Completions != nil {
		of.of.Replicas = min(of.of.Replicas, max(0, int(*job.Spec.Completions)-int(job.Status.Succeeded)))
	}
	return of
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
