package workload

import (
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/finding"
)

// nextRevision is the hash of the pods that a rollout adds: no pod has it.
const nextRevision = "next-revision"

// rollout is a Deployment for whose next pod there is no node, or of which that is unknown.
type rollout struct {
	deployment string
	reason     finding.Reason
	why        string
}

// rollouts are the Deployments that have no node for the pod by which their rollout starts. Each is
// placed by itself: rollouts of several Deployments end one after another.
func (s *State) rollouts() []rollout {
	var found []rollout
	var surging []*appsv1.Deployment
	for i := range s.deployments {
		needs, err := surges(&s.deployments[i])
		switch {
		case err != nil:
			found = append(found, rollout{s.deployments[i].Name, reasonRoomUnknown, err.Error()})
		case needs:
			surging = append(surging, &s.deployments[i])
		}
	}
	if len(surging) == 0 {
		return found
	}
	pods := slices.Clip(s.all)
	for _, deployment := range surging {
		pods = append(pods, nextPod(deployment))
	}
	// Claims are not read: the placement of a pod with a volume is unknown.
	cluster := placement.Compile(placement.Input{Nodes: s.nodes, Pods: pods, Namespaces: s.namespaces, Unread: true})
	state := cluster.State()
	for i := range s.all {
		if node := cluster.Node(s.all[i].Spec.NodeName); node >= 0 && running(&s.all[i]) {
			state.Add(&cluster.Pods[i], node)
		}
	}
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the choice among suitable nodes does not change the result
	for i, deployment := range surging {
		pod := &cluster.Pods[len(s.all)+i]
		node, why := state.Find(pod, placement.Any, random)
		switch {
		case pod.Unknown != "":
			found = append(found, rollout{deployment.Name, reasonRoomUnknown, pod.Unknown})
		case pod.Impossible != "":
			found = append(found, rollout{deployment.Name, reasonNoSurge, pod.Impossible})
		case node < 0:
			found = append(found, rollout{deployment.Name, reasonNoSurge, why.String()})
		}
	}
	return found
}

// nextPod is a pod of the next revision of a Deployment.
func nextPod(d *appsv1.Deployment) corev1.Pod {
	template := d.Spec.Template.DeepCopy()
	pod := corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = d.Namespace, d.Name+"-next"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = nextRevision
	if affinity := pod.Spec.Affinity; affinity != nil {
		if affinity.PodAntiAffinity != nil {
			mergeKeys(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, pod.Labels)
		}
		if affinity.PodAffinity != nil {
			mergeKeys(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, pod.Labels)
		}
	}
	return pod
}

// mergeKeys adds matchLabelKeys and mismatchLabelKeys to the selectors, as the API server does when it
// creates a pod (kubernetes pkg/registry/core/pod, applyMatchLabelKeysAndMismatchLabelKeys).
func mergeKeys(terms []corev1.PodAffinityTerm, labels map[string]string) {
	for i := range terms {
		if terms[i].LabelSelector == nil {
			continue
		}
		add := func(keys []string, operator metav1.LabelSelectorOperator) {
			for _, key := range keys {
				if value, ok := labels[key]; ok {
					terms[i].LabelSelector.MatchExpressions = append(terms[i].LabelSelector.MatchExpressions,
						metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
				}
			}
		}
		add(terms[i].MatchLabelKeys, metav1.LabelSelectorOpIn)
		add(terms[i].MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
}

// limits are how many pods a rolling update may add and remove, of that many replicas.
func limits(rolling *appsv1.RollingUpdateDeployment, replicas int) (surge, unavailable int, err error) {
	quarter := intstr.FromString("25%")
	maxSurge, maxUnavailable := &quarter, &quarter
	if rolling != nil && rolling.MaxSurge != nil {
		maxSurge = rolling.MaxSurge
	}
	if rolling != nil && rolling.MaxUnavailable != nil {
		maxUnavailable = rolling.MaxUnavailable
	}
	if surge, err = intstr.GetScaledValueFromIntOrPercent(maxSurge, replicas, true); err != nil {
		return 0, 0, err
	}
	if unavailable, err = intstr.GetScaledValueFromIntOrPercent(maxUnavailable, replicas, false); err != nil {
		return 0, 0, err
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable, nil
}
