package conformance_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openshift/update-preflight/runner/conformance"
)

// Each trial has one restriction; without it, the pod is the same in all trials.
func TestTrials(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, trial string
		requests      string
		want          []string
	}{
		"AsIs":  {reason: "the unchanged check has no restriction", trial: conformance.AsIs},
		"Again": {reason: "the second run has none either", trial: conformance.Again},
		"Killed": {
			reason: "it waits for an API server that does not respond until it is killed", trial: conformance.Killed,
			want: []string{"API server 192.0.2.1", "SIGKILL on linux"},
		},
		"Terminated": {
			reason: "it waits for an API server that does not respond until it is terminated", trial: conformance.Terminated,
			want: []string{"API server 192.0.2.1"},
		},
		"NonRoot":  {reason: "the kubelet rejects an image that runs as root", trial: conformance.NonRoot, want: []string{"non-root"}},
		"ReadOnly": {reason: "the file system of the image is read-only", trial: conformance.ReadOnly, want: []string{"read-only"}},
		"Memory":   {reason: "a preflight runs many checks concurrently", trial: conformance.Memory, want: []string{"128Mi of memory"}},
		"Requests": {
			reason: "requests must not exceed limits", trial: conformance.Memory, requests: "1Gi",
			want: []string{"128Mi of memory", "requests 128Mi"},
		},
		"Fewer": {
			reason: "smaller requests are kept", trial: conformance.Memory, requests: "50Mi",
			want: []string{"128Mi of memory", "requests 50Mi"},
		},
		"Budget": {reason: "the least that a runner may grant", trial: conformance.Budget, want: []string{"512 bytes"}},
		"CutOff": {reason: "a request fails at once", trial: conformance.CutOff, want: []string{"API server 127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			check := conformance.Planned(subject(t, reading))
			container := &check.Job.Spec.Template.Spec.Containers[0]
			container.Env = append(container.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "kubernetes.example.com"})
			if tc.requests != "" {
				container.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(tc.requests)}
			}
			job := conformance.Prepared(check)[tc.trial]
			if *job.Spec.BackoffLimit != 0 || *job.Spec.Template.Spec.TerminationGracePeriodSeconds != 5 {
				t.Errorf("%s: backoffLimit %d, grace period %d s; want one pod that ends soon", tc.reason, *job.Spec.BackoffLimit,
					*job.Spec.Template.Spec.TerminationGracePeriodSeconds)
			}
			if diff := cmp.Diff(tc.want, restrictions(job.Spec.Template.Spec)); diff != "" {
				t.Errorf("%s: restrictions (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// restrictions are the parts of a pod that a trial changes.
func restrictions(pod corev1.PodSpec) []string {
	container := pod.Containers[0]
	var all []string
	for _, variable := range container.Env {
		switch {
		case variable.Name == "KUBERNETES_SERVICE_HOST" && variable.Value != "kubernetes.example.com":
			all = append(all, "API server "+variable.Value)
		case variable.Name == "PREFLIGHT_RESULT_BYTES" && variable.Value != "4096":
			all = append(all, variable.Value+" bytes")
		}
	}
	if limit, ok := container.Resources.Limits[corev1.ResourceMemory]; ok {
		all = append(all, limit.String()+" of memory")
	}
	if requests, ok := container.Resources.Requests[corev1.ResourceMemory]; ok {
		all = append(all, "requests "+requests.String())
	}
	if pod.OS != nil || container.Lifecycle != nil {
		all = append(all, fmt.Sprintf("%s on %s", *container.Lifecycle.StopSignal, pod.OS.Name))
	}
	if container.SecurityContext.RunAsNonRoot != nil {
		all = append(all, "non-root")
	}
	if container.SecurityContext.ReadOnlyRootFilesystem != nil {
		all = append(all, "read-only")
	}
	return all
}
