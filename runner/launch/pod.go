package launch

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// podFaults are about what the pod may do to the cluster and its nodes.
func podFaults(path string, spec corev1.PodSpec, images map[string]bool) []fault {
	faults := slices.Concat(
		hostFaults(path, spec), schedulingFaults(path, spec), resourceFaults(path+".resources", spec.Resources),
		podSecurityFaults(path+".securityContext", spec.SecurityContext),
	)
	for i, container := range spec.InitContainers {
		faults = append(faults, containerFaults(fmt.Sprintf("%s.initContainers[%d]", path, i), container, images)...)
	}
	for i, container := range spec.Containers {
		faults = append(faults, containerFaults(fmt.Sprintf("%s.containers[%d]", path, i), container, images)...)
	}
	if len(spec.EphemeralContainers) > 0 {
		faults = append(faults, fault{ruleManifest, path + ".ephemeralContainers", "are for running pods only"})
	}
	for i, volume := range spec.Volumes {
		faults = append(faults, volumeFaults(fmt.Sprintf("%s.volumes[%d]", path, i), volume, images)...)
	}
	return faults
}

// hostFaults are about leaving what a container is confined to.
func hostFaults(path string, spec corev1.PodSpec) []fault {
	const namespaces = "a preflight may not enter the node's namespaces"
	return faultsOf(rulePodSecurity, path, []field{
		{"hostIPC", spec.HostIPC, namespaces},
		{"hostNetwork", spec.HostNetwork, namespaces},
		{"hostPID", spec.HostPID, namespaces},
		{"runtimeClassName", spec.RuntimeClassName != nil, "a preflight may not choose how a node runs it"},
	})
}

// schedulingFaults are about other pods: a check takes what room there is, and
// pushes nobody away, since it runs next to production.
func schedulingFaults(path string, spec corev1.PodSpec) []fault {
	const push = "a preflight may not push other pods from their nodes"
	faults := faultsOf(ruleScheduling, path, []field{
		{"nodeName", spec.NodeName != "", "a preflight may not go past the scheduler"},
		{"priorityClassName", spec.PriorityClassName != "", push},
		{"priority", spec.Priority != nil, push},
		{"preemptionPolicy", other(spec.PreemptionPolicy, corev1.PreemptNever), push},
		{"overhead", len(spec.Overhead) > 0, "comes from a RuntimeClass, which a preflight may not choose"},
		{"schedulingGates", len(spec.SchedulingGates) > 0, "the pod would never start"},
		{"schedulingGroup", spec.SchedulingGroup != nil, "a check is one pod, which is scheduled by itself"},
		{"evictionResponders", len(spec.EvictionResponders) > 0, "a preflight may not delay the draining of a node"},
	})
	return append(faults, faultsOf(ruleDevice, path, []field{
		{"resourceClaims", len(spec.ResourceClaims) > 0, "a preflight may not have devices of the node"},
	})...)
}

// podSecurityFaults are those of a pod's security context.
func podSecurityFaults(path string, security *corev1.PodSecurityContext) []fault {
	if security == nil {
		return nil
	}
	faults := faultsOf(rulePodSecurity, path, []field{
		{"sysctls", len(security.Sysctls) > 0, "a preflight may not set kernel parameters"},
	})
	return append(faults, confinementFaults(path, confinement{
		security.SELinuxOptions, security.SeccompProfile, security.AppArmorProfile, security.WindowsOptions,
	})...)
}

// confinement is what a pod and a container have in common.
type confinement struct {
	selinux  *corev1.SELinuxOptions
	seccomp  *corev1.SeccompProfile
	apparmor *corev1.AppArmorProfile
	windows  *corev1.WindowsSecurityContextOptions
}

// confinementFaults follow the level "baseline" of Kubernetes' Pod Security
// Standards.
func confinementFaults(path string, c confinement) []fault {
	const unconfined = "a preflight may not run unconfined"
	var fields []field
	if c.selinux != nil {
		types := []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
		fields = append(
			fields,
			field{"seLinuxOptions.type", !slices.Contains(types, c.selinux.Type), fmt.Sprintf("a preflight may not run as %q, which containers do not", c.selinux.Type)},
			field{"seLinuxOptions.user", c.selinux.User != "", "a preflight may not be another SELinux user"},
			field{"seLinuxOptions.role", c.selinux.Role != "", "a preflight may not have another SELinux role"},
		)
	}
	if c.seccomp != nil {
		fields = append(fields, field{"seccompProfile.type", c.seccomp.Type == corev1.SeccompProfileTypeUnconfined, unconfined})
	}
	if c.apparmor != nil {
		fields = append(fields, field{"appArmorProfile.type", c.apparmor.Type == corev1.AppArmorProfileTypeUnconfined, unconfined})
	}
	if c.windows != nil {
		const domain = "a preflight may not take on an account of the Windows domain"
		fields = append(
			fields,
			field{"windowsOptions.hostProcess", isTrue(c.windows.HostProcess), "a preflight may not run on the host"},
			field{"windowsOptions.gmsaCredentialSpec", c.windows.GMSACredentialSpec != nil, domain},
			field{"windowsOptions.gmsaCredentialSpecName", c.windows.GMSACredentialSpecName != nil, domain},
		)
	}
	return faultsOf(rulePodSecurity, path, fields)
}
