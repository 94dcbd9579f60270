package alteration

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/manifestpolicy"
)

// The functions of this file are the complete list of what admission, the API server and the scheduler may change of a
// check. Each replaces these fields of the created object with the planned values, so that they are equal; every other
// field is compared. A change is harmless if the check still runs its program, with its account and its input, and is
// no less confined. At worst, the check does not start or end in time, which is Unknown.

// acceptJob accepts harmless changes of a Job without its pods.
func acceptJob(want, have *batchv1.JobSpec) {
	// A controller of queues, such as Kueue, suspends new Jobs until there is room.
	have.Suspend = want.Suspend
	// The run reads the result while it watches the Job. A Job that is deleted before has no result.
	have.TTLSecondsAfterFinished = want.TTLSecondsAfterFinished
}

func acceptPod(want, have *corev1.PodSpec) {
	acceptPlacement(want, have)
	// The API server sets the default account, and the older name of the field.
	want.ServiceAccountName = jobplan.AccountOf(*want)
	have.ServiceAccountName = jobplan.AccountOf(*have)
	want.DeprecatedServiceAccount, have.DeprecatedServiceAccount = "", ""
	// Only the kubelet reads the pull secrets, which come from the account; images are determined by their digests.
	have.ImagePullSecrets = want.ImagePullSecrets
	// The pod is terminated earlier (admission plugin RunOnceDuration of OpenShift).
	have.ActiveDeadlineSeconds = want.ActiveDeadlineSeconds
	if grace := have.TerminationGracePeriodSeconds; grace != nil && *grace <= jobplan.MaxGrace {
		have.TerminationGracePeriodSeconds = want.TerminationGracePeriodSeconds
	}
	// A Job does not depend on the readiness of its pods.
	have.ReadinessGates = want.ReadinessGates
	// A user namespace confines the pod more (SCC restricted-v3).
	have.HostUsers = open(want.HostUsers, have.HostUsers, isFalse)
	acceptResources(want.Resources)
	acceptResources(have.Resources)
	if have.SecurityContext != nil {
		acceptPodSecurity(cmp.Or(want.SecurityContext, &corev1.PodSecurityContext{}), have.SecurityContext)
	}
	tokens := tokenVolumes(want.Volumes, have.Volumes)
	for _, lists := range [][2][]corev1.Container{{want.InitContainers, have.InitContainers}, {want.Containers, have.Containers}} {
		for i := range lists[1] {
			created := &lists[1][i]
			if at := slices.IndexFunc(lists[0], func(planned corev1.Container) bool { return planned.Name == created.Name }); at >= 0 {
				acceptContainer(&lists[0][at], created, tokens)
			}
		}
	}
	for i := range have.Volumes {
		created := &have.Volumes[i]
		if at := slices.IndexFunc(want.Volumes, func(planned corev1.Volume) bool { return planned.Name == created.Name }); at >= 0 {
			acceptImageVolume(want.Volumes[at].Image, created.Image)
		}
	}
}

// acceptPlacement accepts where and when a pod runs, and before which others: the same
// program has the same input on every node that the author allows.
func acceptPlacement(want, have *corev1.PodSpec) {
	have.NodeName, have.SchedulerName = want.NodeName, want.SchedulerName
	have.Priority, have.PriorityClassName, have.PreemptionPolicy = want.Priority, want.PriorityClassName, want.PreemptionPolicy
	have.SchedulingGates, have.TopologySpreadConstraints = want.SchedulingGates, want.TopologySpreadConstraints
	// Further node labels, such as the namespace's, and tolerations. The author's are kept.
	maps.DeleteFunc(have.NodeSelector, func(key, _ string) bool { return !has(want.NodeSelector, key) })
	have.Tolerations = kept(want.Tolerations, have.Tolerations)
	if want.Affinity == nil {
		have.Affinity = nil
	}
}

func acceptContainer(want, have *corev1.Container, tokens []string) {
	// The same digest in another repository is the same image.
	have.Image = sameImage(want.Image, have.Image)
	// AlwaysPullImages: the digest determines what is pulled.
	have.ImagePullPolicy = pulled(want.ImagePullPolicy, have.ImagePullPolicy)
	acceptResources(&want.Resources)
	acceptResources(&have.Resources)
	// A change of the amounts would restart the container or not.
	have.ResizePolicy = want.ResizePolicy
	if have.SecurityContext != nil {
		acceptSecurity(cmp.Or(want.SecurityContext, &corev1.SecurityContext{}), have.SecurityContext)
	}
	have.VolumeMounts = slices.DeleteFunc(have.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return slices.Contains(tokens, mount.Name) && equality.Semantic.DeepEqual(mount, corev1.VolumeMount{
			Name: mount.Name, ReadOnly: true, MountPath: tokenPath,
		})
	})
}

// acceptResources accepts amounts of what every container uses: defaults of a LimitRange,
// and the share of the CPUs for management by which OpenShift's workload partitioning
// replaces a request. Other resources are devices, which come with files of the node.
func acceptResources(resources *corev1.ResourceRequirements) {
	if resources == nil {
		return
	}
	for _, name := range ordinaryResources() {
		delete(resources.Limits, name)
		delete(resources.Requests, name)
	}
}

func ordinaryResources() []corev1.ResourceName {
	return []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		"management.workload.openshift.io/cores",
	}
}

// acceptPodSecurity accepts the choices of OpenShift's security context constraints (SCC)
// where the author made none: a user that is not root, groups, the SELinux level of the
// namespace, and the confinement of the container runtime. Values that confine less, and
// profiles of the node, by which system calls may fail or lie, are not accepted.
func acceptPodSecurity(want, have *corev1.PodSecurityContext) {
	have.RunAsUser = open(want.RunAsUser, have.RunAsUser, isNotRoot)
	have.RunAsGroup = open(want.RunAsGroup, have.RunAsGroup, isAny)
	have.RunAsNonRoot = open(want.RunAsNonRoot, have.RunAsNonRoot, isTrueValue)
	// A check has no volumes with files of others, so groups open none.
	have.FSGroup = open(want.FSGroup, have.FSGroup, isAny)
	have.FSGroupChangePolicy = open(want.FSGroupChangePolicy, have.FSGroupChangePolicy, isAny)
	have.SupplementalGroupsPolicy = open(want.SupplementalGroupsPolicy, have.SupplementalGroupsPolicy, isAny)
	if len(want.SupplementalGroups) == 0 {
		have.SupplementalGroups = nil
	}
	have.SELinuxChangePolicy = open(want.SELinuxChangePolicy, have.SELinuxChangePolicy, isAny)
	have.SELinuxOptions = open(want.SELinuxOptions, have.SELinuxOptions, isConfined)
	have.SeccompProfile = open(want.SeccompProfile, have.SeccompProfile, isRuntimeSeccomp)
	have.AppArmorProfile = open(want.AppArmorProfile, have.AppArmorProfile, isRuntimeAppArmor)
}

// acceptSecurity is acceptPodSecurity for a container. It may lose capabilities, and the
// permission to write to its image.
func acceptSecurity(want, have *corev1.SecurityContext) {
	have.RunAsUser = open(want.RunAsUser, have.RunAsUser, isNotRoot)
	have.RunAsGroup = open(want.RunAsGroup, have.RunAsGroup, isAny)
	have.RunAsNonRoot = open(want.RunAsNonRoot, have.RunAsNonRoot, isTrueValue)
	have.Privileged = open(want.Privileged, have.Privileged, isFalse)
	have.AllowPrivilegeEscalation = open(want.AllowPrivilegeEscalation, have.AllowPrivilegeEscalation, isFalse)
	have.ReadOnlyRootFilesystem = open(want.ReadOnlyRootFilesystem, have.ReadOnlyRootFilesystem, isTrueValue)
	have.ProcMount = open(want.ProcMount, have.ProcMount, func(mount corev1.ProcMountType) bool { return mount == corev1.DefaultProcMount })
	have.SELinuxOptions = open(want.SELinuxOptions, have.SELinuxOptions, isConfined)
	have.SeccompProfile = open(want.SeccompProfile, have.SeccompProfile, isRuntimeSeccomp)
	have.AppArmorProfile = open(want.AppArmorProfile, have.AppArmorProfile, isRuntimeAppArmor)
	if have.Capabilities == nil {
		return
	}
	planned := cmp.Or(want.Capabilities, &corev1.Capabilities{})
	dropped := have.Capabilities.Drop
	if slices.Contains(dropped, "ALL") || len(kept(planned.Drop, dropped)) == len(planned.Drop) {
		have.Capabilities.Drop = planned.Drop
	}
}

// tokenPath is where admission mounts the token of the account.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path

// tokenVolumes are the names of the volumes that admission adds for the token of the
// account: they have the token of the pod, by which the guard identifies it, the
// certificates of the API server and, in OpenShift, of services, and the name of the
// namespace.
func tokenVolumes(want, have []corev1.Volume) []string {
	var names []string
	for _, volume := range have {
		planned := slices.ContainsFunc(want, func(other corev1.Volume) bool { return other.Name == volume.Name })
		if !planned && volume.Projected != nil && !slices.ContainsFunc(volume.Projected.Sources, isOtherProjection) {
			names = append(names, volume.Name)
		}
	}
	return names
}

// sourcesOfTokenVolume are the sources, besides the token, of the token volume of Kubernetes
// (plugin/pkg/admission/serviceaccount) or OpenShift.
func sourcesOfTokenVolume() []corev1.VolumeProjection {
	certificates := func(name, file string) corev1.VolumeProjection {
		return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: []corev1.KeyToPath{{Key: file, Path: file}},
		}}
	}
	return []corev1.VolumeProjection{
		certificates("kube-root-ca.crt", "ca.crt"), certificates("openshift-service-ca.crt", "service-ca.crt"),
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
		}}},
	}
}

// isOtherProjection is true for a source that does not belong to a token volume.
func isOtherProjection(source corev1.VolumeProjection) bool {
	known := sourcesOfTokenVolume()
	if token := source.ServiceAccountToken; token != nil {
		known = append(known, corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Path: "token", ExpirationSeconds: token.ExpirationSeconds, // it ends with the pod, also before
		}})
	}
	return !slices.ContainsFunc(known, func(one corev1.VolumeProjection) bool { return equality.Semantic.DeepEqual(one, source) })
}

func acceptImageVolume(want, have *corev1.ImageVolumeSource) {
	if want != nil && have != nil {
		have.Reference = sameImage(want.Reference, have.Reference)
		have.PullPolicy = pulled(want.PullPolicy, have.PullPolicy)
	}
}

// sameImage is the planned pull spec if the other one has the same digest.
func sameImage(want, have string) string {
	_, planned, byDigest := strings.Cut(want, "@")
	if _, digest, found := strings.Cut(have, "@"); byDigest && found && digest == planned {
		return want
	}
	return have
}

func pulled(want, have corev1.PullPolicy) corev1.PullPolicy {
	if have == corev1.PullAlways {
		return want
	}
	return have
}

// NodeAnnotations returns the annotations with which a container runtime, its plugins or network plugins may run a pod
// differently. A runtime may have further ones, which cannot be listed.
func NodeAnnotations(annotations map[string]string) map[string]string {
	found := maps.Clone(annotations)
	maps.DeleteFunc(found, func(key, value string) bool { return !evaluatedByNode(key, value) })
	return found
}

// nodeAnnotations matches the keys that a node evaluates. With the network annotations, Multus attaches a pod to
// another network, or replaces its own: names and addresses then lead to other servers, so a check that connects to one
// reports on another server. Even a network with a known name, such as istio-cni of a service mesh, is not accepted:
// its definition is an object in the namespace, and redirects the connections of the check just like the init container
// of a mesh, which is rejected too. A node does not read annotations that Multus writes about a pod, such as
// network-status.
var nodeAnnotations = regexp.MustCompile("^(" + strings.Join([]string{
	`k8s\.v1\.cni\.cncf\.io/networks$`, `v1\.multus-cni\.io/default-network$`,
	`(container\.apparmor\.security\.beta|(container\.)?seccomp\.security\.alpha)\.kubernetes\.io(/|$)`, // the confinement
	`io\.kubernetes\.cri(-o)?\.`,                               // CRI-O, and containerd: an untrusted workload, the sandbox
	`(io\.katacontainers|dev\.gvisor|run\.oci|module\.wasm)\.`, // Kata Containers, gVisor, crun
	`io\.microsoft\.`,                                          // hcsshim, the runtime of Windows
	`([^/]*\.)?(crio\.io|cri-o\.io|nri\.io|nri\.containers\.io|cdi\.k8s\.io)(/|$)`, // plugins, and devices
}, "|") + ")")

// defaultProfiles are the values of an annotation for the default confinement.
func defaultProfiles() []string { return []string{"runtime/default", "docker/default"} }

func evaluatedByNode(key, value string) bool {
	return !slices.Contains(defaultProfiles(), value) && nodeAnnotations.MatchString(key)
}

// open is the value of admission where the author chose one, or where it is not harmless.
func open[T any](want, have *T, harmless func(T) bool) *T {
	if want == nil && have != nil && harmless(*have) {
		return nil
	}
	return have
}

// kept are the planned elements that still exist, in the planned order.
func kept[T any](want, have []T) []T {
	var all []T
	for _, planned := range want {
		if slices.ContainsFunc(have, func(other T) bool { return equality.Semantic.DeepEqual(planned, other) }) {
			all = append(all, planned)
		}
	}
	return all
}

func has(texts map[string]string, key string) bool {
	_, found := texts[key]
	return found
}

func isAny[T any](T) bool { return true }

func isFalse(value bool) bool { return !value }

func isTrueValue(value bool) bool { return value }

func isNotRoot(user int64) bool { return user != 0 }

// isConfined is true for what the policy allows a manifest.
func isConfined(selinux corev1.SELinuxOptions) bool {
	return manifestpolicy.Confined(selinux)
}

func isRuntimeSeccomp(profile corev1.SeccompProfile) bool {
	return profile.Type == corev1.SeccompProfileTypeRuntimeDefault
}

func isRuntimeAppArmor(profile corev1.AppArmorProfile) bool {
	return profile.Type == corev1.AppArmorProfileTypeRuntimeDefault
}
