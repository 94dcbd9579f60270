package manifestpolicy

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// volumeViolations reject volumes other than read-only ones and scratch space, which would outlive the pod.
func volumeViolations(path string, volume corev1.Volume, images map[string]bool) []Violation {
	source := volume.VolumeSource
	name := sourceName(source)
	switch name {
	case "configMap", "secret", "downwardAPI", "emptyDir":
		return nil
	case "projected":
		return projectionViolations(path+".projected", *source.Projected)
	case "image":
		return imageViolations(path+".image.reference", source.Image.Reference, images)
	case "hostPath":
		return []Violation{{reasonRefusedPodSecurity, path + ".hostPath", fmt.Sprintf("a preflight may not mount %q of the node", source.HostPath.Path)}}
	case "":
		return []Violation{{reasonRefusedVolume, path, fmt.Sprintf("volume %q must have exactly one source", volume.Name)}}
	}
	return []Violation{{
		reasonRefusedVolume, path + "." + name,
		fmt.Sprintf("volume %q is none of configMap, secret, projected, downwardAPI, emptyDir and image: a preflight may not write to storage", volume.Name),
	}}
}

// sourceName is the name of the source of a volume; empty unless it has exactly one.
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

// projectionViolations reject identities other than the token of the pod, by which the guard identifies it.
func projectionViolations(path string, projected corev1.ProjectedVolumeSource) []Violation {
	var violations []Violation
	for i, source := range projected.Sources {
		violations = append(violations, violationsOf(reasonRefusedVolume, fmt.Sprintf("%s.sources[%d]", path, i), []field{
			{"podCertificate", source.PodCertificate != nil, "a preflight may not have an identity that the read-only guard does not recognize"},
		})...)
	}
	return violations
}
