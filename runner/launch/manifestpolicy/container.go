package manifestpolicy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func containerViolations(path string, container corev1.Container, images map[string]bool) []Violation {
	violations := slices.Concat(
		imageViolations(path+".image", container.Image, images),
		portViolations(path, container.Ports),
		mountViolations(path, container),
		resourceViolations(path+".resources", &container.Resources),
		probeViolations(path, container),
	)
	if container.SecurityContext == nil {
		return violations
	}
	return append(violations, securityViolations(path+".securityContext", *container.SecurityContext)...)
}

// imageViolations extends the trust in the release's signature to the code that runs:
// an image must be referenced by a digest that the signed payload lists.
func imageViolations(path, image string, images map[string]bool) []Violation {
	byDigest := regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	switch {
	case image == "":
		return []Violation{{reasonRefusedImage, path, "is required"}}
	case !byDigest.MatchString(image):
		return []Violation{{reasonRefusedImage, path, fmt.Sprintf("%q is not a pull spec by digest", image)}}
	case !images[image]:
		return []Violation{{reasonRefusedImage, path, fmt.Sprintf("%q is not an image of the release", image)}}
	}
	return nil
}

func portViolations(path string, ports []corev1.ContainerPort) []Violation {
	const hostPort = "a preflight may not open ports of the node"
	var violations []Violation
	for i, port := range ports {
		violations = append(violations, violationsOf(reasonRefusedPodSecurity, fmt.Sprintf("%s.ports[%d]", path, i), []field{
			{"hostPort", port.HostPort != 0, hostPort},
			{"hostIP", port.HostIP != "", hostPort},
		})...)
	}
	return violations
}

func mountViolations(path string, container corev1.Container) []Violation {
	var violations []Violation
	for i, mount := range container.VolumeMounts {
		violations = append(violations, violationsOf(reasonRefusedVolume, fmt.Sprintf("%s.volumeMounts[%d]", path, i), []field{{
			"mountPropagation", mount.MountPropagation != nil && *mount.MountPropagation == corev1.MountPropagationBidirectional,
			"a preflight may not mount anything on the node",
		}})...)
	}
	return append(violations, violationsOf(reasonRefusedVolume, path, []field{
		{"volumeDevices", len(container.VolumeDevices) > 0, "a preflight may not use block devices"},
	})...)
}

// resourceViolations reject resources other than CPU, memory and ephemeral storage: a
// node assigns devices by the names of others.
func resourceViolations(path string, resources *corev1.ResourceRequirements) []Violation {
	if resources == nil {
		return nil
	}
	allowed := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	violations := violationsOf(reasonRefusedDevice, path, []field{
		{"claims", len(resources.Claims) > 0, "a preflight may not use devices of the node"},
	})
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			if !slices.Contains(allowed, name) {
				violations = append(violations, Violation{reasonRefusedDevice, path + "." + list.name, fmt.Sprintf("a preflight may request cpu, memory and ephemeral-storage, but not %q", name)})
			}
		}
	}
	return violations
}

// probeViolations reject requests of the kubelet, from the node's network, to another
// destination than the container, like the level "baseline" of Kubernetes' Pod
// Security Standards since 1.34.
func probeViolations(path string, container corev1.Container) []Violation {
	var violations []Violation
	add := func(name string, get *corev1.HTTPGetAction, connect *corev1.TCPSocketAction) {
		const otherHost = "a preflight may not make the kubelet connect to other hosts"
		violations = append(violations, violationsOf(reasonRefusedProbe, path+"."+name, []field{
			{"httpGet.host", get != nil && get.Host != "", otherHost},
			{"tcpSocket.host", connect != nil && connect.Host != "", otherHost},
		})...)
	}
	for _, probe := range []struct {
		name string
		is   *corev1.Probe
	}{{"livenessProbe", container.LivenessProbe}, {"readinessProbe", container.ReadinessProbe}, {"startupProbe", container.StartupProbe}} {
		if probe.is != nil {
			add(probe.name, probe.is.HTTPGet, probe.is.TCPSocket)
		}
	}
	if container.Lifecycle == nil {
		return violations
	}
	for _, hook := range []struct {
		name string
		is   *corev1.LifecycleHandler
	}{{"lifecycle.postStart", container.Lifecycle.PostStart}, {"lifecycle.preStop", container.Lifecycle.PreStop}} {
		if hook.is != nil {
			add(hook.name, hook.is.HTTPGet, hook.is.TCPSocket)
		}
	}
	return violations
}

func securityViolations(path string, security corev1.SecurityContext) []Violation {
	violations := violationsOf(reasonRefusedPodSecurity, path, []field{
		{"privileged", isTrue(security.Privileged), "a preflight may not be privileged"},
		{"allowPrivilegeEscalation", isTrue(security.AllowPrivilegeEscalation), "a preflight may not gain privileges"},
		{"procMount", other(security.ProcMount, corev1.DefaultProcMount), "a preflight may not unmask /proc"},
	})
	if security.Capabilities != nil && len(security.Capabilities.Add) > 0 {
		violations = append(violations, Violation{reasonRefusedPodSecurity, path + ".capabilities.add", fmt.Sprintf("a preflight may not add capabilities, and it adds %v", security.Capabilities.Add)})
	}
	return append(violations, confinementViolations(path, confinement{
		security.SELinuxOptions, security.SeccompProfile, security.AppArmorProfile, security.WindowsOptions,
	})...)
}
