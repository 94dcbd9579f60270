package launch

import (
	"fmt"
	"regexp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// The rules that a manifest may break. They are the reasons of the findings
// that refuse it.
const (
	ruleManifest    = "RefusedManifest"
	ruleImage       = "RefusedImage"
	rulePodSecurity = "RefusedPodSecurity"
	ruleVolume      = "RefusedVolume"
	ruleRBAC        = "RefusedRBAC"
)

// fault is one thing in a manifest that a preflight may not have.
type fault struct {
	rule, path, text string
}

func (f fault) String() string {
	return f.path + ": " + f.text
}

// jobFaults are the faults of a Job in a release with these images.
func jobFaults(job *batchv1.Job, images map[string]bool) []fault {
	return append(shapeFaults(job), podFaults(job.Spec.Template.Spec, images)...)
}

// shapeFaults are about the Job itself: a check is one pod that runs to its
// end, in the namespace that its author chose.
func shapeFaults(job *batchv1.Job) []fault {
	var faults []fault
	refuse := func(path, format string, args ...any) {
		faults = append(faults, fault{ruleManifest, path, fmt.Sprintf(format, args...)})
	}
	if job.Name == "" {
		refuse("metadata.name", "is required")
	}
	if job.Namespace == "" {
		refuse("metadata.namespace", "is required: a preflight has no namespace of its own")
	}
	if n := job.Spec.Completions; n != nil && *n != 1 {
		refuse("spec.completions", "is %d, a check is one pod", *n)
	}
	if n := job.Spec.Parallelism; n != nil && *n != 1 {
		refuse("spec.parallelism", "is %d, a check is one pod", *n)
	}
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		refuse("spec.suspend", "the Job would never start")
	}
	if job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName {
		refuse("spec.managedBy", "the Job would not be run by Kubernetes' own controller")
	}
	return faults
}

// podFaults are about what the pod may do to the cluster and its nodes.
func podFaults(spec corev1.PodSpec, images map[string]bool) []fault {
	const root = "spec.template.spec"
	faults := hostFaults(root, spec)
	for i, container := range spec.InitContainers {
		faults = append(faults, containerFaults(fmt.Sprintf("%s.initContainers[%d]", root, i), container, images)...)
	}
	for i, container := range spec.Containers {
		faults = append(faults, containerFaults(fmt.Sprintf("%s.containers[%d]", root, i), container, images)...)
	}
	if len(spec.EphemeralContainers) > 0 {
		faults = append(faults, fault{ruleManifest, root + ".ephemeralContainers", "are for running pods only"})
	}
	for i, volume := range spec.Volumes {
		faults = append(faults, volumeFaults(fmt.Sprintf("%s.volumes[%d]", root, i), volume, images)...)
	}
	return faults
}

func hostFaults(root string, spec corev1.PodSpec) []fault {
	var faults []fault
	for _, field := range []struct {
		name string
		set  bool
	}{{"hostIPC", spec.HostIPC}, {"hostNetwork", spec.HostNetwork}, {"hostPID", spec.HostPID}} {
		if field.set {
			faults = append(faults, fault{rulePodSecurity, root + "." + field.name, "a preflight may not enter the node's namespaces"})
		}
	}
	security := spec.SecurityContext
	if security == nil {
		return faults
	}
	if len(security.Sysctls) > 0 {
		faults = append(faults, fault{rulePodSecurity, root + ".securityContext.sysctls", "a preflight may not set kernel parameters"})
	}
	if hostProcess(security.WindowsOptions) {
		faults = append(faults, fault{rulePodSecurity, root + ".securityContext.windowsOptions.hostProcess", "a preflight may not run on the host"})
	}
	return faults
}

func containerFaults(path string, container corev1.Container, images map[string]bool) []fault {
	faults := imageFaults(path+".image", container.Image, images)
	for i, port := range container.Ports {
		if port.HostPort != 0 {
			faults = append(faults, fault{rulePodSecurity, fmt.Sprintf("%s.ports[%d].hostPort", path, i), "a preflight may not open ports of the node"})
		}
	}
	if container.SecurityContext == nil {
		return faults
	}
	return append(faults, securityFaults(path+".securityContext", *container.SecurityContext)...)
}

func securityFaults(path string, security corev1.SecurityContext) []fault {
	var faults []fault
	if isTrue(security.Privileged) {
		faults = append(faults, fault{rulePodSecurity, path + ".privileged", "a preflight may not be privileged"})
	}
	if isTrue(security.AllowPrivilegeEscalation) {
		faults = append(faults, fault{rulePodSecurity, path + ".allowPrivilegeEscalation", "a preflight may not gain privileges"})
	}
	if security.Capabilities != nil && len(security.Capabilities.Add) > 0 {
		faults = append(faults, fault{rulePodSecurity, path + ".capabilities.add", fmt.Sprintf("a preflight may not add capabilities, this adds %v", security.Capabilities.Add)})
	}
	if security.ProcMount != nil && *security.ProcMount != corev1.DefaultProcMount {
		faults = append(faults, fault{rulePodSecurity, path + ".procMount", fmt.Sprintf("a preflight may not unmask /proc, this says %q", *security.ProcMount)})
	}
	if hostProcess(security.WindowsOptions) {
		faults = append(faults, fault{rulePodSecurity, path + ".windowsOptions.hostProcess", "a preflight may not run on the host"})
	}
	return faults
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

// volumeFaults allow what a pod can only read, and scratch space. Any other
// volume would let it change what outlives it.
func volumeFaults(path string, volume corev1.Volume, images map[string]bool) []fault {
	source := volume.VolumeSource
	switch {
	case source.ConfigMap != nil, source.Secret != nil, source.Projected != nil, source.DownwardAPI != nil, source.EmptyDir != nil:
		return nil
	case source.Image != nil:
		return imageFaults(path+".image.reference", source.Image.Reference, images)
	case source.HostPath != nil:
		return []fault{{rulePodSecurity, path + ".hostPath", fmt.Sprintf("a preflight may not mount %q of the node", source.HostPath.Path)}}
	}
	return []fault{{
		ruleVolume, path,
		fmt.Sprintf("volume %q is none of configMap, secret, projected, downwardAPI, emptyDir and image: a preflight may not write to storage", volume.Name),
	}}
}

func hostProcess(options *corev1.WindowsSecurityContextOptions) bool {
	return options != nil && isTrue(options.HostProcess)
}

func isTrue(value *bool) bool {
	return value != nil && *value
}
