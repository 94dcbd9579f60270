package alteration

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// invasion returns the first field by which a container that admission adds could change
// what a check runs or reads; empty if there is none. Such a container has processes,
// files and an account of its own. It shares the network of the pod, on which a check
// trusts nothing but the certificates of the API server, and the volumes that it mounts.
// It is left the node, and what a check writes:
//   - a privileged container, and one with a directory of the node, replaces the files of
//     all others;
//   - scratch space of the check may have the input of its next container. The other
//     kinds of volumes that a check may have are read-only for every container.
func invasion(path string, want, have corev1.PodSpec) string {
	planned := map[string]bool{}
	var scratch []string
	for _, volume := range want.Volumes {
		planned[volume.Name] = true
		if volume.EmptyDir != nil {
			scratch = append(scratch, volume.Name)
		}
	}
	for _, volume := range have.Volumes {
		if !planned[volume.Name] && volume.HostPath != nil {
			return differs(fmt.Sprintf("%s.volumes[%q].hostPath.path", path, volume.Name), volume.HostPath.Path)
		}
	}
	return cmp.Or(
		invasionBy(path+".initContainers", want.InitContainers, have.InitContainers, scratch),
		invasionBy(path+".containers", want.Containers, have.Containers, scratch),
	)
}

// invasionBy is invasion by the containers that a list has and the planned one has not.
func invasionBy(path string, want, have []corev1.Container, scratch []string) string {
	for _, container := range have {
		if slices.ContainsFunc(want, func(other corev1.Container) bool { return other.Name == container.Name }) {
			continue
		}
		if found := invades(fmt.Sprintf("%s[%q]", path, container.Name), container, scratch); found != "" {
			return found
		}
	}
	return ""
}

// invades returns the first field by which one added container could.
func invades(path string, container corev1.Container, scratch []string) string {
	if container.SecurityContext != nil {
		if found := controlsNode(path+".securityContext", *container.SecurityContext); found != "" {
			return found
		}
	}
	for _, mount := range container.VolumeMounts {
		if !mount.ReadOnly && slices.Contains(scratch, mount.Name) {
			return differs(path+".volumeMounts", mount.Name)
		}
	}
	return ""
}

// controlsNode returns the first field by which a container with this context could act on
// the node.
func controlsNode(path string, security corev1.SecurityContext) string {
	if security.Privileged != nil && *security.Privileged {
		return differs(path+".privileged", true)
	}
	if windows := security.WindowsOptions; windows != nil && windows.HostProcess != nil && *windows.HostProcess {
		return differs(path+".windowsOptions.hostProcess", true)
	}
	if security.Capabilities == nil {
		return ""
	}
	for _, capability := range security.Capabilities.Add {
		if !slices.Contains(ownCapabilities(), capability) {
			return differs(path+".capabilities.add", capability)
		}
	}
	return ""
}

// ownCapabilities act on the files and processes of a container, and on the network of
// its pod: those of the level "baseline" of Kubernetes' Pod Security Standards, and the
// two by which a service mesh redirects connections.
func ownCapabilities() []corev1.Capability {
	return []corev1.Capability{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
		"SETPCAP", "SETUID", "SYS_CHROOT", "NET_ADMIN", "NET_RAW",
	}
}
