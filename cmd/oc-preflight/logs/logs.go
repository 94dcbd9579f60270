// Package logs answers: what has a check printed?
//
// It reads the logs of the containers of the Job's pods while they exist.
package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/label"
)

// Needs are the permissions to find the Job of a check and to read and follow the
// logs of its pods. The namespace is not known beforehand.
func Needs() access.Needs {
	return access.Needs{Required: slices.Concat(
		access.Verbs(access.Request{Group: batchv1.GroupName, Resource: "jobs"}, "list", "watch"),
		access.Verbs(access.Request{Resource: "pods"}, "list", "watch"),
		access.Verbs(access.Request{Resource: "pods", Subresource: "log"}, "get"),
	)}
}

// Find is the Job of a check of a run in a namespace, or in all for an empty one; nil when there is none.
func Find(ctx context.Context, client kubernetes.Interface, namespace, runID, check string) (*batchv1.Job, error) {
	selector := labels.Set{label.Run: runID}.String()
	listed, err := client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("could not list the Jobs of run %s: %w", runID, err)
	}
	for i := range listed.Items {
		if listed.Items[i].Annotations[label.AnnotationCheck] == check {
			return &listed.Items[i], nil
		}
	}
	return nil, nil
}

// Copy writes the output of the pods of a Job so far, the oldest first. It returns
// the number of pods; without pods nothing is written.
func Copy(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, sink Sink) (int, error) {
	listed, err := client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: ofJob(job)})
	if err != nil {
		return 0, fmt.Errorf("could not list the pods of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	slices.SortFunc(listed.Items, func(a, b corev1.Pod) int { return oldestFirst(&a, &b) })
	var all []container
	for i := range listed.Items {
		all = append(all, containersOf(&listed.Items[i])...)
	}
	for _, each := range all {
		out := sink.one(each)
		if len(all) == 1 {
			out = sink.only(each)
		}
		if err := each.copy(ctx, client, out); err != nil {
			return len(listed.Items), err
		}
	}
	return len(listed.Items), nil
}

func ofJob(job *batchv1.Job) string { return labels.Set{batchv1.JobNameLabel: job.Name}.String() }

// copy writes the log of the previous start of a container, then its log.
func (c container) copy(ctx context.Context, client kubernetes.Interface, out *output) error {
	if c.status.LastTerminationState.Terminated != nil {
		out.note("output of the previous start:")
		before := *out // another log than the current one
		if err := errors.Join(c.stream(ctx, client, &corev1.PodLogOptions{Previous: true}, &before), before.flush()); err != nil {
			out.note("the output of the previous start is no longer available: " + err.Error())
		}
	}
	if !c.started() {
		out.note(c.waiting())
		return nil
	}
	return errors.Join(c.stream(ctx, client, &corev1.PodLogOptions{}, out), out.flush())
}

// stream writes one log, without what was written of it before.
func (c container) stream(ctx context.Context, client kubernetes.Interface, options *corev1.PodLogOptions, out *output) error {
	options.Container = c.name
	body, err := client.CoreV1().Pods(c.namespace).GetLogs(c.pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("could not read the log of container %s in pod %s/%s: %w", c.name, c.namespace, c.pod, err)
	}
	defer body.Close() //nolint:errcheck // nothing was written
	if err := out.copy(body); err != nil {
		return fmt.Errorf("the log of container %s in pod %s/%s was cut off: %w", c.name, c.namespace, c.pod, err)
	}
	return nil
}
