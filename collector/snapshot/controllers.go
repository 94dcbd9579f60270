package snapshot

import (
	"context"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/snapshot/field"
)

// Deployments are all Deployments, sorted by namespace and name, without what the containers of their pods run.
func (c *Cluster) Deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	return once(ctx, c, "deployments", func(ctx context.Context) ([]appsv1.Deployment, error) {
		resource := appsv1.SchemeGroupVersion.WithResource("deployments")
		return (&reader[appsv1.Deployment]{cluster: c, resource: resource, rules: templateRules[appsv1.Deployment]()}).all(ctx)
	})
}

// ReplicaSets are all ReplicaSets, sorted by namespace and name, without what the containers of their
// pods run. Those of earlier revisions, which keep no pod and have none, are without the template of their
// pods, too: a Deployment has ten of them.
func (c *Cluster) ReplicaSets(ctx context.Context) ([]appsv1.ReplicaSet, error) {
	return once(ctx, c, "replicaSets", func(ctx context.Context) ([]appsv1.ReplicaSet, error) {
		r := &reader[appsv1.ReplicaSet]{cluster: c, resource: appsv1.SchemeGroupVersion.WithResource("replicasets"), rules: templateRules[appsv1.ReplicaSet]()}
		r.keep = func(set *appsv1.ReplicaSet) {
			if set.Spec.Replicas != nil && *set.Spec.Replicas == 0 && set.Status.Replicas == 0 {
				set.Spec.Template = corev1.PodTemplateSpec{}
			}
		}
		return r.all(ctx)
	})
}

// StatefulSets are all StatefulSets, sorted by namespace and name, without what the containers of their pods run.
func (c *Cluster) StatefulSets(ctx context.Context) ([]appsv1.StatefulSet, error) {
	return once(ctx, c, "statefulSets", func(ctx context.Context) ([]appsv1.StatefulSet, error) {
		return (&reader[appsv1.StatefulSet]{cluster: c, resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), rules: templateRules[appsv1.StatefulSet]()}).all(ctx)
	})
}

// ReplicationControllers are all ReplicationControllers, sorted by namespace and name, without what the
// containers of their pods run.
func (c *Cluster) ReplicationControllers(ctx context.Context) ([]corev1.ReplicationController, error) {
	return once(ctx, c, "replicationControllers", func(ctx context.Context) ([]corev1.ReplicationController, error) {
		return (&reader[corev1.ReplicationController]{cluster: c, resource: corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), rules: templateRules[corev1.ReplicationController]()}).all(ctx)
	})
}

// Jobs are all Jobs, sorted by namespace and name, without what the containers of their pods run.
func (c *Cluster) Jobs(ctx context.Context) ([]batchv1.Job, error) {
	return once(ctx, c, "jobs", func(ctx context.Context) ([]batchv1.Job, error) {
		return (&reader[batchv1.Job]{cluster: c, resource: batchv1.SchemeGroupVersion.WithResource("jobs"), rules: templateRules[batchv1.Job]()}).all(ctx)
	})
}

// templateRules are the rules for the fields of a controller with a template of pods. Revisions of a Deployment, and
// Jobs of a CronJob, share the specs of their pods.
func templateRules[T any]() field.Rules {
	of, controller := allBut[T](), reflect.TypeFor[T]()
	dropContent(of, controller, "spec.template.spec")
	if controller != reflect.TypeFor[corev1.ReplicationController]() { // whose template is a pointer
		of.Own(controller, "metadata", "status", "spec.replicas", "spec.selector", "spec.template.metadata")
	}
	return of
}
