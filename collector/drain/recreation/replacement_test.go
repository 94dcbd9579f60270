package recreation_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/recreation"
)

// cluster is a ReplicaSet with the template of its pod, before changes.
type cluster struct {
	set       appsv1.ReplicaSet
	pod       corev1.Pod
	namespace metav1.PartialObjectMetadata
	input     recreation.Input
}

func newCluster() *cluster {
	spec := template(list("cpu", "1"), nil).Spec
	spec.SecurityContext, spec.ServiceAccountName = &corev1.PodSecurityContext{}, "default"
	c := &cluster{namespace: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	c.set = appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec:       appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: *spec.DeepCopy()}},
	}
	c.pod = corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-0"}, Spec: *spec.DeepCopy()}
	c.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart", Controller: new(true)}}
	return c
}

func (c *cluster) answer() recreation.Answer {
	c.input.ReplicaSets, c.input.Namespaces = []appsv1.ReplicaSet{c.set}, []metav1.PartialObjectMetadata{c.namespace}
	return recreation.New(c.input).Of(&c.pod)
}

// TestReplacement has what is created in the place of a pod.
func TestReplacement(t *testing.T) {
	t.Parallel()
	deployed := func(c *cluster) {
		c.set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "cart", Controller: new(true)}}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*cluster)
		want   recreation.Outcome
		why    string
		// other is whether another pod is created, on which depends where it runs.
		other func(*corev1.Pod) bool
	}{
		"Same": {reason: "the pod is of the template", change: func(*cluster) {}, want: recreation.Recreated},
		"Selector": {
			reason: "the template selects other nodes", want: recreation.Recreated,
			change: func(c *cluster) { c.set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "nvme"} },
			other:  func(pod *corev1.Pod) bool { return pod.Spec.NodeSelector["disk"] == "nvme" },
		},
		"NoSelector": {
			reason: "the template selects no nodes any more", want: recreation.Recreated,
			change: func(c *cluster) { c.pod.Spec.NodeSelector = map[string]string{"disk": "nvme"} },
			other:  func(pod *corev1.Pod) bool { return len(pod.Spec.NodeSelector) == 0 },
		},
		"Project": {
			reason: "the nodes of the project are added by admission", want: recreation.Recreated,
			change: func(c *cluster) {
				c.namespace.Annotations = map[string]string{"openshift.io/node-selector": "disk=nvme"}
				c.pod.Spec.NodeSelector = map[string]string{"disk": "nvme"}
			},
		},
		"ProjectChanged": {
			reason: "the nodes of the project are others now", want: recreation.Recreated,
			change: func(c *cluster) {
				c.namespace.Annotations = map[string]string{"openshift.io/node-selector": "disk=nvme"}
			},
			other: func(pod *corev1.Pod) bool { return pod.Spec.NodeSelector["disk"] == "nvme" },
		},
		"Tolerations": {
			reason: "what a pod has besides is of admission", want: recreation.Recreated,
			change: func(c *cluster) {
				c.pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady}}
			},
		},
		"Webhook": {
			reason: "a webhook gave the pod of a Deployment other requests, and does so again", want: recreation.Recreated,
			change: func(c *cluster) { deployed(c); c.pod.Spec.Containers[0].Resources.Requests = list("cpu", "2") },
		},
		"Resized": {
			reason: "the requests of a running pod were changed in place", want: recreation.Recreated,
			change: func(c *cluster) {
				deployed(c)
				c.pod.Generation, c.pod.Spec.Containers[0].Resources.Requests = 2, list("cpu", "2")
			},
			other: func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Resources.Requests.Cpu().Value() == 1 },
		},
		"Gated": {
			reason: "a gate that was lifted from the pod comes again", want: recreation.Recreated,
			change: func(c *cluster) {
				deployed(c)
				c.set.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
			},
			other: func(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) == 1 },
		},
		"Finalizer": {
			reason: "a finalizer that was removed from the pod comes again", want: recreation.Recreated,
			change: func(c *cluster) { deployed(c); c.set.Spec.Template.Finalizers = []string{"example.com/keep"} },
			other:  func(pod *corev1.Pod) bool { return len(pod.Finalizers) == 1 },
		},
		"Priority": {
			reason: "the class of the template has a value now", want: recreation.Recreated,
			change: func(c *cluster) {
				c.set.Spec.Template.Spec.PriorityClassName = "high"
				c.set.Spec.Template.Spec.HostNetwork = true
				c.input.Priorities = []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7}}
			},
			other: func(pod *corev1.Pod) bool { return *pod.Spec.Priority == 7 },
		},
		"NoAccount": {
			reason: "the ServiceAccount was deleted", want: recreation.Refused, why: `ServiceAccount "default", which does not exist`,
			change: func(c *cluster) {
				c.input.Accounts = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}}}
			},
		},
		"Level": {
			reason: "the namespace has a level of Pod Security that the pod exceeds", want: recreation.Refused, why: "privileged",
			change: func(c *cluster) {
				c.namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
				for _, spec := range []*corev1.PodSpec{&c.pod.Spec, &c.set.Spec.Template.Spec} {
					spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
				}
			},
		},
		"LevelUnread": {
			reason: "the security of the pod was not collected", want: recreation.Recreated,
			change: func(c *cluster) {
				c.namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
				c.pod.Spec.SecurityContext = nil
			},
		},
		"Failing": {
			reason: "the controller cannot create pods now", want: recreation.Refused, why: "denied the request",
			change: func(c *cluster) { c.set.Status.Conditions = failing(`admission webhook "a" denied the request`) },
		},
		"FailingByQuota": {
			reason: "a quota has room once the pod is gone", want: recreation.Recreated,
			change: func(c *cluster) {
				c.set.Status.Conditions = failing(`pods "cart-1" is forbidden: exceeded quota: compute`)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			got := c.answer()
			if got.Outcome != tc.want || !strings.Contains(got.Why, tc.why) {
				t.Errorf("%s: got %s, %q by %q", tc.reason, got.Outcome, got.Why, got.By)
			}
			if (got.Pod != nil) != (tc.other != nil) || got.Pod != nil && !tc.other(got.Pod) {
				t.Errorf("%s: created %+v", tc.reason, got.Pod)
			}
		})
	}
}

func failing(message string) []appsv1.ReplicaSetCondition {
	return []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: message}}
}
