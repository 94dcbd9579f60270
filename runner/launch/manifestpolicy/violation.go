package manifestpolicy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

// The reasons for which a manifest of a check is rejected.
var (
	ReasonRefusedManifest = finding.NewReason("RefusedManifest", finding.Explanation{
		Meaning: "The manifest is not the manifest of a check: a Job with one pod, and supporting objects of known kinds.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedImage = finding.NewReason("RefusedImage", finding.Explanation{
		Meaning: "The manifest of the check refers to an image that is not a digest in the release.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedPodSecurity = finding.NewReason("RefusedPodSecurity", finding.Explanation{
		Meaning: "The manifest of the check requires privileges on the node.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedAnnotation = finding.NewReason("RefusedAnnotation", finding.Explanation{
		Meaning: "The manifest of the check has an annotation that may change how a node or its network runs the pod.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedScheduling = finding.NewReason("RefusedScheduling", finding.Explanation{
		Meaning: "The manifest of the check bypasses the scheduler, preempts other pods, or influences where they run.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedDevice = finding.NewReason("RefusedDevice", finding.Explanation{
		Meaning: "The manifest of the check requests devices of the node.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedProbe = finding.NewReason("RefusedProbe", finding.Explanation{
		Meaning: "The manifest of the check makes the kubelet connect to other hosts.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	reasonRefusedVolume = finding.NewReason("RefusedVolume", finding.Explanation{
		Meaning: "The manifest of the check has a writable volume other than scratch space.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
	ReasonRefusedRBAC = finding.NewReason("RefusedRBAC", finding.Explanation{
		Meaning: "The manifest of the check grants more than read access.",
		Cause:   "The release is defective.",
		Remedy:  "Report it to the owners of the component. To update without this check, accept the finding.",
	})
)

// Violation is a violation of the policy for manifests.
type Violation struct {
	Reason     finding.Reason
	Path, Text string
}

func (f Violation) String() string {
	return f.Path + ": " + f.Text
}

// field is a field of a manifest with a condition that it may not meet.
type field struct {
	name     string
	violated bool
	text     string
}

func violationsOf(reason finding.Reason, path string, fields []field) []Violation {
	var violations []Violation
	for _, f := range fields {
		if f.violated {
			violations = append(violations, Violation{reason, path + "." + f.name, f.text})
		}
	}
	return violations
}

// other is true for a value that is set to another value than only.
func other[T comparable](value *T, only T) bool {
	return value != nil && *value != only
}

func isTrue(value *bool) bool {
	return value != nil && *value
}

// ReasonRefusedControlPlane is the reason of what only the guest of a hosted cluster permits.
var ReasonRefusedControlPlane = finding.NewReason("RefusedControlPlane", finding.Explanation{
	Meaning: "A check for the management cluster of a hosted cluster reads Secrets, reads objects outside of the " +
		"control plane namespace, or is not part of the release.",
	Cause: "The Secrets of that namespace are the credentials of etcd and the guest cluster, with which a check " +
		"could write. Its neighbors are other control planes.",
	Remedy: "Report it to the owners of the component. To update without this check, accept the finding.",
})

const noSecrets = "the Secrets of a control plane are credentials to which the read-only guard does not apply"

// ControlPlane returns the violations of an object of a check that runs in the namespace of a control plane, in
// addition to the violations for any check.
func ControlPlane(object runtime.Object) []Violation {
	switch object := object.(type) {
	case *batchv1.Job:
		return secretsOf("spec.template.spec", object.Spec.Template.Spec)
	case *rbacv1.Role:
		return secretRules(object.Rules)
	case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return []Violation{{
			ReasonRefusedControlPlane, "kind",
			"a check of the management cluster may read only in the namespace of the control plane: use a Role and a " +
				"RoleBinding",
		}}
	}
	return nil
}

// OfSite are the violations of a check of the site on that side: only the release is trusted in the management
// cluster.
func OfSite(side check.Side) []Violation {
	if side != check.Management {
		return nil
	}
	return []Violation{{
		ReasonRefusedControlPlane, "metadata.annotations",
		"a check of the site runs in the guest, not in the namespace of a control plane",
	}}
}

// secretsOf are the Secrets that the containers of a pod would read.
func secretsOf(path string, spec corev1.PodSpec) []Violation {
	var fields []field
	for i, volume := range spec.Volumes {
		fields = append(fields, field{fmt.Sprintf("volumes[%d].secret", i), volume.Secret != nil, noSecrets})
		if volume.Projected == nil {
			continue
		}
		for j, source := range volume.Projected.Sources {
			fields = append(fields, field{fmt.Sprintf("volumes[%d].projected.sources[%d].secret", i, j), source.Secret != nil, noSecrets})
		}
	}
	violations := violationsOf(ReasonRefusedControlPlane, path, fields)
	return append(append(violations, secretVariables(path+".initContainers", spec.InitContainers)...),
		secretVariables(path+".containers", spec.Containers)...)
}

func secretVariables(path string, containers []corev1.Container) []Violation {
	var violations []Violation
	for i, container := range containers {
		var fields []field
		for j, from := range container.EnvFrom {
			fields = append(fields, field{fmt.Sprintf("envFrom[%d].secretRef", j), from.SecretRef != nil, noSecrets})
		}
		for j, variable := range container.Env {
			fields = append(fields, field{fmt.Sprintf("env[%d].valueFrom.secretKeyRef", j), variable.ValueFrom != nil &&
				variable.ValueFrom.SecretKeyRef != nil, noSecrets})
		}
		violations = append(violations, violationsOf(ReasonRefusedControlPlane, fmt.Sprintf("%s[%d]", path, i), fields)...)
	}
	return violations
}

func secretRules(rules []rbacv1.PolicyRule) []Violation {
	var violations []Violation
	for i, rule := range rules {
		if includes(rule.APIGroups, "") && includes(rule.Resources, "secrets") {
			violations = append(violations, Violation{ReasonRefusedControlPlane, fmt.Sprintf("rules[%d].resources", i), noSecrets})
		}
	}
	return violations
}

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
				violations = append(violations, Violation{
					reasonRefusedDevice, path + "." + list.name,
					fmt.Sprintf("a preflight may request cpu, memory and ephemeral-storage, but not %q", name),
				})
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
		violations = append(violations, Violation{
			reasonRefusedPodSecurity, path + ".capabilities.add",
			fmt.Sprintf("a preflight may not add capabilities, and it adds %v", security.Capabilities.Add),
		})
	}
	return append(violations, confinementViolations(path, confinement{
		security.SELinuxOptions, security.SeccompProfile, security.AppArmorProfile, security.WindowsOptions,
	})...)
}
