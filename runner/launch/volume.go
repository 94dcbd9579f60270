package launch

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// volumeFaults allow what a pod can only read, and scratch space. Any other
// volume would let it change what outlives it.
func volumeFaults(path string, volume corev1.Volume, images map[string]bool) []fault {
	source := volume.VolumeSource
	name := sourceName(source)
	switch name {
	case "configMap", "secret", "downwardAPI", "emptyDir":
		return nil
	case "projected":
		return projectionFaults(path+".projected", *source.Projected)
	case "image":
		return imageFaults(path+".image.reference", source.Image.Reference, images)
	case "hostPath":
		return []fault{{rulePodSecurity, path + ".hostPath", fmt.Sprintf("a preflight may not mount %q of the node", source.HostPath.Path)}}
	case "":
		return []fault{{ruleVolume, path, fmt.Sprintf("volume %q has to have exactly one source", volume.Name)}}
	}
	return []fault{{
		ruleVolume, path + "." + name,
		fmt.Sprintf("volume %q is none of configMap, secret, projected, downwardAPI, emptyDir and image: a preflight may not write to storage", volume.Name),
	}}
}

// sourceName is the name of the one source that a volume has; empty where there
// is not exactly one.
func sourceName(source corev1.VolumeSource) string {
	var names []string
	value := reflect.ValueOf(source)
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return ""
	}
	return names[0]
}

// projectionFaults leave the identity of the pod to its token, by which the
// guard knows it.
func projectionFaults(path string, projected corev1.ProjectedVolumeSource) []fault {
	var faults []fault
	for i, source := range projected.Sources {
		faults = append(faults, faultsOf(ruleVolume, fmt.Sprintf("%s.sources[%d]", path, i), []field{
			{"podCertificate", source.PodCertificate != nil, "a preflight may not have an identity that the read-only guard does not know"},
		})...)
	}
	return faults
}
