// Package manifestpolicy answers: how does this manifest violate the policy for checks?
//
// [Job] returns the violations of a Job, and [Rules] the violations of a role's rules. A check is one pod that only
// reads, runs images of its release, and does not affect other pods.
package manifestpolicy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
)

// Job are the violations of a Job in a release with these images. The rule
// for each field is in testdata/fields.txt, which a test compares with the types of
// the API.
func Job(job *batchv1.Job, images map[string]bool) []Violation {
	template := job.Spec.Template
	violations := append(shapeViolations(job), annotationViolations("spec.template.metadata.annotations", template.Annotations)...)
	return append(violations, podViolations("spec.template.spec", template.Spec, images)...)
}

// shapeViolations are the violations of the Job itself: a check is one pod that
// terminates, in the namespace that its author chose.
func shapeViolations(job *batchv1.Job) []Violation {
	const onePod = "a check is one pod, which has no index"
	spec := job.Spec
	violations := violationsOf(ReasonRefusedManifest, "metadata", []field{
		{"name", job.Name == "", "is required"},
		{"namespace", job.Namespace == "", "is required: a preflight has no default namespace"},
	})
	return append(violations, violationsOf(ReasonRefusedManifest, "spec", []field{
		{"completions", other(spec.Completions, 1), "is not 1, and a check is one pod"},
		{"parallelism", other(spec.Parallelism, 1), "is not 1, and a check is one pod"},
		{"completionMode", other(spec.CompletionMode, batchv1.NonIndexedCompletion), onePod},
		{"backoffLimitPerIndex", spec.BackoffLimitPerIndex != nil, onePod},
		{"maxFailedIndexes", spec.MaxFailedIndexes != nil, onePod},
		{"successPolicy", spec.SuccessPolicy != nil, onePod},
		{"suspend", isTrue(spec.Suspend), "the Job would never start"},
		{"managedBy", other(spec.ManagedBy, batchv1.JobControllerName), "the Kubernetes Job controller would not run the Job"},
		{"scheduling", spec.Scheduling != nil, "a check is one pod, which is scheduled by itself"},
	})...)
}

// annotationViolations reject annotations of the pod in domains other than those that no
// container runtime or network evaluates: by annotations, which cannot be listed
// completely, a pod gets devices or other networks, or loses its confinement.
func annotationViolations(path string, annotations map[string]string) []Violation {
	known := []string{
		"", "openshift.io", "preflight.openshift.io", "target.workload.openshift.io", "release.openshift.io",
		"kubectl.kubernetes.io", "cluster-autoscaler.kubernetes.io",
	}
	var violations []Violation
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		domain := ""
		if before, _, found := strings.Cut(key, "/"); found {
			domain = before
		}
		if !slices.Contains(known, domain) {
			violations = append(violations, Violation{
				reasonRefusedAnnotation, path + "." + key,
				"annotations of this domain may change how a node or its network runs the pod",
			})
		}
	}
	return violations
}

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
		displace = "a preflight may not preempt other pods"
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
		{"evictionResponders", len(spec.EvictionResponders) > 0, "a preflight may not delay the drain of a node"},
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

// confinement has the fields that the security contexts of pods and containers share.
type confinement struct {
	selinux  *corev1.SELinuxOptions
	seccomp  *corev1.SeccompProfile
	apparmor *corev1.AppArmorProfile
	windows  *corev1.WindowsSecurityContextOptions
}

// confinementViolations follow the level "baseline" of Kubernetes' Pod Security Standards.
func confinementViolations(path string, c confinement) []Violation {
	const unconfined = "a preflight may not run unconfined"
	var fields []field
	if c.selinux != nil {
		fields = append(
			fields,
			field{
				"seLinuxOptions.type", !slices.Contains(SELinuxTypes(), c.selinux.Type),
				fmt.Sprintf("a preflight may not run with SELinux type %q", c.selinux.Type),
			},
			field{"seLinuxOptions.user", c.selinux.User != "", "a preflight may not set the SELinux user"},
			field{"seLinuxOptions.role", c.selinux.Role != "", "a preflight may not set the SELinux role"},
		)
	}
	if c.seccomp != nil {
		fields = append(fields, field{"seccompProfile.type", c.seccomp.Type == corev1.SeccompProfileTypeUnconfined, unconfined})
	}
	if c.apparmor != nil {
		fields = append(fields, field{"appArmorProfile.type", c.apparmor.Type == corev1.AppArmorProfileTypeUnconfined, unconfined})
	}
	if c.windows != nil {
		const domain = "a preflight may not use an account of the Windows domain"
		fields = append(
			fields,
			field{"windowsOptions.hostProcess", isTrue(c.windows.HostProcess), "a preflight may not run on the host"},
			field{"windowsOptions.gmsaCredentialSpec", c.windows.GMSACredentialSpec != nil, domain},
			field{"windowsOptions.gmsaCredentialSpecName", c.windows.GMSACredentialSpecName != nil, domain},
		)
	}
	return violationsOf(reasonRefusedPodSecurity, path, fields)
}

// SELinuxTypes are the process types that a manifest may set; empty means the type of the runtime.
func SELinuxTypes() []string {
	return []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
}

// Confined reports whether a manifest may have these SELinux options.
func Confined(selinux corev1.SELinuxOptions) bool {
	return len(confinementViolations("", confinement{selinux: &selinux})) == 0
}

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
		return []Violation{{
			reasonRefusedPodSecurity, path + ".hostPath",
			fmt.Sprintf("a preflight may not mount %q of the node", source.HostPath.Path),
		}}
	case "":
		return []Violation{{reasonRefusedVolume, path, fmt.Sprintf("volume %q must have exactly one source", volume.Name)}}
	}
	return []Violation{{
		reasonRefusedVolume, path + "." + name,
		fmt.Sprintf("volume %q is none of configMap, secret, projected, downwardAPI, emptyDir and image: a preflight may not write to storage",
			volume.Name),
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

// Rules reject rules that grant more than read access and reviews of
// permissions. The verbs do not suffice: "get" on pods/exec or nodes/proxy opens a
// connection that can execute commands.
func Rules(rules []rbacv1.PolicyRule) []Violation {
	var violations []Violation
	for i, rule := range rules {
		path := fmt.Sprintf("rules[%d]", i)
		if verb, ok := writingVerb(rule); ok {
			violations = append(violations, Violation{
				ReasonRefusedRBAC, path + ".verbs",
				fmt.Sprintf("%q is not read access: a preflight may get, list and watch", verb),
			})
		}
		if url, ok := everyPath(rule); ok {
			violations = append(violations, Violation{
				ReasonRefusedRBAC, path + ".nonResourceURLs",
				fmt.Sprintf("%q includes all paths of the API server, such as its profiles: name the paths to read", url),
			})
		}
		if resource, ok := connectingResource(rule); ok {
			violations = append(violations, Violation{
				ReasonRefusedRBAC, path + ".resources",
				fmt.Sprintf("%q in API groups %q includes connections to pods and nodes: name the resources to read", resource, rule.APIGroups),
			})
		}
	}
	return violations
}

func writingVerb(rule rbacv1.PolicyRule) (string, bool) {
	for _, verb := range rule.Verbs {
		switch {
		case slices.Contains([]string{"get", "list", "watch"}, verb):
		case verb == "create" && onlyReviews(rule):
		default:
			return verb, true
		}
	}
	return "", false
}

// onlyReviews is true for review resources, which are created and never stored.
func onlyReviews(rule rbacv1.PolicyRule) bool {
	reviews := map[string][]string{
		"authorization.k8s.io":  {"selfsubjectaccessreviews", "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews"},
		"authentication.k8s.io": {"tokenreviews", "selfsubjectreviews"},
	}
	var known []string
	for _, group := range rule.APIGroups {
		resources, ok := reviews[group]
		if !ok {
			return false
		}
		known = append(known, resources...)
	}
	return len(rule.NonResourceURLs) == 0 && len(rule.Resources) > 0 &&
		!slices.ContainsFunc(rule.Resources, func(resource string) bool { return !slices.Contains(known, resource) })
}

// everyPath finds a pattern that matches every path: asterisks at its end match any
// rest (k8s.io/kubernetes/pkg/apis/rbac/v1, NonResourceURLMatches).
func everyPath(rule rbacv1.PolicyRule) (string, bool) {
	for _, url := range rule.NonResourceURLs {
		if prefix := strings.TrimRight(url, "*"); prefix != url && (prefix == "" || prefix == "/") {
			return url, true
		}
	}
	return "", false
}

// connectingResource finds a resource that is a connection rather than an object, also if a wildcard includes it.
func connectingResource(rule rbacv1.PolicyRule) (string, bool) {
	for _, resource := range rule.Resources {
		if slices.ContainsFunc(rule.APIGroups, func(group string) bool { return rights.Connects(group, resource) }) {
			return resource, true
		}
	}
	return "", false
}

// KnownRoles are read-only cluster roles of every cluster, which a release may bind without a manifest of its own.
func KnownRoles() []string { return []string{"cluster-reader", "view"} }

// ReadOnlyRole reports whether a binding refers to one of [KnownRoles].
func ReadOnlyRole(ref rbacv1.RoleRef) bool {
	return ref.Kind == "ClusterRole" && slices.Contains(KnownRoles(), ref.Name)
}

// Named returns the names of the objects of a resource, such as "secrets", that rules allow an account to read by their names.
func Named(rules []rbacv1.PolicyRule, resource string) []string {
	var names []string
	reads := access.Verbs(access.Request{Resource: resource}, "get", "list", "watch")
	for _, rule := range rules {
		if slices.ContainsFunc(reads, func(read access.Request) bool { return covers(rule, read) }) {
			names = append(names, rule.ResourceNames...)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// SecretReads returns the requests by which rules read Secrets of any name, sorted. The
// requests have no namespace. An ImageStream of OpenShift has a subresource with all Secrets of the
// namespace that have the credential of a registry.
func SecretReads(rules []rbacv1.PolicyRule) []access.Request {
	var reads []access.Request
	for _, read := range access.Verbs(access.Request{Resource: "secrets"}, "get", "list", "watch") {
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return grants(rule, read) }) {
			reads = append(reads, read)
		}
	}
	ofStream := access.Request{Verb: "get", Group: "image.openshift.io", Resource: "imagestreams", Subresource: "secrets"}
	if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return covers(rule, ofStream) }) {
		reads = append(reads, ofStream)
	}
	return reads
}

// grants is true for a rule that allows a request for objects of any name: an empty resource name is the name of a list
// or watch without a name (k8s.io/kubernetes/pkg/apis/rbac/v1, ResourceNameMatches).
func grants(rule rbacv1.PolicyRule, request access.Request) bool {
	unnamed := request.Verb != "get" && slices.Contains(rule.ResourceNames, "")
	return (len(rule.ResourceNames) == 0 || unnamed) && covers(rule, request)
}

// covers is true for a rule that allows a request, whatever the names of its objects.
func covers(rule rbacv1.PolicyRule, request access.Request) bool {
	return includes(rule.Verbs, request.Verb) && includes(rule.APIGroups, request.Group) &&
		(includes(rule.Resources, access.ResourceOf(request)) || request.Subresource != "" &&
			slices.Contains(rule.Resources, "*/"+request.Subresource))
}

// includes is true for values of a rule that have this one, or all.
func includes(values []string, value string) bool {
	return slices.Contains(values, value) || slices.Contains(values, "*")
}
