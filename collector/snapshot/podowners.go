package snapshot

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// PodOwner is a Deployment, a DaemonSet, a StatefulSet or a CronJob.
type PodOwner struct {
	Kind, Name string
	// Changed is when its last change took effect: for a Deployment the completion of
	// its last rollout, for a CronJob the last write of its spec.jobTemplate. It is zero
	// where that is unknown, and for other kinds.
	Changed time.Time
	// Schedule and Succeeded, the last success, are those of a CronJob.
	Schedule  string
	Succeeded time.Time
	// Suspended is that of a CronJob.
	Suspended bool
}

// PodOwners are those in the namespace whose pod template uses the service account, with
// pods or without, sorted by kind and name.
func (c *Cluster) PodOwners(ctx context.Context, namespace, account string) ([]PodOwner, error) {
	return once(ctx, c, "podOwners "+namespace+"/"+account, func(ctx context.Context) ([]PodOwner, error) {
		var owners []PodOwner
		add := func(template corev1.PodSpec, owner PodOwner) {
			if template.ServiceAccountName == account || (template.ServiceAccountName == "" && account == "default") {
				owners = append(owners, owner)
			}
		}
		apps, batch := c.api.Kubernetes.AppsV1(), c.api.Kubernetes.BatchV1()
		lists := []func() error{
			func() error {
				return each(ctx, pageOf(batch.CronJobs(namespace).List), func(o *batchv1.CronJob) error {
					add(o.Spec.JobTemplate.Spec.Template.Spec, cronJob(o))
					return nil
				})
			},
			func() error {
				return each(ctx, pageOf(apps.DaemonSets(namespace).List), func(o *appsv1.DaemonSet) error {
					add(o.Spec.Template.Spec, PodOwner{Kind: "DaemonSet", Name: o.Name})
					return nil
				})
			},
			func() error {
				return each(ctx, pageOf(apps.Deployments(namespace).List), func(o *appsv1.Deployment) error {
					add(o.Spec.Template.Spec, PodOwner{Kind: "Deployment", Name: o.Name, Changed: rolledOut(o)})
					return nil
				})
			},
			func() error {
				return each(ctx, pageOf(apps.StatefulSets(namespace).List), func(o *appsv1.StatefulSet) error {
					add(o.Spec.Template.Spec, PodOwner{Kind: "StatefulSet", Name: o.Name})
					return nil
				})
			},
		}
		for _, list := range lists {
			if err := list(); err != nil {
				return nil, err
			}
		}
		return owners, nil
	})
}

// pageOf is the list function of a typed client.
func pageOf[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) pager.ListPageFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}

// rolledOut is when the last rollout was completed, and zero while a rollout is in
// progress.
func rolledOut(deployment *appsv1.Deployment) time.Time {
	status := deployment.Status
	if status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas < 1 || status.UpdatedReplicas != status.Replicas {
		return time.Time{}
	}
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionTrue && condition.Reason == "NewReplicaSetAvailable" {
			return condition.LastUpdateTime.Time
		}
	}
	return time.Time{}
}

func cronJob(job *batchv1.CronJob) PodOwner {
	owner := PodOwner{Kind: "CronJob", Name: job.Name, Schedule: job.Spec.Schedule}
	owner.Suspended = job.Spec.Suspend != nil && *job.Spec.Suspend
	if job.Status.LastSuccessfulTime != nil {
		owner.Succeeded = job.Status.LastSuccessfulTime.Time
	}
	for _, fields := range job.ManagedFields {
		if fields.Time == nil || fields.FieldsV1 == nil || !strings.Contains(fields.FieldsV1.GetRawString(), `"f:jobTemplate":`) {
			continue
		}
		if fields.Time.After(owner.Changed) {
			owner.Changed = fields.Time.Time
		}
	}
	return owner
}
