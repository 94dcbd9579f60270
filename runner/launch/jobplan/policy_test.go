package jobplan_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/payload"
)

// Tests of: runner/launch/manifestpolicy

// violatingJob is a Job that violates the policy.
type violatingJob struct {
	reason               string
	change               func(*batchv1.Job)
	wantReason, wantPath string
}

func violatingJobs() map[string]violatingJob {
	onPod := func(change func(*corev1.PodSpec)) func(*batchv1.Job) {
		return func(job *batchv1.Job) { change(&job.Spec.Template.Spec) }
	}
	secure := func(security corev1.SecurityContext) func(*batchv1.Job) {
		return onPod(func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext = &security })
	}
	securePod := func(security corev1.PodSecurityContext) func(*batchv1.Job) {
		return onPod(func(spec *corev1.PodSpec) { spec.SecurityContext = &security })
	}
	annotate := func(key, value string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Spec.Template.Annotations = map[string]string{key: value} }
	}
	mount := func(source corev1.VolumeSource) func(*batchv1.Job) {
		return onPod(func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
		})
	}
	const root = "spec.template.spec"
	anyPod := corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
		LabelSelector: &metav1.LabelSelector{},
	}
	return map[string]violatingJob{
		"Tag": {
			reason: "a tag can be moved", wantReason: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/openshift/cco:latest" }),
		},
		"ForeignDigest": {
			reason: "the signature covers the release's images only", wantReason: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/evil/cco@" + releasetest.Digest }),
		},
		"ShortDigest": {
			reason: "an incomplete digest is invalid", wantReason: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/openshift/cco@sha256:aa" }),
		},
		"NoImage": {
			reason: "an image is required", wantReason: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "" }),
		},
		"InitImage": {
			reason: "init containers run code", wantReason: "RefusedImage", wantPath: root + ".initContainers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.InitContainers = []corev1.Container{{Image: "busybox"}} }),
		},
		"ImageVolume": {
			reason: "an image volume has code", wantReason: "RefusedImage", wantPath: root + ".volumes[0].image.reference",
			change: mount(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "busybox"}}),
		},
		"Privileged": {
			reason: "a privileged container is root on the node", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.privileged",
			change:   secure(corev1.SecurityContext{Privileged: new(true)}),
		},
		"Escalation": {
			reason: "setuid binaries gain privileges", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.allowPrivilegeEscalation",
			change:   secure(corev1.SecurityContext{AllowPrivilegeEscalation: new(true)}),
		},
		"Capability": {
			reason: "capabilities are parts of root", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.capabilities.add",
			change:   secure(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}),
		},
		"ProcMount": {
			reason: "an unmasked /proc is that of the node", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.procMount",
			change:   secure(corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}),
		},
		"HostProcessContainer": {
			reason: "a host process of Windows runs on the node", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.windowsOptions.hostProcess",
			change:   secure(corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}),
		},
		"HostProcessPod": {
			reason: "a host process of Windows runs on the node", wantReason: "RefusedPodSecurity",
			wantPath: root + ".securityContext.windowsOptions.hostProcess",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}
			}),
		},
		"Sysctls": {
			reason: "sysctls are kernel parameters", wantReason: "RefusedPodSecurity", wantPath: root + ".securityContext.sysctls",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
			}),
		},
		"HostNetwork": {
			reason: "the node's network", wantReason: "RefusedPodSecurity", wantPath: root + ".hostNetwork",
			change: onPod(func(spec *corev1.PodSpec) { spec.HostNetwork = true }),
		},
		"HostPID": {
			reason: "the node's processes", wantReason: "RefusedPodSecurity", wantPath: root + ".hostPID",
			change: onPod(func(spec *corev1.PodSpec) { spec.HostPID = true }),
		},
		"HostIPC": {
			reason: "the node's shared memory", wantReason: "RefusedPodSecurity", wantPath: root + ".hostIPC",
			change: onPod(func(spec *corev1.PodSpec) { spec.HostIPC = true }),
		},
		"HostPort": {
			reason: "a port of the node", wantReason: "RefusedPodSecurity", wantPath: root + ".containers[0].ports[0].hostPort",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }),
		},
		"HostPath": {
			reason: "the node's files", wantReason: "RefusedPodSecurity", wantPath: root + ".volumes[0].hostPath",
			change: mount(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
		},
		"Storage": {
			reason: "storage outlives the check", wantReason: "RefusedVolume", wantPath: root + ".volumes[0].persistentVolumeClaim",
			change: mount(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}),
		},
		"NoSource": {
			reason: "a volume needs a source", wantReason: "RefusedVolume", wantPath: root + ".volumes[0]",
			change: mount(corev1.VolumeSource{}),
		},
		"TwoSources": {
			reason: "the source is ambiguous", wantReason: "RefusedVolume", wantPath: root + ".volumes[0]",
			change: mount(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}, CSI: &corev1.CSIVolumeSource{}}),
		},
		"Driver": {
			reason: "a CSI driver may run any code on the node", wantReason: "RefusedVolume", wantPath: root + ".volumes[0].csi",
			change: mount(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "example.com"}}),
		},
		"Certificate": {
			reason: "the guard identifies pods by their tokens", wantReason: "RefusedVolume",
			wantPath: root + ".volumes[0].projected.sources[1].podCertificate",
			change: mount(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}, {PodCertificate: &corev1.PodCertificateProjection{}},
			}}}),
		},
		"Propagation": {
			reason: "mounts of the container appear on the node", wantReason: "RefusedVolume",
			wantPath: root + ".containers[0].volumeMounts[0].mountPropagation",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPropagation: new(corev1.MountPropagationBidirectional)}}
			}),
		},
		"BlockDevice": {
			reason: "a block device bypasses the file system", wantReason: "RefusedVolume", wantPath: root + ".containers[0].volumeDevices",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v"}} }),
		},
		"Claim": {
			reason: "a claim is for a device of the node", wantReason: "RefusedDevice", wantPath: root + ".resourceClaims",
			change: onPod(func(spec *corev1.PodSpec) { spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }),
		},
		"DevicePlugin": {
			reason: "an extended resource is a device of the node", wantReason: "RefusedDevice", wantPath: root + ".containers[0].resources.limits",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].Resources.Limits = corev1.ResourceList{
					"cpu":                     resource.MustParse("1"),
					"devices.kubevirt.io/kvm": resource.MustParse("1"),
				}
			}),
		},
		"HugePages": {
			reason: "huge pages are reserved for other pods", wantReason: "RefusedDevice", wantPath: root + ".containers[0].resources.requests",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].Resources.Requests = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("1Gi")}
			}),
		},
		"DeviceOfThePod": {
			reason: "resources may be requested for the whole pod", wantReason: "RefusedDevice", wantPath: root + ".resources.limits",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/nic": resource.MustParse("1")}}
			}),
		},
		"HugePagesOfThePod": {
			reason: "resources may be requested for the whole pod", wantReason: "RefusedDevice", wantPath: root + ".resources.requests",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"hugepages-2Mi": resource.MustParse("1Gi")}}
			}),
		},
		"Probe": {
			reason: "the kubelet connects from the node's network", wantReason: "RefusedProbe",
			wantPath: root + ".containers[0].startupProbe.httpGet.host",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "127.0.0.1"}}}
			}),
		},
		"Hook": {
			reason: "a hook is a request of the kubelet", wantReason: "RefusedProbe",
			wantPath: root + ".containers[0].lifecycle.postStart.tcpSocket.host",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: "169.254.169.254"}}}
			}),
		},
		"SELinux": {
			reason: "spc_t is the type of super-privileged containers", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.seLinuxOptions.type",
			change:   secure(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}),
		},
		"SELinuxOfThePod": {
			reason: "the setting of the pod applies to its containers", wantReason: "RefusedPodSecurity",
			wantPath: root + ".securityContext.seLinuxOptions.type",
			change:   securePod(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}),
		},
		"Seccomp": {
			reason: "an unconfined container may use all system calls", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.seccompProfile.type",
			change:   secure(corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}),
		},
		"SeccompOfThePod": {
			reason: "the setting of the pod applies to its containers", wantReason: "RefusedPodSecurity",
			wantPath: root + ".securityContext.seccompProfile.type",
			change:   securePod(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}),
		},
		"AppArmor": {
			reason: "an unconfined container may use all files", wantReason: "RefusedPodSecurity",
			wantPath: root + ".containers[0].securityContext.appArmorProfile.type",
			change:   secure(corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}),
		},
		"AppArmorOfThePod": {
			reason: "the setting of the pod applies to its containers", wantReason: "RefusedPodSecurity",
			wantPath: root + ".securityContext.appArmorProfile.type",
			change:   securePod(corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}),
		},
		"AppArmorByAnnotation": {
			reason: "the API server turns it into the field", wantReason: "RefusedAnnotation",
			wantPath: "spec.template.metadata.annotations.container.apparmor.security.beta.kubernetes.io/check",
			change:   annotate("container.apparmor.security.beta.kubernetes.io/check", "unconfined"),
		},
		"Network": {
			reason: "the annotation attaches another network", wantReason: "RefusedAnnotation",
			wantPath: "spec.template.metadata.annotations.k8s.v1.cni.cncf.io/networks",
			change:   annotate("k8s.v1.cni.cncf.io/networks", "storage"),
		},
		"RuntimeAnnotation": {
			reason: "the container runtime assigns devices by annotation", wantReason: "RefusedAnnotation",
			wantPath: "spec.template.metadata.annotations.io.kubernetes.cri-o.Devices/x",
			change:   annotate("io.kubernetes.cri-o.Devices/x", "/dev/fuse"),
		},
		"RuntimeClass": {
			reason: "another runtime may confine less", wantReason: "RefusedPodSecurity", wantPath: root + ".runtimeClassName",
			change: onPod(func(spec *corev1.PodSpec) { spec.RuntimeClassName = new("legacy") }),
		},
		"Node": {
			reason: "the kubelet ignores the taints of the node", wantReason: "RefusedScheduling", wantPath: root + ".nodeName",
			change: onPod(func(spec *corev1.PodSpec) { spec.NodeName = "master-0" }),
		},
		"Priority": {
			reason: "other pods are preempted", wantReason: "RefusedScheduling", wantPath: root + ".priorityClassName",
			change: onPod(func(spec *corev1.PodSpec) { spec.PriorityClassName = "system-node-critical" }),
		},
		"Preemption": {
			reason: "other pods are preempted", wantReason: "RefusedScheduling", wantPath: root + ".preemptionPolicy",
			change: onPod(func(spec *corev1.PodSpec) { spec.PreemptionPolicy = new(corev1.PreemptLowerPriority) }),
		},
		"AntiAffinity": {
			reason: "the pods of a Deployment would stay Pending", wantReason: "RefusedScheduling", wantPath: root + ".affinity.podAntiAffinity",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{anyPod},
				}}
			}),
		},
		"PreferredAntiAffinity": {
			reason: "the preference lowers the score of the node for other pods", wantReason: "RefusedScheduling",
			wantPath: root + ".affinity.podAntiAffinity",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: anyPod}},
				}}
			}),
		},
		"Affinity": {
			reason: "the affinity raises the score of the node for other pods", wantReason: "RefusedScheduling",
			wantPath: root + ".affinity.podAffinity",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{anyPod},
				}}
			}),
		},
		"Scheduler": {
			reason: "a second scheduler may overcommit a node", wantReason: "RefusedScheduling", wantPath: root + ".schedulerName",
			change: onPod(func(spec *corev1.PodSpec) { spec.SchedulerName = "second" }),
		},
		"SchedulingGate": {
			reason: "the Job would never start", wantReason: "RefusedScheduling", wantPath: root + ".schedulingGates",
			change: onPod(func(spec *corev1.PodSpec) { spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }),
		},
		"Indexed": {
			reason: "the guard does not recognize pod names with an index", wantReason: "RefusedManifest", wantPath: "spec.completionMode",
			change: func(job *batchv1.Job) { job.Spec.CompletionMode = new(batchv1.IndexedCompletion) },
		},
		"NoNamespace": {
			reason: "the author chooses the namespace", wantReason: "RefusedManifest", wantPath: "metadata.namespace",
			change: func(job *batchv1.Job) { job.Namespace = "" },
		},
		"NoName": {
			reason: "a generated name cannot be accepted", wantReason: "RefusedManifest", wantPath: "metadata.name",
			change: func(job *batchv1.Job) { job.Name = "" },
		},
		"Completions": {
			reason: "two pods would have two results", wantReason: "RefusedManifest", wantPath: "spec.completions",
			change: func(job *batchv1.Job) { job.Spec.Completions = new(int32(2)) },
		},
		"Parallelism": {
			reason: "no pod would have no result", wantReason: "RefusedManifest", wantPath: "spec.parallelism",
			change: func(job *batchv1.Job) { job.Spec.Parallelism = new(int32(0)) },
		},
		"Suspended": {
			reason: "the Job would never start", wantReason: "RefusedManifest", wantPath: "spec.suspend",
			change: func(job *batchv1.Job) { job.Spec.Suspend = new(true) },
		},
		"ManagedBy": {
			reason: "the Job would never start", wantReason: "RefusedManifest", wantPath: "spec.managedBy",
			change: func(job *batchv1.Job) { job.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") },
		},
		"Ephemeral": {
			reason: "ephemeral containers are for running pods only", wantReason: "RefusedManifest", wantPath: root + ".ephemeralContainers",
			change: onPod(func(spec *corev1.PodSpec) { spec.EphemeralContainers = []corev1.EphemeralContainer{{}} }),
		},
	}
}

func TestViolatingJobs(t *testing.T) {
	for name, tc := range violatingJobs() {
		t.Run(name, func(t *testing.T) {
			assertRejected(t, draftBounded(t, releasetest.Release(releasetest.Job(tc.change))), tc.wantReason, tc.wantPath)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

// draftBounded returns a plan, and asserts a bound on all memory that it allocates.
func draftBounded(t *testing.T, release *payload.Release) releasetest.Drafted {
	t.Helper()
	const limit = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan := releasetest.Draft(releasetest.Run(), release)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > limit {
		t.Errorf("%d bytes allocated, want at most %d", n, limit)
	}
	return plan
}

// assertRejected asserts that the plan is empty, and that the finding has reason and
// path.
func assertRejected(t *testing.T, plan releasetest.Drafted, reason, path string) {
	t.Helper()
	if len(plan.Checks) > 0 || len(plan.Supporting) > 0 || len(plan.Refused) != 1 {
		t.Fatalf("want one rejected check and an empty plan, got %d checks, %d objects, refused %v", len(plan.Checks), len(plan.Supporting),
			plan.Refused)
	}
	f := plan.Refused[0]
	if f.Outcome != preflight.Fail || !f.Blocks || f.Source != finding.SourceJob {
		t.Errorf("a rejected check must block: %+v", f)
	}
	if f.Reason != reason || !strings.Contains(f.Message, path+": ") {
		t.Errorf("want %s at %s, got %s: %s", reason, path, f.Reason, f.Message)
	}
	if diff := cmp.Diff([]finding.Action{finding.Accept(f.Name)}, f.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestViolationsAreListedUpToLimit(t *testing.T) {
	plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
		job.Spec.Template.Spec.InitContainers = make([]corev1.Container, 7)
	})))
	assertRejected(t, plan, "RefusedImage", "spec.template.spec.initContainers[4].image")
	if message := plan.Refused[0].Message; !strings.HasSuffix(message, "; and 2 more") {
		t.Errorf("want the number of the others: %s", message)
	}
}

func TestValidJob(t *testing.T) {
	plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
		job.Spec.Completions, job.Spec.Parallelism, job.Spec.Suspend = new(int32(1)), new(int32(1)), new(false)
		spec := &job.Spec.Template.Spec
		job.Spec.Template.Annotations = map[string]string{"openshift.io/required-scc": "restricted-v2", "description": "x"}
		spec.PreemptionPolicy = new(corev1.PreemptNever)
		spec.SchedulerName = corev1.DefaultSchedulerName
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone}}
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1,c2"},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
		spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/"}}}
		spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		for _, source := range []corev1.VolumeSource{
			{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			{Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
			{DownwardAPI: &corev1.DownwardAPIVolumeSource{}},
			{Image: &corev1.ImageVolumeSource{Reference: releasetest.Image}},
		} {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		}
	})))
	if len(plan.Checks) != 1 {
		t.Errorf("refused: %v", plan.Refused)
	}
}

func TestDuplicateJobs(t *testing.T) {
	plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(nil), releasetest.Job(nil)))
	if len(plan.Checks) != 1 || len(plan.Refused) != 1 {
		t.Fatalf("want the first only, got %d checks, refused %v", len(plan.Checks), plan.Refused)
	}
	if f := plan.Refused[0]; f.Name != "Etcd.EtcdPreflight-2" || !strings.Contains(f.Message, "0000_50_etcd_00.yaml") {
		t.Errorf("want the second Job under another name: %+v", f)
	}
}

func TestViolatingRoles(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	bound := releasetest.Binding("Role", "reader", releasetest.Subject("checker"))
	for name, tc := range map[string]struct {
		reason     string
		objects    []payload.Object
		wantReason string
		wantPath   string
	}{
		"Write": {
			reason:     "a preflight has read access only",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("", "pods", "get", "delete")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"AnyVerb": {
			reason: "any verb includes writes", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("", "pods", "get"), rule("", "pods", "*")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[1].verbs",
		},
		"Escalate": {
			reason: "escalate grants any permission", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("rbac.authorization.k8s.io", "clusterroles", "escalate")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Bind": {
			reason: "bind grants any role", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("rbac.authorization.k8s.io", "clusterroles", "bind")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Impersonate": {
			reason:     "impersonation bypasses the guard",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("", "users", "impersonate")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Use": {
			reason: "the SCC may allow more",
			objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("security.openshift.io", "securitycontextconstraints", "use")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"CapitalVerb": {
			reason: "verbs are case-sensitive", objects: []payload.Object{
				releasetest.Account("checker"), releasetest.Role(rule("", "pods", "GET")),
				bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"AnyURL": {
			reason: "all paths include the profiles of the API server",
			objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].nonResourceURLs",
		},
		"AnyPath": {
			reason: "a pattern of all paths includes the profiles of the API server",
			objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics", "/*"}, Verbs: []string{"get"}}), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].nonResourceURLs",
		},
		"PostToURL": {
			reason: "put is not read access",
			objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rbacv1.PolicyRule{NonResourceURLs: []string{"/debug/flags/v"}, Verbs: []string{"put"}}), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"ExecByWildcard": {
			reason:     "a wildcard resource includes pods",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("*", "*/exec", "get")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"AnySubresource": {
			reason:     "a wildcard subresource includes exec",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("", "pods/*", "get")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"ServiceProxy": {
			reason: "a proxy forwards any request", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("", "services/proxy", "get")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"VirtualMachine": {
			reason: "vnc is a console of a virtual machine", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("subresources.kubevirt.io", "virtualmachineinstances/vnc", "get")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"VirtualMachineUSB": {
			reason: "usbredir attaches USB devices to a virtual machine", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("subresources.kubevirt.io", "virtualmachineinstances/usbredir", "get")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"VirtualMachineSocket": {
			reason: "vsock is a connection to a virtual machine", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("subresources.kubevirt.io", "virtualmachineinstances/vsock", "get")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"AnyOfVirtualMachines": {
			reason:     "all resources of the group are connections",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("subresources.kubevirt.io", "*", "get")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"CreateOther": {
			reason: "only reviews are not stored", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Role(rule("", "pods", "create")), bound,
			},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"CreateReviewsAndMore": {
			reason:     "a wildcard includes more than reviews",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("authorization.k8s.io", "*", "create")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"TokenRequest": {
			reason:     "a token request is not a review",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("", "serviceaccounts/token", "create")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Exec": {
			reason:     "the verb of exec is get, over a websocket",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("", "pods/exec", "get")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"NodeProxy": {
			reason:     "the kubelet executes commands through nodes/proxy",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("", "nodes/proxy", "get")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"AnyResource": {
			reason:     "all resources include pods/exec",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Role(rule("*", "*", "get")), bound},
			wantReason: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"Aggregation": {
			reason: "aggregated rules are not in the release",
			objects: []payload.Object{
				releasetest.Account("checker"), releasetest.Binding("ClusterRole", "all", releasetest.Subject("checker")),
				func() *rbacv1.ClusterRole {
					aggregated := &rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{}}
					aggregated.Name = "all"
					return aggregated
				}(),
			},
			wantReason: "RefusedRBAC", wantPath: "aggregationRule",
		},
		"ForeignRole": {
			reason: "a bound role must be in the release", objects: []payload.Object{
				releasetest.Account("checker"),
				releasetest.Binding("ClusterRole", "cluster-admin", releasetest.Subject("checker")),
			},
			wantReason: "RefusedRBAC", wantPath: "roleRef",
		},
		"RoleNamedView": {
			reason:     "only the cluster role is known to be read-only",
			objects:    []payload.Object{releasetest.Account("checker"), releasetest.Binding("Role", "view", releasetest.Subject("checker"))},
			wantReason: "RefusedRBAC", wantPath: "roleRef",
		},
		"ForeignSubject": {
			reason: "a preflight grants permissions to its own ServiceAccounts only",
			objects: []payload.Object{
				releasetest.Account("checker"), releasetest.Role(),
				releasetest.Binding("Role", "reader", releasetest.Subject("checker"), releasetest.Subject("builder")),
			},
			wantReason: "RefusedRBAC", wantPath: "subjects[1]",
		},
		"Group": {
			reason: "the members of a group are unknown",
			objects: []payload.Object{
				releasetest.Account("checker"), releasetest.Role(),
				releasetest.Binding("Role", "reader", releasetest.Subject("checker"),
					rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"}),
			},
			wantReason: "RefusedRBAC", wantPath: "subjects[1]",
		},
		"Twice": {
			reason: "a duplicate object is ambiguous", objects: []payload.Object{releasetest.Account("checker"), releasetest.Account("checker")},
			wantReason: "RefusedManifest", wantPath: "metadata.name",
		},
		"NoNamespace": {
			reason: "the author chooses the namespace",
			objects: []payload.Object{releasetest.Account("checker"), func() *rbacv1.RoleBinding {
				unplaced := releasetest.Binding("ClusterRole", "view", releasetest.Subject("checker"))
				unplaced.Namespace = ""
				return unplaced
			}()},
			wantReason: "RefusedManifest", wantPath: "metadata.namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := releasetest.Release(releasetest.Job(func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "checker" }))
			release.Supporting = releasetest.Supporting(tc.objects...)
			assertRejected(t, draftBounded(t, release), tc.wantReason, tc.wantPath)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestValidRoles(t *testing.T) {
	release := releasetest.Release(releasetest.Job(func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "checker" }))
	release.Supporting = releasetest.Supporting(
		releasetest.Account("checker"),
		releasetest.Role(
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}, Verbs: []string{"get", "list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"config.openshift.io"}, Resources: []string{"*"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{
				APIGroups: []string{"authorization.k8s.io", "authentication.k8s.io"},
				Resources: []string{"selfsubjectaccessreviews", "tokenreviews"}, Verbs: []string{"create"},
			},
		),
		releasetest.Binding("Role", "reader", releasetest.Subject("checker")),
	)
	plan := releasetest.Draft(releasetest.Run(), release)
	if len(plan.Checks) != 1 || len(plan.Supporting) != 3 {
		t.Errorf("want one check and its three objects, got %d and %d, refused %v", len(plan.Checks), len(plan.Supporting), plan.Refused)
	}
}

func TestViolationAffectsDependentChecksOnly(t *testing.T) {
	release := releasetest.Release(
		releasetest.Job(func(job *batchv1.Job) { job.Name, job.Spec.Template.Spec.ServiceAccountName = "bad", "checker" }),
		releasetest.Job(func(job *batchv1.Job) { job.Name = "good" }),
	)
	release.Supporting = releasetest.Supporting(releasetest.Account("checker"),
		releasetest.Binding("ClusterRole", "cluster-admin", releasetest.Subject("checker")))
	plan := releasetest.Draft(releasetest.Run(), release)
	if len(plan.Refused) != 1 || plan.Refused[0].Name != "Etcd.Bad" || len(plan.Checks) != 1 || plan.Checks[0].Name != "Etcd.Good" {
		t.Errorf("got checks %v, refused %v", plan.Checks, plan.Refused)
	}
}
