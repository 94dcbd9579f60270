package snapshot

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// Workload creates pods.
type Workload struct {
	// Kind and Name identify it in the namespace of the pods. Without a controller it is the pod.
	Kind, Name string
	// Installer is the kind of its installer: ClusterServiceVersion, Helm release, Argo application, or application.
	// It is empty if the pods do not name it.
	Installer    string
	Installation string
	// Oldest and Newest are the creation times of its pods.
	Oldest, Newest time.Time
}

// WorkloadsOf are the workloads whose pods use a service account, sorted. Only the
// metadata of these pods is read, so a workload that has no pod now is not found.
// Namespace and account must be valid names.
func (c *Cluster) WorkloadsOf(ctx context.Context, namespace, account string) ([]Workload, error) {
	return once(ctx, c, "workloads "+namespace+"/"+account, func(ctx context.Context) ([]Workload, error) {
		pods := c.api.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = fields.OneTermEqualSelector("spec.serviceAccountName", account).String()
			return pods.List(ctx, options)
		}
		found := map[Workload]lifetime{} // by the workload without times
		err := each(ctx, page, func(pod *metav1.PartialObjectMetadata) error {
			workload := workloadOf(pod)
			found[workload] = found[workload].with(pod.CreationTimestamp.Time)
			return nil
		})
		workloads := slices.SortedFunc(maps.Keys(found), compareWorkloads)
		for i, workload := range workloads {
			workloads[i].Oldest, workloads[i].Newest = found[workload].oldest, found[workload].newest
		}
		return workloads, err
	})
}

// lifetime are the creation times of the pods of a workload.
type lifetime struct{ oldest, newest time.Time }

func (l lifetime) with(created time.Time) lifetime {
	if l.oldest.IsZero() || created.Before(l.oldest) {
		l.oldest = created
	}
	if created.After(l.newest) {
		l.newest = created
	}
	return l
}

func compareWorkloads(a, b Workload) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Installer, b.Installer), cmp.Compare(a.Installation, b.Installation),
	)
}

func workloadOf(pod *metav1.PartialObjectMetadata) Workload {
	workload := Workload{Kind: "Pod", Name: pod.Name}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		workload.Kind, workload.Name = controllerOf(pod, owner)
	}
	workload.Installer, workload.Installation = installerOf(pod)
	return workload
}

// controllerOf is the Deployment of a ReplicaSet and the CronJob of a Job, derived from
// the names that their controllers give, and any other owner itself.
func controllerOf(pod *metav1.PartialObjectMetadata, owner *metav1.OwnerReference) (kind, name string) {
	switch owner.Kind {
	case "ReplicaSet":
		hash := pod.Labels["pod-template-hash"]
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" {
			return "Deployment", name
		}
	case "Job":
		if name, ok := cronJobOf(owner.Name, pod.CreationTimestamp.Time); ok {
			return "CronJob", name
		}
	}
	return owner.Kind, owner.Name
}

// scheduled matches the name of a Job of a CronJob: the name of the CronJob and the
// scheduled time in minutes since 1970.
var scheduled = regexp.MustCompile(`^(.+)-([0-9]{8})$`)

// maxJobAge bounds the time from the schedule of a Job to the creation of its last pod.
// Jobs without a CronJob have other names that end in a number.
const maxJobAge = 7 * 24 * time.Hour

func cronJobOf(job string, created time.Time) (string, bool) {
	match := scheduled.FindStringSubmatch(job)
	if match == nil {
		return "", false
	}
	minutes, err := strconv.ParseInt(match[2], 10, 64)
	age := created.Sub(time.Unix(minutes*60, 0))
	return match[1], err == nil && age > -time.Hour && age < maxJobAge
}

// installerOf returns the installer of a pod, according to the annotations and labels that OLM, Helm and Argo CD
// set. Their objects are not read.
func installerOf(pod *metav1.PartialObjectMetadata) (kind, name string) {
	instance := pod.Labels["app.kubernetes.io/instance"]
	release := pod.Annotations["meta.helm.sh/release-name"]
	if pod.Labels["app.kubernetes.io/managed-by"] == "Helm" || pod.Labels["helm.sh/chart"] != "" {
		release = cmp.Or(release, instance)
	}
	tracked, _, _ := strings.Cut(pod.Annotations["argocd.argoproj.io/tracking-id"], ":")
	for _, candidate := range []struct{ kind, name string }{
		{"ClusterServiceVersion", cmp.Or(pod.Labels["olm.owner"], pod.Annotations["olm.owner"])},
		{"Argo application", cmp.Or(tracked, pod.Labels["argocd.argoproj.io/instance"])},
		{"Helm release", release},
		{"application", instance},
	} {
		if candidate.name != "" {
			return candidate.kind, candidate.name
		}
	}
	return "", ""
}

// PodOwner is a Deployment, a DaemonSet, a StatefulSet or a CronJob.
type PodOwner struct {
	Kind, Name string
	// Changed is when its last change took effect: for a Deployment the completion of its last rollout, for a CronJob
	// the last write of its spec.jobTemplate. It is zero if unknown, and for other kinds.
	Changed time.Time
	// Schedule and Succeeded, the last success, belong to a CronJob.
	Schedule  string
	Succeeded time.Time
	// Suspended is true for a CronJob that is suspended.
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

func pageOf[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) pager.ListPageFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}

// rolledOut is when the last rollout was completed, and zero while a rollout is in progress.
func rolledOut(deployment *appsv1.Deployment) time.Time {
	status := deployment.Status
	if status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas < 1 || status.UpdatedReplicas != status.Replicas {
		return time.Time{}
	}
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionTrue &&
			condition.Reason == "NewReplicaSetAvailable" {
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
