package launch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func containerFaults(path string, container corev1.Container, images map[string]bool) []fault {
	faults := slices.Concat(
		imageFaults(path+".image", container.Image, images),
		portFaults(path, container.Ports),
		mountFaults(path, container),
		resourceFaults(path+".resources", &container.Resources),
		probeFaults(path, container),
	)
	if container.SecurityContext == nil {
		return faults
	}
	return append(faults, securityFaults(path+".securityContext", *container.SecurityContext)...)
}

// imageFaults extends the trust in the release's signature to the code that is
// run: an image must be a digest that the signed payload lists.
func imageFaults(path, image string, images map[string]bool) []fault {
	byDigest := regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	switch {
	case image == "":
		return []fault{{ruleImage, path, "is required"}}
	case !byDigest.MatchString(image):
		return []fault{{ruleImage, path, fmt.Sprintf("%q is not a pull spec by digest", image)}}
	case !images[image]:
		return []fault{{ruleImage, path, fmt.Sprintf("%q is not an image of the release", image)}}
	}
	return nil
}

func portFaults(path string, ports []corev1.ContainerPort) []fault {
	const ofNode = "a preflight may not open ports of the node"
	var faults []fault
	for i, port := range ports {
		faults = append(faults, faultsOf(rulePodSecurity, fmt.Sprintf("%s.ports[%d]", path, i), []field{
			{"hostPort", port.HostPort != 0, ofNode},
			{"hostIP", port.HostIP != "", ofNode},
		})...)
	}
	return faults
}

func mountFaults(path string, container corev1.Container) []fault {
	var faults []fault
	for i, mount := range container.VolumeMounts {
		faults = append(faults, faultsOf(ruleVolume, fmt.Sprintf("%s.volumeMounts[%d]", path, i), []field{{
			"mountPropagation", mount.MountPropagation != nil && *mount.MountPropagation == corev1.MountPropagationBidirectional,
			"a preflight may not mount anything on the node",
		}})...)
	}
	return append(faults, faultsOf(ruleVolume, path, []field{
		{"volumeDevices", len(container.VolumeDevices) > 0, "a preflight may not have the devices of volumes"},
	})...)
}

// resourceFaults hold the resources to those of which every container has some.
// By the names of others a node gives away devices.
func resourceFaults(path string, resources *corev1.ResourceRequirements) []fault {
	if resources == nil {
		return nil
	}
	usual := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	faults := faultsOf(ruleDevice, path, []field{
		{"claims", len(resources.Claims) > 0, "a preflight may not have devices of the node"},
	})
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			if !slices.Contains(usual, name) {
				faults = append(faults, fault{ruleDevice, path + "." + list.name, fmt.Sprintf("a preflight may have cpu, memory and ephemeral-storage, but not %q", name)})
			}
		}
	}
	return faults
}

// probeFaults are about requests that the kubelet makes for a container, from
// the node's network: they may go to the container only. It is what the level
// "baseline" of Kubernetes' Pod Security Standards has since 1.34.
func probeFaults(path string, container corev1.Container) []fault {
	var faults []fault
	judge := func(name string, get *corev1.HTTPGetAction, connect *corev1.TCPSocketAction) {
		const elsewhere = "a preflight may not have the node connect to other hosts"
		faults = append(faults, faultsOf(ruleProbe, path+"."+name, []field{
			{"httpGet.host", get != nil && get.Host != "", elsewhere},
			{"tcpSocket.host", connect != nil && connect.Host != "", elsewhere},
		})...)
	}
	for _, probe := range []struct {
		name string
		is   *corev1.Probe
	}{{"livenessProbe", container.LivenessProbe}, {"readinessProbe", container.ReadinessProbe}, {"startupProbe", container.StartupProbe}} {
		if probe.is != nil {
			judge(probe.name, probe.is.HTTPGet, probe.is.TCPSocket)
		}
	}
	if container.Lifecycle == nil {
		return faults
	}
	for _, hook := range []struct {
		name string
		is   *corev1.LifecycleHandler
	}{{"lifecycle.postStart", container.Lifecycle.PostStart}, {"lifecycle.preStop", container.Lifecycle.PreStop}} {
		if hook.is != nil {
			judge(hook.name, hook.is.HTTPGet, hook.is.TCPSocket)
		}
	}
	return faults
}

func securityFaults(path string, security corev1.SecurityContext) []fault {
	faults := faultsOf(rulePodSecurity, path, []field{
		{"privileged", isTrue(security.Privileged), "a preflight may not be privileged"},
		{"allowPrivilegeEscalation", isTrue(security.AllowPrivilegeEscalation), "a preflight may not gain privileges"},
		{"procMount", other(security.ProcMount, corev1.DefaultProcMount), "a preflight may not unmask /proc"},
	})
	if security.Capabilities != nil && len(security.Capabilities.Add) > 0 {
		faults = append(faults, fault{rulePodSecurity, path + ".capabilities.add", fmt.Sprintf("a preflight may not add capabilities, this adds %v", security.Capabilities.Add)})
	}
	return append(faults, confinementFaults(path, confinement{
		security.SELinuxOptions, security.SeccompProfile, security.AppArmorProfile, security.WindowsOptions,
	})...)
}
