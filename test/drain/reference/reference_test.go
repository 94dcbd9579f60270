package reference_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/test/drain/lab"
	"github.com/openshift/update-preflight/test/drain/reference"
)

// small is a cluster with one pool of three nodes, w0 to w2, each with four processors.
func small() *lab.Cluster {
	c := &lab.Cluster{Namespace: "shop", Pools: []machineconfigurationv1.MachineConfigPool{{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}}}
	c.Pools[0].Spec.NodeSelector = &metav1.LabelSelector{}
	c.Priorities = []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "important"}, Value: 1000}}
	for i := range 3 {
		name := fmt.Sprintf("w%d", i)
		c.Nodes = append(c.Nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:  resource.MustParse("4"),
				corev1.ResourcePods: resource.MustParse("250"),
			}},
		})
	}
	return c
}

// pods are those of an app that request that many processors.
func pods(app, processors string, changes ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	of := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{}}}
	of.Spec.Containers = []corev1.Container{{Name: "c"}}
	if processors != "" {
		of.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(processors)}
	}
	for _, change := range changes {
		change(&of)
	}
	return of
}

func neverReady(of *corev1.PodTemplateSpec) { of.Annotations[lab.AnnotationReady] = lab.NeverReady }

func important(of *corev1.PodTemplateSpec) { of.Spec.PriorityClassName = "important" }

func onTheHost(of *corev1.PodTemplateSpec) {
	of.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
}

func on(node string) func(*corev1.PodTemplateSpec) {
	return func(of *corev1.PodTemplateSpec) { of.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

func apart(of *corev1.PodTemplateSpec) {
	of.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: of.Labels}, TopologyKey: corev1.LabelHostname,
	}}}}
}

func spread(of *corev1.PodTemplateSpec) {
	of.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: of.Labels},
	}}
}

func deploy(c *lab.Cluster, replicas int32, of corev1.PodTemplateSpec) {
	c.Deployments = append(c.Deployments, appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: of.Labels["app"]}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: of},
	})
}

func alone(c *lab.Cluster, of corev1.PodTemplateSpec) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: of.Labels["app"], Labels: of.Labels}, Spec: of.Spec}
	c.Pods = append(c.Pods, pod)
}

// budget adds a budget over the pods of an app.
func budget(c *lab.Cluster, app string, spec policyv1.PodDisruptionBudgetSpec) {
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	c.Budgets = append(c.Budgets, policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop",
		Name:      fmt.Sprintf("%s-%d", app, len(c.Budgets)),
	}, Spec: spec})
}

func atLeast(number string) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.Parse(number))}
}

func atMost(number string) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.Parse(number))}
}

// TestDrain has what the documentation of Kubernetes says of drains: in each order of the steps.
func TestDrain(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		build  func(*lab.Cluster)
		stuck  string // nodes
		absent map[string]int
	}{
		"Free": {reason: "without a budget, all pods move", build: func(c *lab.Cluster) { deploy(c, 4, pods("a", "1")) }},
		"Lost": {
			reason: "a pod without a controller is gone", build: func(c *lab.Cluster) { alone(c, pods("a", "1")) },
			absent: map[string]int{"a": 1},
		},
		"RequiresAll": {
			reason: "a budget that allows none to be unavailable",
			build:  func(c *lab.Cluster) { deploy(c, 1, pods("a", "1", on("w1"))); budget(c, "a", atMost("0")) }, stuck: "w1",
		},
		"RoundedUp": {
			reason: "half of one is one that must be available", stuck: "w1",
			build: func(c *lab.Cluster) { deploy(c, 1, pods("a", "1", on("w1"))); budget(c, "a", atLeast("50%")) },
		},
		"Surplus": {
			reason: "one of two may be unavailable",
			build:  func(c *lab.Cluster) { deploy(c, 2, pods("a", "1")); budget(c, "a", atLeast("1")) },
		},
		"Unmanaged": {
			reason: "a budget with a maximum expects no pods without a controller",
			build:  func(c *lab.Cluster) { alone(c, pods("a", "1", on("w0"))); budget(c, "a", atMost("1")) }, stuck: "w0",
		},
		"Several": {
			reason: "the API server evicts no pod with two budgets", stuck: "w0",
			build: func(c *lab.Cluster) {
				deploy(c, 1, pods("a", "1", on("w0")))
				budget(c, "a", atMost("1"))
				budget(c, "a", atMost("1"))
			},
		},
		"Unhealthy": {
			reason: "a pod that is not ready counts as unavailable", stuck: "w0",
			build: func(c *lab.Cluster) { deploy(c, 1, pods("a", "1", neverReady, on("w0"))); budget(c, "a", atLeast("1")) },
		},
		"AlwaysAllow": {
			reason: "the budget lets go pods that are not ready",
			build: func(c *lab.Cluster) {
				deploy(c, 1, pods("a", "1", neverReady))
				budget(c, "a", policyv1.PodDisruptionBudgetSpec{
					MinAvailable:               new(intstr.FromInt32(1)),
					UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
				})
			},
		},
		"Apart": {
			reason: "as many pods as nodes wait for the node that returns",
			build:  func(c *lab.Cluster) { deploy(c, 3, pods("a", "1", apart)); budget(c, "a", atMost("1")) },
		},
		"TooMany": {
			reason: "one pod more than nodes that the budget counts keeps all where they are", stuck: "w0", absent: map[string]int{"a-1": 1},
			build: func(c *lab.Cluster) { deploy(c, 4, pods("a", "1", apart)); budget(c, "a", atMost("1")) },
		},
		"HostPort": {
			reason: "pods of two apps with the same port of the host are on different nodes", stuck: "w0", absent: map[string]int{"a-1": 1},
			build: func(c *lab.Cluster) {
				deploy(c, 3, pods("a", "1", onTheHost))
				deploy(c, 1, pods("b", "1", onTheHost, important, on("w0")))
				budget(c, "b", atMost("0"))
			},
		},
		"Spread": {
			reason: "the node that is drained counts as one without pods, so no other takes a second one until it returns",
			build:  func(c *lab.Cluster) { deploy(c, 3, pods("a", "1", spread)); budget(c, "a", atMost("1")) },
		},
		"Quota": {
			reason: "the quota refuses new pods without requests", absent: map[string]int{"a-1": 2},
			build: func(c *lab.Cluster) {
				deploy(c, 2, pods("a", ""))
				c.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(
					"10")}}}}
			},
		},
		"QuotaFull": {
			reason: "the quota has room for a new pod once the old one is gone",
			build: func(c *lab.Cluster) {
				deploy(c, 2, pods("a", "1"))
				c.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(
					"2")}}}}
			},
		},
		"Preempts": {
			reason: "an important pod takes the room of another one, which finds none", stuck: "w0", absent: map[string]int{"b-1": 1},
			build: func(c *lab.Cluster) {
				deploy(c, 1, pods("a", "3", important))
				deploy(c, 2, pods("b", "3"))
				deploy(c, 1, pods("d", "100m", on("w0")))
				budget(c, "d", atMost("0"))
			},
		},
		"Daemons": {
			reason: "a drain leaves the pods of DaemonSets, whatever their budget",
			build: func(c *lab.Cluster) {
				c.DaemonSets = []appsv1.DaemonSet{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
					Spec:       appsv1.DaemonSetSpec{Template: pods("a", "1")},
				}}
				budget(c, "a", atMost("0"))
			},
		},
		"Stateful": {
			reason: "a pod of a StatefulSet is created again when the old one is gone",
			build: func(c *lab.Cluster) {
				c.StatefulSets = []appsv1.StatefulSet{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
					Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3)), Template: pods("a", "1", apart)},
				}}
				budget(c, "a", atMost("1"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			tc.build(c)
			for seed := range uint64(50) {
				random := rand.New(rand.NewPCG(seed, 0))
				settled, err := reference.Settle(*c, random)
				if err != nil {
					t.Fatal(err)
				}
				ended, err := settled.Drain(random)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.stuck, strings.Join(ended.Stuck["worker"], " ")); diff != "" {
					t.Fatalf("%s: order %d: stuck nodes: -want +got:\n%s", tc.reason, seed, diff)
				}
				if diff := cmp.Diff(fmt.Sprint(tc.absent), fmt.Sprint(ended.Absent)); diff != "" {
					t.Fatalf("%s: order %d: pods without a node: -want +got:\n%s", tc.reason, seed, diff)
				}
			}
		})
	}
}

// TestSettleRefuses what the steps do not know, instead of ignoring it.
func TestSettleRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		build  func(*lab.Cluster)
		want   string
	}{
		"Volume": {"volumes limit the nodes of a pod", func(c *lab.Cluster) {
			deploy(c, 1, pods("a", "1", func(of *corev1.PodTemplateSpec) { of.Spec.Volumes = []corev1.Volume{{Name: "v"}} }))
		}, "does not know"},
		"Limits": {"limits are requests where there are none", func(c *lab.Cluster) {
			deploy(c, 1, pods("a", "1", func(of *corev1.PodTemplateSpec) { of.Spec.Containers[0].Resources.Limits = corev1.ResourceList{} }))
		}, "does not know"},
		"Priority": {"no pod can be created", func(c *lab.Cluster) {
			deploy(c, 1, pods("a", "1", func(of *corev1.PodTemplateSpec) { of.Spec.PriorityClassName = "none" }))
		}, "does not exist"},
		"Cordoned": {"pods would come to a node that is drained", func(c *lab.Cluster) {
			deploy(c, 1, pods("a", "1", func(of *corev1.PodTemplateSpec) {
				of.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}))
		}, "cordoned"},
		"Quota": {"a number of pods is limited", func(c *lab.Cluster) {
			c.Quotas = []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(
				"2")}}}}
		}, "quotas of pods"},
	} {
		c := small()
		tc.build(c)
		if _, err := reference.Settle(*c, rand.New(rand.NewPCG(0, 0))); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: want an error with %q, got %v", name, tc.reason, tc.want, err)
		}
	}
}
