package zoo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// slowness is how long a slow animal takes, as that of test/e2e/zoo. It is longer than the
// time until a run renews its Lease.
const slowness = 3 * time.Second

// await waits until the check of a pod has ended, and returns the end that the zoo program
// has with the same argument. The endings of simulated animals are a part of those of the
// program: "pass", "fail", "slow", "patient" and "sleep", which only its deletion ends.
func (n *node) await(ctx context.Context, pod *corev1.Pod) (*corev1.ContainerStateTerminated, error) {
	switch ending := pod.Spec.Containers[0].Command[1]; ending {
	case "pass":
		return end(pod, preflight.Pass)
	case "fail":
		return end(pod, preflight.Fail)
	case "slow":
		select {
		case <-time.After(slowness):
			return end(pod, preflight.Pass)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	case "patient":
		if err := n.awaitGo(ctx, pod.Namespace); err != nil {
			return nil, err
		}
		return end(pod, preflight.Pass)
	case "sleep":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	default:
		return &corev1.ContainerStateTerminated{
			Reason: "Error", ExitCode: preflight.ExitUsage,
			Message: fmt.Sprintf("the ending %q is not simulated", ending),
		}, nil
	}
}

// end is the end of a container whose check has this outcome.
func end(pod *corev1.Pod, outcome preflight.Outcome) (*corev1.ContainerStateTerminated, error) {
	found := preflight.Finding{Name: "Animal", Outcome: outcome, Reason: "Passed", Message: "The animal is well."}
	ended := &corev1.ContainerStateTerminated{Reason: "Completed"}
	if outcome == preflight.Fail {
		found.Reason, found.Message, found.Remediation = "CheckFailed", "the animal is ill", "feed the animal"
		ended.Reason, ended.ExitCode = "Error", preflight.ExitFail
	}
	result := preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{found}}
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == "PREFLIGHT_RUN_ID" {
			result.RunID = variable.Value
		}
	}
	frame, err := result.Frame(0)
	ended.Message = string(frame)
	return ended, err
}

// awaitGo returns when the ConfigMap "go" exists in a namespace.
func (n *node) awaitGo(ctx context.Context, namespace string) error {
	selector := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "go").String()}
	for {
		events, err := n.client.CoreV1().ConfigMaps(namespace).Watch(ctx, selector)
		if err == nil {
			_, exists := <-events.ResultChan()
			events.Stop()
			if exists {
				return nil
			}
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// statusPatch is a patch with a status.
func statusPatch(status corev1.PodStatus) []byte {
	patch, _ := json.Marshal(map[string]any{"status": status}) // it has no value that JSON lacks
	return patch
}
