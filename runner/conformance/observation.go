package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

func readPod(ctx context.Context, client kubernetes.Interface, check jobplan.Check) (requirement.Attempt, error) {
	pods, err := podsOf(ctx, client, check)
	if err != nil || len(pods) == 0 {
		return requirement.Attempt{}, err
	}
	newest := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	left := requirement.Observe(check, newest)
	if left.End == nil {
		return left, nil
	}
	log, err := logOf(ctx, client, newest, check.Job.Spec.Template.Spec.Containers[0].Name)
	if err != nil {
		return requirement.Attempt{}, err
	}
	return left.Logged(check, log), nil
}

func podsOf(ctx context.Context, client kubernetes.Interface, check jobplan.Check) ([]corev1.Pod, error) {
	selection := ofRun(check.Job.Labels[label.Run])
	selection.LabelSelector += "," + labels.Set{"job-name": check.Job.Name}.String()
	pods, err := client.CoreV1().Pods(check.Job.Namespace).List(ctx, selection)
	if err != nil {
		return nil, fmt.Errorf("could not list the pods of Job %q: %w", check.Job.Name, err)
	}
	return pods.Items, nil
}

func ofRun(run string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set{label.Run: run}.String()}
}

// logOf returns the first maxLog+1 bytes of the check's log.
func logOf(ctx context.Context, client kubernetes.Interface, pod corev1.Pod, container string) ([]byte, error) {
	stream, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, LimitBytes: new(int64(requirement.MaxLog + 1)),
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	text, err := io.ReadAll(io.LimitReader(stream, requirement.MaxLog+1))
	if err := errors.Join(err, stream.Close()); err != nil {
		return nil, fmt.Errorf("could not read the log of pod %q: %w", pod.Name, err)
	}
	return text, nil
}
