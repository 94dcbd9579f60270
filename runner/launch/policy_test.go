package launch_test

import (
	"runtime"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/google/go-cmp/cmp"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
)

// jobThatMayNotRun is one that breaks a rule.
type jobThatMayNotRun struct {
	reason             string
	change             func(*batchv1.Job)
	wantRule, wantPath string
}

func jobsThatMayNotRun() map[string]jobThatMayNotRun {
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
	return map[string]jobThatMayNotRun{
		"Tag": {
			reason: "a tag can be moved", wantRule: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/openshift/cco:latest" }),
		},
		"ForeignDigest": {
			reason: "the signature covers the release's images only", wantRule: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/evil/cco@" + digest }),
		},
		"ShortDigest": {
			reason: "half a digest is none", wantRule: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/openshift/cco@sha256:aa" }),
		},
		"NoImage": {
			reason: "there is nothing to run", wantRule: "RefusedImage", wantPath: root + ".containers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "" }),
		},
		"InitImage": {
			reason: "init containers run code too", wantRule: "RefusedImage", wantPath: root + ".initContainers[0].image",
			change: onPod(func(spec *corev1.PodSpec) { spec.InitContainers = []corev1.Container{{Image: "busybox"}} }),
		},
		"ImageVolume": {
			reason: "an image may come as a volume", wantRule: "RefusedImage", wantPath: root + ".volumes[0].image.reference",
			change: mount(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "busybox"}}),
		},
		"Privileged": {
			reason: "root on the node", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.privileged",
			change: secure(corev1.SecurityContext{Privileged: new(true)}),
		},
		"Escalation": {
			reason: "setuid binaries", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.allowPrivilegeEscalation",
			change: secure(corev1.SecurityContext{AllowPrivilegeEscalation: new(true)}),
		},
		"Capability": {
			reason: "parts of root", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.capabilities.add",
			change: secure(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}),
		},
		"ProcMount": {
			reason: "the node's /proc", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.procMount",
			change: secure(corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}),
		},
		"HostProcessContainer": {
			reason: "the Windows way onto the host", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.windowsOptions.hostProcess",
			change: secure(corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}),
		},
		"HostProcessPod": {
			reason: "the Windows way onto the host", wantRule: "RefusedPodSecurity", wantPath: root + ".securityContext.windowsOptions.hostProcess",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}
			}),
		},
		"Sysctls": {
			reason: "kernel parameters", wantRule: "RefusedPodSecurity", wantPath: root + ".securityContext.sysctls",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
			}),
		},
		"HostNetwork": {
			reason: "the node's network", wantRule: "RefusedPodSecurity", wantPath: root + ".hostNetwork",
			change: onPod(func(spec *corev1.PodSpec) { spec.HostNetwork = true }),
		},
		"HostPID": {
			reason: "the node's processes", wantRule: "RefusedPodSecurity", wantPath: root + ".hostPID",
			change: onPod(func(spec *corev1.PodSpec) { spec.HostPID = true }),
		},
		"HostIPC": {
			reason: "the node's shared memory", wantRule: "RefusedPodSecurity", wantPath: root + ".hostIPC",
			change: onPod(func(spec *corev1.PodSpec) { spec.HostIPC = true }),
		},
		"HostPort": {
			reason: "a port of the node", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].ports[0].hostPort",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }),
		},
		"HostPath": {
			reason: "the node's files", wantRule: "RefusedPodSecurity", wantPath: root + ".volumes[0].hostPath",
			change: mount(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
		},
		"Storage": {
			reason: "what is written there stays", wantRule: "RefusedVolume", wantPath: root + ".volumes[0].persistentVolumeClaim",
			change: mount(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}),
		},
		"NoSource": {
			reason: "a volume that is nothing", wantRule: "RefusedVolume", wantPath: root + ".volumes[0]",
			change: mount(corev1.VolumeSource{}),
		},
		"TwoSources": {
			reason: "nobody can tell which one is mounted", wantRule: "RefusedVolume", wantPath: root + ".volumes[0]",
			change: mount(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}, CSI: &corev1.CSIVolumeSource{}}),
		},
		"Driver": {
			reason: "a driver may do anything on the node", wantRule: "RefusedVolume", wantPath: root + ".volumes[0].csi",
			change: mount(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "example.com"}}),
		},
		"Certificate": {
			reason: "the guard knows pods by their tokens", wantRule: "RefusedVolume", wantPath: root + ".volumes[0].projected.sources[1].podCertificate",
			change: mount(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}, {PodCertificate: &corev1.PodCertificateProjection{}},
			}}}),
		},
		"Propagation": {
			reason: "what is mounted inside shows on the node", wantRule: "RefusedVolume", wantPath: root + ".containers[0].volumeMounts[0].mountPropagation",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPropagation: new(corev1.MountPropagationBidirectional)}}
			}),
		},
		"BlockDevice": {
			reason: "a disk without its file system", wantRule: "RefusedVolume", wantPath: root + ".containers[0].volumeDevices",
			change: onPod(func(spec *corev1.PodSpec) { spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "v"}} }),
		},
		"Claim": {
			reason: "a device of the node", wantRule: "RefusedDevice", wantPath: root + ".resourceClaims",
			change: onPod(func(spec *corev1.PodSpec) { spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }),
		},
		"DevicePlugin": {
			reason: "a device of the node, by the older way", wantRule: "RefusedDevice", wantPath: root + ".containers[0].resources.limits",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "devices.kubevirt.io/kvm": resource.MustParse("1")}
			}),
		},
		"HugePages": {
			reason: "memory that the node set aside for others", wantRule: "RefusedDevice", wantPath: root + ".containers[0].resources.requests",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].Resources.Requests = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("1Gi")}
			}),
		},
		"DeviceOfThePod": {
			reason: "resources may be asked for the whole pod", wantRule: "RefusedDevice", wantPath: root + ".resources.limits",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/nic": resource.MustParse("1")}}
			}),
		},
		"HugePagesOfThePod": {
			reason: "resources may be asked for the whole pod", wantRule: "RefusedDevice", wantPath: root + ".resources.requests",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"hugepages-2Mi": resource.MustParse("1Gi")}}
			}),
		},
		"Probe": {
			reason: "the kubelet connects from the node's network", wantRule: "RefusedProbe", wantPath: root + ".containers[0].startupProbe.httpGet.host",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "127.0.0.1"}}}
			}),
		},
		"Hook": {
			reason: "a hook is a request of the kubelet too", wantRule: "RefusedProbe", wantPath: root + ".containers[0].lifecycle.postStart.tcpSocket.host",
			change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: "169.254.169.254"}}}
			}),
		},
		"SELinux": {
			reason: "the type of super-privileged containers", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.seLinuxOptions.type",
			change: secure(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}),
		},
		"SELinuxOfThePod": {
			reason: "the pod's is that of its containers", wantRule: "RefusedPodSecurity", wantPath: root + ".securityContext.seLinuxOptions.type",
			change: securePod(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}),
		},
		"Seccomp": {
			reason: "every system call of the node", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.seccompProfile.type",
			change: secure(corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}),
		},
		"SeccompOfThePod": {
			reason: "the pod's is that of its containers", wantRule: "RefusedPodSecurity", wantPath: root + ".securityContext.seccompProfile.type",
			change: securePod(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}),
		},
		"AppArmor": {
			reason: "every file of the node", wantRule: "RefusedPodSecurity", wantPath: root + ".containers[0].securityContext.appArmorProfile.type",
			change: secure(corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}),
		},
		"AppArmorOfThePod": {
			reason: "the pod's is that of its containers", wantRule: "RefusedPodSecurity", wantPath: root + ".securityContext.appArmorProfile.type",
			change: securePod(corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}),
		},
		"AppArmorByAnnotation": {
			reason: "the API server turns it into the field", wantRule: "RefusedAnnotation",
			wantPath: "spec.template.metadata.annotations.container.apparmor.security.beta.kubernetes.io/check",
			change:   annotate("container.apparmor.security.beta.kubernetes.io/check", "unconfined"),
		},
		"Network": {
			reason: "another network than the cluster's", wantRule: "RefusedAnnotation", wantPath: "spec.template.metadata.annotations.k8s.v1.cni.cncf.io/networks",
			change: annotate("k8s.v1.cni.cncf.io/networks", "storage"),
		},
		"RuntimeAnnotation": {
			reason: "devices that the container runtime gives away", wantRule: "RefusedAnnotation", wantPath: "spec.template.metadata.annotations.io.kubernetes.cri-o.Devices/x",
			change: annotate("io.kubernetes.cri-o.Devices/x", "/dev/fuse"),
		},
		"RuntimeClass": {
			reason: "a runtime that confines less", wantRule: "RefusedPodSecurity", wantPath: root + ".runtimeClassName",
			change: onPod(func(spec *corev1.PodSpec) { spec.RuntimeClassName = new("legacy") }),
		},
		"Node": {
			reason: "the kubelet runs it whatever the node's taints", wantRule: "RefusedScheduling", wantPath: root + ".nodeName",
			change: onPod(func(spec *corev1.PodSpec) { spec.NodeName = "master-0" }),
		},
		"Priority": {
			reason: "others are evicted for it", wantRule: "RefusedScheduling", wantPath: root + ".priorityClassName",
			change: onPod(func(spec *corev1.PodSpec) { spec.PriorityClassName = "system-node-critical" }),
		},
		"Preemption": {
			reason: "others are evicted for it", wantRule: "RefusedScheduling", wantPath: root + ".preemptionPolicy",
			change: onPod(func(spec *corev1.PodSpec) { spec.PreemptionPolicy = new(corev1.PreemptLowerPriority) }),
		},
		"SchedulingGate": {
			reason: "it would never start", wantRule: "RefusedScheduling", wantPath: root + ".schedulingGates",
			change: onPod(func(spec *corev1.PodSpec) { spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }),
		},
		"Indexed": {
			reason: "the names of its pods have an index, by which the guard would not know them", wantRule: "RefusedManifest", wantPath: "spec.completionMode",
			change: func(job *batchv1.Job) { job.Spec.CompletionMode = new(batchv1.IndexedCompletion) },
		},
		"NoNamespace": {
			reason: "the author chooses the namespace", wantRule: "RefusedManifest", wantPath: "metadata.namespace",
			change: func(job *batchv1.Job) { job.Namespace = "" },
		},
		"NoName": {
			reason: "a generated name is not one to accept", wantRule: "RefusedManifest", wantPath: "metadata.name",
			change: func(job *batchv1.Job) { job.Name = "" },
		},
		"Completions": {
			reason: "two pods would give two answers", wantRule: "RefusedManifest", wantPath: "spec.completions",
			change: func(job *batchv1.Job) { job.Spec.Completions = new(int32(2)) },
		},
		"Parallelism": {
			reason: "no pod would give no answer", wantRule: "RefusedManifest", wantPath: "spec.parallelism",
			change: func(job *batchv1.Job) { job.Spec.Parallelism = new(int32(0)) },
		},
		"Suspended": {
			reason: "it would never start", wantRule: "RefusedManifest", wantPath: "spec.suspend",
			change: func(job *batchv1.Job) { job.Spec.Suspend = new(true) },
		},
		"ManagedBy": {
			reason: "it would never start", wantRule: "RefusedManifest", wantPath: "spec.managedBy",
			change: func(job *batchv1.Job) { job.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") },
		},
		"Ephemeral": {
			reason: "no such thing before the pod runs", wantRule: "RefusedManifest", wantPath: root + ".ephemeralContainers",
			change: onPod(func(spec *corev1.PodSpec) { spec.EphemeralContainers = []corev1.EphemeralContainer{{}} }),
		},
	}
}

func TestJobsThatMayNotRun(t *testing.T) {
	for name, tc := range jobsThatMayNotRun() {
		t.Run(name, func(t *testing.T) {
			refused(t, frugal(t, aRelease(aJob(tc.change))), tc.wantRule, tc.wantPath)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

// frugal builds a plan, and holds that it takes no more memory than looking at a
// release may. All that is allocated counts, whether it is given back or not.
func frugal(t *testing.T, release *payload.Release) judgedPlan {
	t.Helper()
	const most = 64 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan := judge(aRun(), release)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d bytes allocated, want at most %d", n, most)
	}
	return plan
}

// refused holds that nothing is run, and that the finding names rule and path.
func refused(t *testing.T, plan judgedPlan, rule, path string) {
	t.Helper()
	if len(plan.Checks) > 0 || len(plan.Supporting) > 0 || len(plan.Refused) != 1 {
		t.Fatalf("want one refusal and nothing to run, got %d checks, %d objects, refused %v", len(plan.Checks), len(plan.Supporting), plan.Refused)
	}
	f := plan.Refused[0]
	if f.Outcome != preflight.Fail || !f.Blocks || f.Source != finding.SourceJob {
		t.Errorf("a refused check does not block: %+v", f)
	}
	if f.Reason != rule || !strings.Contains(f.Message, path+": ") {
		t.Errorf("want %s at %s, got %s: %s", rule, path, f.Reason, f.Message)
	}
	if diff := cmp.Diff([]finding.Action{finding.Accept(f.Name)}, f.Actions); diff != "" {
		t.Errorf("the finding can be accepted (-want +got):\n%s", diff)
	}
}

func TestAllFaultsAreNamedUpToALimit(t *testing.T) {
	plan := judge(aRun(), aRelease(aJob(func(job *batchv1.Job) {
		job.Spec.Template.Spec.InitContainers = make([]corev1.Container, 7)
	})))
	refused(t, plan, "RefusedImage", "spec.template.spec.initContainers[4].image")
	if message := plan.Refused[0].Message; !strings.HasSuffix(message, "; and 2 more") {
		t.Errorf("the rest is not counted: %s", message)
	}
}

func TestWhatJobsMayDo(t *testing.T) {
	plan := judge(aRun(), aRelease(aJob(func(job *batchv1.Job) {
		job.Spec.Completions, job.Spec.Parallelism, job.Spec.Suspend = new(int32(1)), new(int32(1)), new(false)
		spec := &job.Spec.Template.Spec
		job.Spec.Template.Annotations = map[string]string{"openshift.io/required-scc": "restricted-v2", "description": "x"}
		spec.PreemptionPolicy = new(corev1.PreemptNever)
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
			{Image: &corev1.ImageVolumeSource{Reference: image}},
		} {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		}
	})))
	if len(plan.Checks) != 1 {
		t.Errorf("refused: %v", plan.Refused)
	}
}

func TestJobsThatAreThereTwice(t *testing.T) {
	plan := judge(aRun(), aRelease(aJob(nil), aJob(nil)))
	if len(plan.Checks) != 1 || len(plan.Refused) != 1 {
		t.Fatalf("want the first only, got %d checks, refused %v", len(plan.Checks), plan.Refused)
	}
	if f := plan.Refused[0]; f.Name != "Etcd.EtcdPreflight-2" || !strings.Contains(f.Message, "0000_50_etcd_00.yaml") {
		t.Errorf("the second is not told apart from the first: %+v", f)
	}
}

func TestRolesThatMayNotBeGiven(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	bound := binding("Role", "reader", subject("checker"))
	for name, tc := range map[string]struct {
		reason   string
		objects  []payload.Object
		wantRule string
		wantPath string
	}{
		"Write": {
			reason: "a preflight reads", objects: []payload.Object{account("checker"), role(rule("", "pods", "get", "delete")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"AnyVerb": {
			reason: "any verb is writing too", objects: []payload.Object{account("checker"), role(rule("", "pods", "get"), rule("", "pods", "*")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[1].verbs",
		},
		"Escalate": {
			reason: "it writes itself any right", objects: []payload.Object{account("checker"), role(rule("rbac.authorization.k8s.io", "clusterroles", "escalate")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Bind": {
			reason: "it takes any role", objects: []payload.Object{account("checker"), role(rule("rbac.authorization.k8s.io", "clusterroles", "bind")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Impersonate": {
			reason: "it takes any identity, past the guard", objects: []payload.Object{account("checker"), role(rule("", "users", "impersonate")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Use": {
			reason:   "a security context constraint that allows more",
			objects:  []payload.Object{account("checker"), role(rule("security.openshift.io", "securitycontextconstraints", "use")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"CapitalVerb": {
			reason: "verbs are compared as they are written", objects: []payload.Object{account("checker"), role(rule("", "pods", "GET")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"AnyURL": {
			reason:   "the API server's profiles among them",
			objects:  []payload.Object{account("checker"), role(rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].nonResourceURLs",
		},
		"PostToURL": {
			reason:   "no path is created by reading",
			objects:  []payload.Object{account("checker"), role(rbacv1.PolicyRule{NonResourceURLs: []string{"/debug/flags/v"}, Verbs: []string{"put"}}), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"ExecByWildcard": {
			reason: "a wildcard before the subresource", objects: []payload.Object{account("checker"), role(rule("*", "*/exec", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"AnySubresource": {
			reason: "a wildcard behind the resource", objects: []payload.Object{account("checker"), role(rule("", "pods/*", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"ServiceProxy": {
			reason: "a proxy passes on whatever it is sent", objects: []payload.Object{account("checker"), role(rule("", "services/proxy", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"VirtualMachine": {
			reason: "a console of a virtual machine", objects: []payload.Object{account("checker"), role(rule("subresources.kubevirt.io", "virtualmachineinstances/vnc", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"AnyOfVirtualMachines": {
			reason: "all of them are connections", objects: []payload.Object{account("checker"), role(rule("subresources.kubevirt.io", "*", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"CreateOther": {
			reason: "only reviews are created without leaving anything", objects: []payload.Object{account("checker"), role(rule("", "pods", "create")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"CreateReviewsAndMore": {
			reason: "a wildcard is more than reviews", objects: []payload.Object{account("checker"), role(rule("authorization.k8s.io", "*", "create")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"TokenRequest": {
			reason: "a token of another account is not a review", objects: []payload.Object{account("checker"), role(rule("", "serviceaccounts/token", "create")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].verbs",
		},
		"Exec": {
			reason: "the verb of exec is get, over a websocket", objects: []payload.Object{account("checker"), role(rule("", "pods/exec", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"NodeProxy": {
			reason: "the kubelet runs commands for whoever may get nodes/proxy", objects: []payload.Object{account("checker"), role(rule("", "nodes/proxy", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"AnyResource": {
			reason: "all resources include pods/exec", objects: []payload.Object{account("checker"), role(rule("*", "*", "get")), bound},
			wantRule: "RefusedRBAC", wantPath: "rules[0].resources",
		},
		"Aggregation": {
			reason: "what it gathers is not in the release",
			objects: []payload.Object{
				account("checker"), binding("ClusterRole", "all", subject("checker")),
				func() *rbacv1.ClusterRole {
					aggregated := &rbacv1.ClusterRole{AggregationRule: &rbacv1.AggregationRule{}}
					aggregated.Name = "all"
					return aggregated
				}(),
			},
			wantRule: "RefusedRBAC", wantPath: "aggregationRule",
		},
		"ForeignRole": {
			reason: "what is bound must be seen", objects: []payload.Object{account("checker"), binding("ClusterRole", "cluster-admin", subject("checker"))},
			wantRule: "RefusedRBAC", wantPath: "roleRef",
		},
		"RoleCalledView": {
			reason: "only the cluster role is known to be harmless", objects: []payload.Object{account("checker"), binding("Role", "view", subject("checker"))},
			wantRule: "RefusedRBAC", wantPath: "roleRef",
		},
		"ForeignSubject": {
			reason:   "nobody else gets rights by a preflight",
			objects:  []payload.Object{account("checker"), role(), binding("Role", "reader", subject("checker"), subject("builder"))},
			wantRule: "RefusedRBAC", wantPath: "subjects[1]",
		},
		"Group": {
			reason: "a group has members that nobody listed",
			objects: []payload.Object{
				account("checker"), role(),
				binding("Role", "reader", subject("checker"), rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"}),
			},
			wantRule: "RefusedRBAC", wantPath: "subjects[1]",
		},
		"Twice": {
			reason: "nobody can tell which one was meant", objects: []payload.Object{account("checker"), account("checker")},
			wantRule: "RefusedManifest", wantPath: "metadata.name",
		},
		"NoNamespace": {
			reason: "the author chooses the namespace",
			objects: []payload.Object{account("checker"), func() *rbacv1.RoleBinding {
				unplaced := binding("ClusterRole", "view", subject("checker"))
				unplaced.Namespace = ""
				return unplaced
			}()},
			wantRule: "RefusedManifest", wantPath: "metadata.namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			release := aRelease(aJob(func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "checker" }))
			release.Supporting = supporting(tc.objects...)
			refused(t, frugal(t, release), tc.wantRule, tc.wantPath)
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestWhatRolesMayGive(t *testing.T) {
	release := aRelease(aJob(func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "checker" }))
	release.Supporting = supporting(
		account("checker"),
		role(
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}, Verbs: []string{"get", "list", "watch"}},
			rbacv1.PolicyRule{APIGroups: []string{"config.openshift.io"}, Resources: []string{"*"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
			rbacv1.PolicyRule{
				APIGroups: []string{"authorization.k8s.io", "authentication.k8s.io"},
				Resources: []string{"selfsubjectaccessreviews", "tokenreviews"}, Verbs: []string{"create"},
			},
		),
		binding("Role", "reader", subject("checker")),
	)
	plan := judge(aRun(), release)
	if len(plan.Checks) != 1 || len(plan.Supporting) != 3 {
		t.Errorf("want one check and its three objects, got %d and %d, refused %v", len(plan.Checks), len(plan.Supporting), plan.Refused)
	}
}

func TestOnlyWhatUsesABadObjectIsRefused(t *testing.T) {
	release := aRelease(
		aJob(func(job *batchv1.Job) { job.Name, job.Spec.Template.Spec.ServiceAccountName = "bad", "checker" }),
		aJob(func(job *batchv1.Job) { job.Name = "good" }),
	)
	release.Supporting = supporting(account("checker"), binding("ClusterRole", "cluster-admin", subject("checker")))
	plan := judge(aRun(), release)
	if len(plan.Refused) != 1 || plan.Refused[0].Name != "Etcd.Bad" || len(plan.Checks) != 1 || plan.Checks[0].Name != "Etcd.Good" {
		t.Errorf("got checks %v, refused %v", plan.Checks, plan.Refused)
	}
}
