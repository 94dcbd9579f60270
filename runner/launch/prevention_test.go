package launch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/alteration"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// asController returns a client of the Job controller.
func asController(t *testing.T) kubernetes.Interface {
	t.Helper()
	controller := rest.CopyConfig(config)
	controller.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:job-controller",
		Groups:   []string{"system:masters"},
	}
	client, err := kubernetes.NewForConfig(controller)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// guarded puts the guard of a plan into force.
func guarded(t *testing.T, plan jobplan.Plan) {
	t.Helper()
	launcher := newLauncher(t, config)
	t.Cleanup(func() {
		if left, err := launcher.Cleanup(context.Background(), plan.Run.ID); err != nil {
			t.Errorf("left %v: %v", left, err)
		}
	})
	if f := launcher.Guard(t.Context(), plan); f.Outcome != preflight.Pass {
		t.Fatalf("guard: %+v, want a pass", f)
	}
}

// ofController is a pod as the Job controller sends it.
func ofController(pod *corev1.Pod, job string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.GenerateName, pod.UID, pod.ResourceVersion, pod.Status = job+"-", "", "", corev1.PodStatus{}
	pod.Labels["batch.kubernetes.io/job-name"], pod.Labels["batch.kubernetes.io/controller-uid"] = job, "f2f9b8e5"
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "Job", Name: job, UID: "f2f9b8e5", Controller: new(true),
		BlockOwnerDeletion: new(true),
	}}
	return pod
}

// classes creates the classes to which the changes of pods refer.
func classes(t *testing.T) {
	t.Helper()
	priorities, runtimes := api.SchedulingV1().PriorityClasses(), api.NodeV1().RuntimeClasses()
	_, err := priorities.Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Value: 7,
		PreemptionPolicy: new(corev1.PreemptNever),
	}, metav1.CreateOptions{})
	_, ofRuntime := runtimes.Create(t.Context(), &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, Handler: "x"},
		metav1.CreateOptions{})
	if err := errors.Join(err, ofRuntime); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(priorities.Delete(context.Background(), "batch", metav1.DeleteOptions{}),
			runtimes.Delete(context.Background(), "attack", metav1.DeleteOptions{})); err != nil {
			t.Error(err)
		}
	})
}

// What counts as an alteration of a pod that exists is denied before it exists, and nothing else.
func TestAttacksByAdmissionAreDenied(t *testing.T) {
	plan, admitted := anAdmittedPod(t)
	guarded(t, plan)
	client, job, namespace := asController(t), plan.Checks[0].Job.Name, plan.Checks[0].Job.Namespace
	waitForDefaultAccount(t, namespace)
	classes(t)
	// A run that was taken over has another deadline, and the API server makes scratch space of a volume without a source.
	seenAfterwards := map[string]bool{"LaterEnd": true, "NoEnd": true, "UnknownBeside": true}
	for kind, table := range map[string]map[string]podChange{"Ordinary": ordinaryChanges(), "Hostile": hostileChanges()} {
		for name, tc := range table {
			t.Run(kind+name, func(t *testing.T) {
				pod := ofController(admitted, job)
				tc.change(pod)
				_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				prevented := err != nil && strings.Contains(err.Error(), alteration.Prevented)
				switch want := tc.differs != "" && !seenAfterwards[name]; {
				case want && !prevented && !apierrors.IsInvalid(err):
					t.Errorf("%s: %v, want it denied", tc.reason, err)
				case !want && err != nil:
					t.Errorf("%s: %v, want it accepted", tc.reason, err)
				}
			})
		}
	}
}

// A pod of the run cannot hide from its policy: what admission leaves of its identity decides that it is of the run.
func TestAttacksByHidingFromThePolicy(t *testing.T) {
	plan, admitted := anAdmittedPod(t)
	guarded(t, plan)
	client, job, namespace := asController(t), plan.Checks[0].Job.Name, plan.Checks[0].Job.Namespace
	waitForDefaultAccount(t, namespace)
	privileged := func(pod *corev1.Pod) { pod.Spec.HostPID = true }
	for name, tc := range map[string]struct {
		reason   string
		change   func(*corev1.Pod)
		accepted bool
	}{
		"Unchanged": {reason: "as planned", change: func(*corev1.Pod) {}, accepted: true},
		"WithoutOwner": {
			reason: "its name and labels are of the run",
			change: func(pod *corev1.Pod) { pod.OwnerReferences = nil; privileged(pod) },
		},
		"OtherOwner": {
			reason: "its name and labels are of another Job than its owner",
			change: func(pod *corev1.Pod) { pod.OwnerReferences[0].Name = "other" },
		},
		"OtherUID": {
			reason: "the owner is not the one of the label",
			change: func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "other" },
		},
		"WithoutLabels": {reason: "its owner is of the run", change: func(pod *corev1.Pod) { pod.Labels = nil }},
		"WithoutRun":    {reason: "no watch of the run shows the pod", change: func(pod *corev1.Pod) { delete(pod.Labels, label.Run) }},
		"OtherName": {
			reason: "the guard does not know its requests",
			change: func(pod *corev1.Pod) { pod.Name, pod.GenerateName = "", "other-" },
		},
		"OnlyTheLabel": {
			reason: "its label names the Job",
			change: func(pod *corev1.Pod) { pod.OwnerReferences, pod.Name, pod.GenerateName = nil, "", "other-" },
		},
		"NoController": {reason: "an owner that does not control it", change: func(pod *corev1.Pod) { pod.OwnerReferences[0].Controller = nil }},
		"OtherJobOfRun": {
			reason: "another Job of the run may not act on the node",
			change: func(pod *corev1.Pod) {
				other := ofController(pod, "pull-a-"+plan.Run.Suffix())
				*pod = *other
				pod.Name = ""
				privileged(pod)
			},
		},
		"PullOfRun": {
			reason: "images are pulled by Jobs without a check", accepted: true,
			change: func(pod *corev1.Pod) {
				*pod = *ofController(pod, "pull-a-"+plan.Run.Suffix())
				pod.Name = ""
			},
		},
		"Foreign": {
			reason: "a pod of another Job is not judged", accepted: true,
			change: func(pod *corev1.Pod) {
				*pod = *ofController(pod, "other")
				pod.Name = ""
				privileged(pod)
			},
		},
		"ManyVariables": {
			reason: "what exceeds the limits of the policy is denied", change: onCheck(func(container *corev1.Container) {
				for i := range 20000 {
					container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("A", i), Value: "b"})
				}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := ofController(admitted, job)
			tc.change(pod)
			_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if denied := err != nil && strings.Contains(err.Error(), "preflight-pods-"+plan.Run.Suffix()); denied == tc.accepted || tc.accepted &&
				err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// A pod that runs as planned stays so.
func TestAttacksByChangesOfARunningPod(t *testing.T) {
	launcher := newLauncher(t, config)
	plan := launcher.CopyAccounts(t.Context(), aPlan(newNamespace(t)))
	guarded(t, plan)
	pods := api.CoreV1().Pods(plan.Checks[0].Job.Namespace)
	created, err := pods.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer created.Stop()
	create(t, launcher, plan)
	pod, ok := (<-created.ResultChan()).Object.(*corev1.Pod) // of the Job controller
	if !ok {
		t.Fatal("the watch ended")
	}
	const withoutFinalizers = `{"metadata": {"finalizers": null}}`
	t.Cleanup(func() { // or the clean-up waits for it
		if _, err := pods.Patch(context.Background(), pod.Name, types.StrategicMergePatchType, []byte(withoutFinalizers),
			metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	})
	for name, tc := range map[string]struct {
		reason, patch, subresource string
		denied                     bool
	}{
		"Image": {reason: "another program", patch: `{"spec": {"containers": [{"name": "check", "image": "quay.io/other"}]}}`, denied: true},
		"Ephemeral": {
			reason:      "a container in that of the check",
			patch:       `{"spec": {"ephemeralContainers": [{"name": "debug", "image": "quay.io/other", "targetContainerName": "check"}]}}`,
			subresource: "ephemeralcontainers", denied: true,
		},
		"Network": {
			reason: "another network", patch: `{"metadata": {"annotations": {"v1.multus-cni.io/default-network": "attack"}}}`,
			denied: true,
		},
		"Finalizer": {reason: "what a controller does with each pod", patch: `{"metadata": {"finalizers": ["example.com/x"]}}`},
		"Finished":  {reason: "what a controller does with each pod", patch: withoutFinalizers},
		"Status":    {reason: "what a network writes", patch: `{"metadata": {"annotations": {"k8s.v1.cni.cncf.io/network-status": "[]"}}}`},
		"Deadline":  {reason: "it ends earlier", patch: `{"spec": {"activeDeadlineSeconds": 60}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var subresources []string
			if tc.subresource != "" {
				subresources = append(subresources, tc.subresource)
			}
			_, err := pods.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(tc.patch), metav1.PatchOptions{}, subresources...)
			if denied := err != nil && strings.Contains(err.Error(), alteration.Prevented); denied != tc.denied || !tc.denied && err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
