package manifestpolicy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func podViolations(path string, spec corev1.PodSpec, images map[string]bool) []Violation {
	violations := slices.Concat(
		hostViolations(path, spec), schedulingViolations(path, spec), resourceViolations(path+".resources", spec.Resources),
		podSecurityViolations(path+".securityContext", spec.SecurityContext),
	)
	for i, container := range spec.InitContainers {
		violations = append(violations, containerViolations(fmt.Sprintf("%s.initContainers[%d]", path, i), container, images)...)
	}
	for i, container := range spec.Containers {
		violations = append(violations, containerViolations(fmt.Sprintf("%s.containers[%d]", path, i), container, images)...)
	}
	if len(spec.EphemeralContainers) > 0 {
		violations = append(violations, Violation{ReasonRefusedManifest, path + ".ephemeralContainers", "are for running pods only"})
	}
	for i, volume := range spec.Volumes {
		violations = append(violations, volumeViolations(fmt.Sprintf("%s.volumes[%d]", path, i), volume, images)...)
	}
	return violations
}

func hostViolations(path string, spec corev1.PodSpec) []Violation {
	const namespaces = "a preflight may not enter the node's namespaces"
	return violationsOf(reasonRefusedPodSecurity, path, []field{
		{"hostIPC", spec.HostIPC, namespaces},
		{"hostNetwork", spec.HostNetwork, namespaces},
		{"hostPID", spec.HostPID, namespaces},
		{"runtimeClassName", spec.RuntimeClassName != nil, "a preflight may not choose how a node runs it"},
	})
}

// schedulingViolations reject fields by which a pod would displace others or keep them
// from being scheduled: a check uses free resources only, since it runs in a
// production cluster. A second scheduler, which does not take the decisions of the
// default one into account, could overcommit a node. Tolerations, node selectors,
// resource requests and topology spread constraints affect the pod itself only.
func schedulingViolations(path string, spec corev1.PodSpec) []Violation {
	const (
		displace = "a preflight may not displace other pods"
		direct   = "a preflight may not bypass the scheduler"
	)
	violations := append(affinityViolations(path+".affinity", spec.Affinity), violationsOf(reasonRefusedScheduling, path, []field{
		{"nodeName", spec.NodeName != "", direct},
		{"schedulerName", spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName, direct},
		{"priorityClassName", spec.PriorityClassName != "", displace},
		{"priority", spec.Priority != nil, displace},
		{"preemptionPolicy", other(spec.PreemptionPolicy, corev1.PreemptNever), displace},
		{"overhead", len(spec.Overhead) > 0, "comes from a RuntimeClass, which a preflight may not choose"},
		{"schedulingGates", len(spec.SchedulingGates) > 0, "the pod would never start"},
		{"schedulingGroup", spec.SchedulingGroup != nil, "a check is one pod, which is scheduled by itself"},
		{"evictionResponders", len(spec.EvictionResponders) > 0, "a preflight may not delay the draining of a node"},
	})...)
	return append(violations, violationsOf(reasonRefusedDevice, path, []field{
		{"resourceClaims", len(spec.ResourceClaims) > 0, "a preflight may not use devices of the node"},
	})...)
}

// affinityViolations reject terms of a pod that the scheduler also applies to other
// pods. While the pod runs, required anti-affinity keeps matching pods off its
// nodes, and the other terms change how the nodes are scored for them. Topology
// spread constraints and node affinity apply to the pod itself only.
func affinityViolations(path string, affinity *corev1.Affinity) []Violation {
	if affinity == nil {
		return nil
	}
	const others = "a preflight may not influence where other pods run"
	return violationsOf(reasonRefusedScheduling, path, []field{
		{"podAffinity", affinity.PodAffinity != nil, others},
		{"podAntiAffinity", affinity.PodAntiAffinity != nil, others},
	})
}

func podSecurityViolations(path string, security *corev1.PodSecurityContext) []Violation {
	if security == nil {
		return nil
	}
	violations := violationsOf(reasonRefusedPodSecurity, path, []field{
		{"sysctls", len(security.Sysctls) > 0, "a preflight may not set kernel parameters"},
	})
	return append(violations, confinementViolations(path, confinement{
		security.SELinuxOptions, security.SeccompProfile, security.AppArmorProfile, security.WindowsOptions,
	})...)
}
