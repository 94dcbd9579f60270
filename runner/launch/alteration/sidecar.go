package alteration

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
)

// invasion returns the first field by which a container that admission adds could change
// what a check runs or reads; empty if there is none. Such a container has processes,
// files and an account of its own. It shares the network of the pod, on which a check
// trusts nothing but the certificates of the API server, and the volumes that it mounts.
// What it may have is listed, and everything else is refused, including what a later version
// of Kubernetes adds:
//   - volumes of ownVolumes. A claim, a driver or a directory of the node may have the images
//     of all containers of the node;
//   - no devices, which come with files of the node;
//   - no more privileges than the level "baseline" of Kubernetes' Pod Security Standards;
//   - the scratch space of the check only to read: it may have the input of its next
//     container. The other kinds of volumes that a check may have are read-only for every
//     container.
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
		if kind := kindOf(volume); !planned[volume.Name] && !slices.Contains(ownVolumes(), kind) {
			return differs(fmt.Sprintf("%s.volumes[%q]", path, volume.Name), kind)
		}
	}
	return cmp.Or(
		invasionBy(path+".initContainers", want.InitContainers, have.InitContainers, scratch),
		invasionBy(path+".containers", want.Containers, have.Containers, scratch),
	)
}

// ownVolumes are the kinds of volumes without files of the node, of another pod or of a
// storage driver: scratch space of the pod, and copies of what the API server has.
func ownVolumes() []string {
	return []string{"configMap", "downwardAPI", "emptyDir", "projected", "secret"}
}

// kindOf is the field of corev1.VolumeSource that is set; several are joined, and none, or one
// that this version does not know, is "unknown".
func kindOf(volume corev1.Volume) string {
	var kinds []string
	source := reflect.ValueOf(volume.VolumeSource)
	for at := range source.NumField() {
		if !source.Field(at).IsZero() {
			name, _, _ := strings.Cut(source.Type().Field(at).Tag.Get("json"), ",")
			kinds = append(kinds, name)
		}
	}
	return cmp.Or(strings.Join(kinds, ", "), "unknown")
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
		if found := privileges(path+".securityContext", *container.SecurityContext); found != "" {
			return found
		}
	}
	if len(container.VolumeDevices) > 0 {
		return differs(path+".volumeDevices", container.VolumeDevices[0].Name)
	}
	resources := container.Resources.DeepCopy()
	acceptResources(resources)
	if !equality.Semantic.DeepEqual(*resources, corev1.ResourceRequirements{}) {
		return differs(path+".resources", resources)
	}
	for _, mount := range container.VolumeMounts {
		if mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone {
			return differs(path+".volumeMounts.mountPropagation", *mount.MountPropagation)
		}
		if !mount.ReadOnly && slices.Contains(scratch, mount.Name) {
			return differs(path+".volumeMounts", mount.Name)
		}
	}
	return ""
}

// privileges returns the first field by which a container with this context could act on the node
// or on the network of the pod. Fields that confine it more, or change its user, have no such effect;
// every other field must have no value.
func privileges(path string, security corev1.SecurityContext) string {
	if capabilities := security.Capabilities; capabilities != nil {
		for _, capability := range capabilities.Add {
			if !slices.Contains(ownCapabilities(), capability) {
				return differs(path+".capabilities.add", capability)
			}
		}
	}
	rest := *security.DeepCopy()
	rest.Capabilities = nil
	rest.RunAsUser, rest.RunAsGroup, rest.RunAsNonRoot, rest.ReadOnlyRootFilesystem = nil, nil, nil, nil
	rest.AllowPrivilegeEscalation = nil // by programs of its own image, within its capabilities
	rest.Privileged = open(nil, rest.Privileged, isFalse)
	rest.ProcMount = open(nil, rest.ProcMount, func(mount corev1.ProcMountType) bool { return mount == corev1.DefaultProcMount })
	rest.SELinuxOptions = open(nil, rest.SELinuxOptions, manifestpolicy.Confined)
	rest.SeccompProfile = open(nil, rest.SeccompProfile, func(of corev1.SeccompProfile) bool { return of.Type != corev1.SeccompProfileTypeUnconfined })
	rest.AppArmorProfile = open(nil, rest.AppArmorProfile, func(of corev1.AppArmorProfile) bool { return of.Type != corev1.AppArmorProfileTypeUnconfined })
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rest)
	if err != nil {
		return differs(path, err.Error())
	}
	return compareFields(path, map[string]any{}, fields)
}

// ownCapabilities act on the files and processes of a container: those of the level "baseline"
// of Kubernetes' Pod Security Standards. Without NET_ADMIN and NET_RAW, by which the init container
// of a service mesh redirects the connections of the check.
func ownCapabilities() []corev1.Capability {
	return []corev1.Capability{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
		"SETPCAP", "SETUID", "SYS_CHROOT",
	}
}
