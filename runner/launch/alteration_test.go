package launch_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/alteration"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/test/golden"
)

// Tests of: runner/launch/alteration

// podChange is a change of a pod by admission.
type podChange struct {
	reason string
	change func(*corev1.Pod)
	// differs is the field that the message names; empty where the change is harmless.
	differs string
}

// onCheck changes the container of the check.
func onCheck(change func(*corev1.Container)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		at := slices.IndexFunc(pod.Spec.Containers, func(container corev1.Container) bool { return container.Name == "check" })
		change(&pod.Spec.Containers[at])
	}
}

func onSecurity(change func(*corev1.SecurityContext)) func(*corev1.Pod) {
	return onCheck(func(container *corev1.Container) { change(container.SecurityContext) })
}

func onPodSecurity(change func(*corev1.PodSecurityContext)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Spec.SecurityContext == nil {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		change(pod.Spec.SecurityContext)
	}
}

// addVolume adds a volume of this source, and mounts it into the check if there is a path.
func addVolume(path string, source corev1.VolumeSource) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "added", VolumeSource: source})
		if path != "" {
			onCheck(func(container *corev1.Container) {
				container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "added", MountPath: path, ReadOnly: true})
			})(pod)
		}
	}
}

// setVariable changes a variable of the container of the check.
func setVariable(name, value string) func(*corev1.Pod) {
	return onCheck(func(container *corev1.Container) {
		at := slices.IndexFunc(container.Env, func(variable corev1.EnvVar) bool { return variable.Name == name })
		container.Env[at].Value = value
	})
}

func addContainer(container corev1.Container) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		container.Name, container.Image = "added", "quay.io/added:latest"
		pod.Spec.Containers = append([]corev1.Container{container}, pod.Spec.Containers...)
	}
}

func projected(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
}

func configMap(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// tokenVolume returns the volume that the API server added for the token.
func tokenVolume(pod *corev1.Pod) *corev1.Volume {
	at := slices.IndexFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return strings.HasPrefix(volume.Name, "kube-api-access-") })
	return &pod.Spec.Volumes[at]
}

// ordinaryChanges are changes by admission of real clusters.
func ordinaryChanges() map[string]podChange {
	return map[string]podChange{
		"None": {reason: "defaults, token volume and tolerations of the API server", change: func(*corev1.Pod) {}},
		"SCC": {reason: "SCC restricted-v2 of OpenShift", change: func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"openshift.io/scc": "restricted-v2", "seccomp.security.alpha.kubernetes.io/pod": "runtime/default"}
			onPodSecurity(func(security *corev1.PodSecurityContext) {
				security.FSGroup, security.SELinuxOptions = new(int64(1000650000)), &corev1.SELinuxOptions{Level: "s0:c26,c5"}
				security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
			})(pod)
			onSecurity(func(security *corev1.SecurityContext) {
				security.RunAsUser, security.RunAsNonRoot = new(int64(1000650000)), new(true)
				security.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
			})(pod)
		}},
		"SCCOfUserNamespaces": {reason: "SCC restricted-v3", change: func(pod *corev1.Pod) { pod.Spec.HostUsers = new(false) }},
		"CustomSCC": {reason: "an SCC with supplemental groups and a read-only root", change: func(pod *corev1.Pod) {
			onPodSecurity(func(security *corev1.PodSecurityContext) { security.SupplementalGroups = []int64{5555} })(pod)
			onSecurity(func(security *corev1.SecurityContext) {
				security.Privileged, security.ReadOnlyRootFilesystem = new(false), new(true)
			})(pod)
		}},
		"ServiceCA": {reason: "the certificate of services in OpenShift's token volume", change: func(pod *corev1.Pod) {
			of := tokenVolume(pod).Projected
			of.Sources = append(of.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "openshift-service-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "service-ca.crt", Path: "service-ca.crt"}},
			}})
		}},
		"PullSecret": {
			reason: "the pull secret of the account",
			change: func(pod *corev1.Pod) { pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}} },
		},
		"AlwaysPullImages": {
			reason: "the digest determines the image",
			change: onCheck(func(container *corev1.Container) { container.ImagePullPolicy = corev1.PullAlways }),
		},
		"Mirror": {reason: "the digest determines the image", change: onCheck(func(container *corev1.Container) {
			_, digest, _ := strings.Cut(container.Image, "@")
			container.Image = "mirror.example.com/release@" + digest
		})},
		"LimitRange": {reason: "defaults of a LimitRange", change: onCheck(func(container *corev1.Container) {
			container.Resources.Limits = corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("1"),
				corev1.ResourceMemory: resource.MustParse("1Gi"),
			}
			container.Resources.Requests = container.Resources.Limits
		})},
		"WorkloadPartitioning": {reason: "CPUs for management in OpenShift", change: onCheck(func(container *corev1.Container) {
			container.Resources.Requests = corev1.ResourceList{"management.workload.openshift.io/cores": resource.MustParse("10")}
			container.Resources.Limits = container.Resources.Requests
		})},
		"Priority": {reason: "the default priority class", change: func(pod *corev1.Pod) {
			pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = "batch", new(int32(7)), new(corev1.PreemptNever)
		}},
		"Tolerations": {reason: "tolerations of the namespace", change: func(pod *corev1.Pod) {
			pod.Spec.Tolerations = append([]corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}}, pod.Spec.Tolerations...)
		}},
		"NodeSelector": {reason: "the node selector of the namespace", change: func(pod *corev1.Pod) {
			pod.Spec.NodeSelector["env"] = "test"
		}},
		"Architecture": {reason: "an operator for clusters of several architectures", change: func(pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "multiarch.openshift.io/scheduling-gate"}}
		}},
		"Scheduler": {
			reason: "another scheduler selects the node",
			change: func(pod *corev1.Pod) { pod.Spec.SchedulerName, pod.Spec.NodeName = "volcano", "node-1" },
		},
		"RunOnce": {
			reason: "OpenShift's limit of the time of pods that end",
			change: func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = new(int64(3600)) },
		},
		"Mesh": {reason: "the sidecar of a service mesh whose CNI plugin redirects connections, with its volumes", change: func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"sidecar.istio.io/status": "{}", "prometheus.io/scrape": "true"}
			pod.Spec.InitContainers = append([]corev1.Container{{
				Name: "istio-validation", Image: "quay.io/proxy", Args: []string{"istio-iptables", "--run-validation"},
				SecurityContext: &corev1.SecurityContext{
					RunAsUser:    new(int64(1337)),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}}, pod.Spec.InitContainers...)
			pod.Spec.Volumes = append(pod.Spec.Volumes,
				corev1.Volume{
					Name:         "istio-envoy",
					VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
				},
				corev1.Volume{Name: "istio-token", VolumeSource: projected(corev1.VolumeProjection{
					ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "istio-ca", Path: "istio-token"},
				})})
			addContainer(corev1.Container{
				Env: []corev1.EnvVar{{Name: "PILOT", Value: "x"}}, Ports: []corev1.ContainerPort{{ContainerPort: 15090}},
				Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"pilot-agent", "wait"}}}},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "istio-envoy", MountPath: "/etc/istio/proxy"},
					{Name: "istio-token", MountPath: "/var/run/secrets/tokens"},
					{Name: tokenVolume(pod).Name, MountPath: tokenPath, ReadOnly: true},
				},
			})(pod)
		}},
		"ReadsScratch": {reason: "a sidecar that reads what the check writes", change: addContainer(corev1.Container{
			VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/logs", ReadOnly: true}},
		})},
		"ReadinessGate": {reason: "the readiness of a pod has no effect on its Job", change: func(pod *corev1.Pod) {
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "target-health"}}
		}},
	}
}

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// hostileChanges are changes by which another result would be reported, or as another
// account.
func hostileChanges() map[string]podChange {
	const check = `spec.containers["check"]`
	return map[string]podChange{
		"MountedProgram": {"a ConfigMap is the program", addVolume("/bin", configMap("program")), check + ".volumeMounts"},
		"MountedToken": {
			"the token of another account", addVolume(tokenPath+"/other",
				corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "admin"}}),
			check + ".volumeMounts",
		},
		"ReplacedTokenVolume": {"the volume of the token has that of another account", func(pod *corev1.Pod) {
			tokenVolume(pod).VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "admin"}}
		}, ".volumeMounts"},
		"SecretInTokenVolume": {"a further source replaces the token", func(pod *corev1.Pod) {
			of := tokenVolume(pod).Projected
			of.Sources = append(of.Sources,
				corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "admin"}}})
		}, ".volumeMounts"},
		"OtherServer": {"the check trusts another API server", func(pod *corev1.Pod) {
			for _, source := range tokenVolume(pod).Projected.Sources {
				if source.ConfigMap != nil {
					source.ConfigMap.Name = "attack"
				}
			}
		}, ".volumeMounts"},
		"ProjectedToken": {"a token for another audience", addVolume("/tokens", projected(corev1.VolumeProjection{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", Path: "token"},
		})), check + ".volumeMounts"},
		"VolumeSource": {"the input of the check is another object", func(pod *corev1.Pod) {
			at := slices.IndexFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == "settings" })
			pod.Spec.Volumes[at].VolumeSource = configMap("other")
		}, `spec.volumes["settings"].configMap.name`},
		"SubPath": {
			"another file of the same volume", onCheck(func(container *corev1.Container) { container.VolumeMounts[0].SubPath = "x" }),
			check + ".volumeMounts[0].subPath",
		},
		"LostInit": {"the preparation of the input is skipped", func(pod *corev1.Pod) {
			pod.Spec.InitContainers = nil
		}, `spec.initContainers["first"] is not set`},
		"InitProgram": {"another preparation of the input", func(pod *corev1.Pod) {
			pod.Spec.InitContainers[0].Command = []string{"/bin/true"}
		}, `spec.initContainers["first"].command`},
		"InitOrder": {"the preparation depends on its order", func(pod *corev1.Pod) {
			slices.Reverse(pod.Spec.InitContainers)
		}, `spec.initContainers["second"] is before`},
		"EnvFrom": {"LD_PRELOAD from a ConfigMap", onCheck(func(container *corev1.Container) {
			container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "x"}}}}
		}), check + ".envFrom"},
		"LifecycleHook": {"a command in the container of the check", onCheck(func(container *corev1.Container) {
			container.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh"}}}}
		}), check + ".lifecycle"},
		"Probe": {"a command in the container of the check", onCheck(func(container *corev1.Container) {
			container.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh"}}}}
		}), check + ".livenessProbe"},
		"ProbeTarget": {"the kubelet stops the check by another request", onCheck(func(container *corev1.Container) {
			container.ReadinessProbe.HTTPGet.Port = intstr.FromInt32(1)
		}), check + ".readinessProbe.httpGet.port"},
		"PullPolicy": {
			"an image that only the node has",
			onCheck(func(container *corev1.Container) { container.ImagePullPolicy = corev1.PullNever }), check + ".imagePullPolicy",
		},
		"MessagePolicy": {"the result is not read from the log", onCheck(func(container *corev1.Container) {
			container.TerminationMessagePolicy = corev1.TerminationMessageReadFile
		}), check + ".terminationMessagePolicy"},
		"Device": {"a device of the node, with files of the node", onCheck(func(container *corev1.Container) {
			container.Resources.Limits["example.com/device"] = resource.MustParse("1")
		}), check + ".resources"},
		"Claim": {
			"a device by a claim", func(pod *corev1.Pod) { pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}} },
			"spec.resourceClaims",
		},
		"Privileged": {
			"less confined", onSecurity(func(security *corev1.SecurityContext) { security.Privileged = new(true) }),
			check + ".securityContext.privileged",
		},
		"Escalation": {
			"setuid programs gain privileges", onSecurity(
				func(security *corev1.SecurityContext) { security.AllowPrivilegeEscalation = new(true) }),
			check + ".securityContext.allowPrivilegeEscalation",
		},
		"Capability": {"an SCC with default capabilities", onSecurity(func(security *corev1.SecurityContext) {
			security.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}
		}), check + ".securityContext.capabilities"},
		"Root": {
			"root of the container", onSecurity(func(security *corev1.SecurityContext) { security.RunAsUser = new(int64(0)) }),
			check + ".securityContext.runAsUser",
		},
		"RootOfPod": {
			"root of all containers", onPodSecurity(func(security *corev1.PodSecurityContext) { security.RunAsUser = new(int64(0)) }),
			"spec.securityContext is",
		},
		"AuthorsUser": {
			"the author chose the user of the init container",
			func(pod *corev1.Pod) { pod.Spec.InitContainers[0].SecurityContext.RunAsUser = new(int64(2000)) },
			`initContainers["first"].securityContext.runAsUser`,
		},
		"LostDrop": {
			"the author dropped the capabilities",
			func(pod *corev1.Pod) { pod.Spec.InitContainers[0].SecurityContext.Capabilities = nil },
			`initContainers["first"].securityContext.capabilities`,
		},
		"Unconfined": {"less confined", onPodSecurity(func(security *corev1.PodSecurityContext) {
			security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		}), "spec.securityContext is"},
		"NodeProfile": {"system calls that lie", onPodSecurity(func(security *corev1.PodSecurityContext) {
			security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("x.json")}
		}), "spec.securityContext is"},
		"SELinuxType": {"less confined", onPodSecurity(func(security *corev1.PodSecurityContext) {
			security.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"}
		}), "spec.securityContext is"},
		"Sysctl": {"kernel parameters", onPodSecurity(
			func(security *corev1.PodSecurityContext) { security.Sysctls = []corev1.Sysctl{{Name: "x", Value: "1"}} }), "spec.securityContext is"},
		"ShareProcesses": {
			"other containers reach the files and memory of the check",
			func(pod *corev1.Pod) { pod.Spec.ShareProcessNamespace = new(true) }, "spec.shareProcessNamespace",
		},
		"HostPID":     {"processes of the node", func(pod *corev1.Pod) { pod.Spec.HostPID = true }, "spec.hostPID"},
		"HostNetwork": {"the network of the node", func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }, "spec.hostNetwork"},
		"HostAliases": {"another server has the name of a service", func(pod *corev1.Pod) {
			pod.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"prometheus"}}}
		}, "spec.hostAliases"},
		"DNS": {"another server resolves names", func(pod *corev1.Pod) {
			pod.Spec.DNSPolicy, pod.Spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1"}}
		}, "spec.dns"},
		"RuntimeClass": {
			"another runtime runs the program", func(pod *corev1.Pod) { pod.Spec.RuntimeClassName = new("attack") },
			"spec.runtimeClassName",
		},
		"ServiceLinks": {
			"variables that the check reads are missing", func(pod *corev1.Pod) { pod.Spec.EnableServiceLinks = new(false) },
			"spec.enableServiceLinks",
		},
		"NoToken": {
			"the check has no account", func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = new(false) },
			"spec.automountServiceAccountToken",
		},
		"LongGrace": {
			"the pod outlasts the run", func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(3600)) },
			"spec.terminationGracePeriodSeconds",
		},
		"Restart": {
			"a failed check is repeated until it passes",
			func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, "spec.restartPolicy",
		},
		"NodeLabel": {"the author chose the nodes", func(pod *corev1.Pod) { pod.Spec.NodeSelector = nil }, "spec.nodeSelector"},
		"Debugger": {"an ephemeral container enters that of the check", func(pod *corev1.Pod) {
			pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{TargetContainerName: "check"}}
		}, "spec.ephemeralContainers"},
		"WritesScratch": {
			"a sidecar replaces the input of the next container",
			addContainer(corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/x"}}}),
			`spec.containers["added"].volumeMounts is "scratch"`,
		},
		"PrivilegedBeside": {
			"a privileged container replaces files of all",
			addContainer(corev1.Container{SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}),
			`spec.containers["added"].securityContext.privileged`,
		},
		"CapableBeside": {
			"a container that controls the node",
			addContainer(corev1.Container{SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{
				Add: []corev1.Capability{"SYS_ADMIN"},
			}}}), `spec.containers["added"].securityContext.capabilities.add is "SYS_ADMIN"`,
		},
		"RedirectsBeside": {
			"a container that redirects the connections of the check",
			addContainer(corev1.Container{SecurityContext: &corev1.SecurityContext{
				RunAsUser: new(int64(0)), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}, Drop: []corev1.Capability{"ALL"}},
			}}), `spec.containers["added"].securityContext.capabilities.add is "NET_ADMIN"`,
		},
		"DeviceBeside": {"a device of the node, with files of the node", addContainer(corev1.Container{Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"example.com/device": resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("1")},
		}}), `spec.containers["added"].resources`},
		"ClaimBeside": {"a device by a claim of the author", addContainer(corev1.Container{Resources: corev1.ResourceRequirements{
			Claims: []corev1.ResourceClaim{{Name: "x"}},
		}}), `spec.containers["added"].resources`},
		"UnconfinedBeside": {
			"system calls by which the node can be attacked",
			addContainer(corev1.Container{SecurityContext: &corev1.SecurityContext{
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
			}}), `spec.containers["added"].securityContext.seccompProfile`,
		},
		"SELinuxBeside": {"the files of the node by another type", addContainer(corev1.Container{SecurityContext: &corev1.SecurityContext{
			SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"},
		}}), `spec.containers["added"].securityContext.seLinuxOptions`},
		"ProcBeside": {"the files of the kernel", addContainer(corev1.Container{SecurityContext: &corev1.SecurityContext{ProcMount: new(
			corev1.UnmaskedProcMount)}}), `spec.containers["added"].securityContext.procMount`},
		"PropagatesBeside": {"mounts of the node appear in the container", addContainer(corev1.Container{VolumeMounts: []corev1.VolumeMount{
			{Name: "settings", MountPath: "/x", MountPropagation: new(corev1.MountPropagationHostToContainer)},
		}}), `spec.containers["added"].volumeMounts.mountPropagation`},
		"NodeBeside": {
			"a container with the files of the node",
			addVolume("", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), `spec.volumes["added"] is "hostPath"`,
		},
		"ClaimedBeside": {"a claim whose volume is a directory of the node", addVolume("", corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"},
		}), `spec.volumes["added"] is "persistentVolumeClaim"`},
		"TwoKindsBeside": {"a volume of a known kind that has another, too", addVolume("", corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{}, CSI: &corev1.CSIVolumeSource{Driver: "x"},
		}), `spec.volumes["added"] is "emptyDir, csi"`},
		"UnknownBeside": {
			"a kind of volume that this version does not know", addVolume("", corev1.VolumeSource{}),
			`spec.volumes["added"] is "unknown"`,
		},
		"Renamed": {
			"the guard does not know the pod by its name", func(pod *corev1.Pod) { pod.Name = "other" },
			"metadata.name is \"other\"",
		},
		"Hidden": {
			"no watch of the run shows the pod", func(pod *corev1.Pod) { delete(pod.Labels, label.Run) },
			"metadata.labels." + label.Run + " is not set",
		},
		"LaterEnd": {"it runs past the end of the run", setVariable(jobplan.VariableDeadline, "2999-01-01T00:00:00Z"), check + ".env"},
		"NoEnd":    {"it does not know when the run ends", setVariable(jobplan.VariableDeadline, ""), check + ".env"},
		"CDI": {
			"a device of the node, with files of the node",
			func(pod *corev1.Pod) { pod.Annotations = map[string]string{"cdi.k8s.io/x": "example.com/device=all"} },
			"metadata.annotations.cdi.k8s.io/x",
		},
		"CRIO": {
			"the container runtime runs it in another way",
			func(pod *corev1.Pod) { pod.Annotations = map[string]string{"io.kubernetes.cri-o.Devices": "/dev/sda"} },
			"metadata.annotations.io.kubernetes.cri-o.Devices",
		},
		"AppArmor": {"less confined", func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/check": "unconfined"}
		}, "metadata.annotations.container.apparmor.security.beta.kubernetes.io/check"},
		"MountPlugin": {"a plugin of the container runtime mounts files", func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"mounts.noderesource.nri.io/check": "[]"}
		}, "metadata.annotations.mounts.noderesource.nri.io/check"},
	}
}

// podOf is the pod of a Job without a change by the API server.
func podOf(job *batchv1.Job) *corev1.Pod {
	template := job.Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: job.Name + "-", Namespace: job.Namespace, Labels: template.Labels},
		Spec:       *template.Spec.DeepCopy(),
	}
}

// anAdmittedPod is the plan of a check, with the pod that the API server makes of it.
func anAdmittedPod(t *testing.T) (jobplan.Plan, *corev1.Pod) {
	t.Helper()
	job := aRichJob(newNamespace(t))
	spec := &job.Spec.Template.Spec
	spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	spec.InitContainers[0].SecurityContext = &corev1.SecurityContext{
		RunAsUser: new(int64(1000)), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"KILL", "CHOWN"}},
	}
	spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "second", Image: releasetest.Image})
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "settings", MountPath: "/settings"},
		{Name: "scratch", MountPath: "/scratch"},
	}
	plan := releasetest.Plan(newRun(), releasetest.Release(job))
	check := plan.Checks[0]
	template := check.Job.Spec.Template
	pod, err := api.CoreV1().Pods(job.Namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: check.Job.Name + "-x7k2p", Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return plan, pod
}

// A change of the pod by admission is refused unless it is known to be harmless.
func TestAttacksByAdmissionOfPods(t *testing.T) {
	plan, admitted := anAdmittedPod(t)
	check := plan.Checks[0]
	for kind, table := range map[string]map[string]podChange{"Ordinary": ordinaryChanges(), "Hostile": hostileChanges()} {
		for name, tc := range table {
			t.Run(kind+name, func(t *testing.T) {
				pod := admitted.DeepCopy()
				tc.change(pod)
				got, err := alteration.OfPod(check.Job, pod)
				if err != nil || (got == "") != (tc.differs == "") || !strings.Contains(got, tc.differs) {
					t.Errorf("%s: %q, error %v; want %q", tc.reason, got, err, tc.differs)
				}
			})
		}
	}
}

// TestAttacksByVolumesBeside adds a volume of each kind that the API has: a container that admission adds may
// mount copies of what the API server has and scratch space, and nothing of the node or of a driver.
func TestAttacksByVolumesBeside(t *testing.T) {
	check := releasetest.Plan(releasetest.Run(), releasetest.Release(releasetest.Job(func(*batchv1.Job) {}))).Checks[0]
	var accepted []string
	for at := range reflect.TypeFor[corev1.VolumeSource]().NumField() {
		var source corev1.VolumeSource
		field := reflect.ValueOf(&source).Elem().Field(at)
		field.Set(reflect.New(field.Type().Elem()))
		pod := podOf(check.Job)
		addVolume("", source)(pod)
		altered, err := alteration.OfPod(check.Job, pod)
		if err != nil {
			t.Fatal(err)
		}
		if altered == "" {
			accepted = append(accepted, reflect.TypeFor[corev1.VolumeSource]().Field(at).Name)
		}
	}
	if want := []string{"EmptyDir", "Secret", "DownwardAPI", "ConfigMap", "Projected"}; !slices.Equal(accepted, want) {
		t.Errorf("accepted are %q, want %q", accepted, want)
	}
}

// TestEveryFieldBeside sets each field of a container that admission adds. Those that it may have are in
// testdata/beside.txt: a field of a later Kubernetes version is checked.
func TestEveryFieldBeside(t *testing.T) {
	check := releasetest.Plan(releasetest.Run(), releasetest.Release(releasetest.Job(func(*batchv1.Job) {}))).Checks[0]
	var accepted strings.Builder
	for _, field := range releasetest.Fields(func(string) bool { return false }) {
		path, ofContainer := strings.CutPrefix(field.Path, "spec.template.spec.containers[0].")
		if !ofContainer {
			continue
		}
		job := check.Job.DeepCopy()
		job.Spec.Template.Spec.Containers[0] = corev1.Container{}
		place := field.In(job)
		place.Set(releasetest.NonZero(place.Type()))
		pod := podOf(check.Job)
		addContainer(job.Spec.Template.Spec.Containers[0])(pod)
		altered, err := alteration.OfPod(check.Job, pod)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if altered == "" {
			accepted.WriteString(path + "\n")
		}
	}
	golden.Compare(t, "testdata/beside.txt", accepted.String())
}

// TestEveryFieldOfAPodIsCompared sets each field of a pod in turn. Those that may have
// another value than in the plan are in testdata/harmless.txt: a field of a later
// Kubernetes version is compared.
func TestEveryFieldOfAPodIsCompared(t *testing.T) {
	check := releasetest.Plan(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
		spec := &job.Spec.Template.Spec
		spec.InitContainers = []corev1.Container{{Name: "first", Image: releasetest.Image}}
		spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}))).Checks[0]
	var harmless strings.Builder
	for _, field := range releasetest.Fields(func(string) bool { return false }) {
		path, ofPod := strings.CutPrefix(field.Path, "spec.template.spec.")
		if !ofPod {
			continue
		}
		job := check.Job.DeepCopy()
		place := field.In(job)
		before := reflect.New(place.Type()).Elem()
		before.Set(place)
		place.Set(releasetest.NonZero(place.Type()))
		if reflect.DeepEqual(before.Interface(), place.Interface()) {
			place.SetZero() // the plan has that value
		}
		altered, err := alteration.OfPod(check.Job, podOf(job))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if altered == "" {
			harmless.WriteString(path + "\n")
		}
	}
	golden.Compare(t, "testdata/harmless.txt", harmless.String())
}

// Annotations that admission adds are refused where a node evaluates them.
func TestAttacksByAnnotations(t *testing.T) {
	check := releasetest.Plan(releasetest.Run(), releasetest.Release(releasetest.Job(func(*batchv1.Job) {}))).Checks[0]
	for key, tc := range map[string]struct{ reason, value, altered string }{
		"io.kubernetes.cri.untrusted-workload":                 {"containerd runs it with another runtime", "true", "is"},
		"io.kubernetes.cri.sandbox-image":                      {"containerd runs it in another sandbox", "registry.example.com/pause", "is"},
		"io.kubernetes.cri-o.TrustedSandbox":                   {"CRI-O runs it with another runtime", "false", "is"},
		"io.katacontainers.config.hypervisor.kernel":           {"another kernel", "/tmp/kernel", "is"},
		"dev.gvisor.spec.mount.x.source":                       {"gVisor mounts a directory of the node", "/etc", "is"},
		"dev.gvisor.flag.network":                              {"the network of the node", "host", "is"},
		"run.oci.handler":                                      {"crun runs another kind of program", "wasm", "is"},
		"module.wasm.image/variant":                            {"crun runs it as WebAssembly", "compat-smart", "is"},
		"io.microsoft.container.processdumplocation":           {"hcsshim", "C:/", "is"},
		"nvidia.cdi.k8s.io/x":                                  {"a device of the node", "nvidia.com/gpu=all", "is"},
		"k8s.v1.cni.cncf.io/networks":                          {"another network, also that of a mesh", "istio-cni", "is"},
		"v1.multus-cni.io/default-network":                     {"another network in place of the cluster's", "default/attack", "is"},
		"seccomp.security.alpha.kubernetes.io/pod":             {"a profile of the node", "localhost/x", "is"},
		"container.seccomp.security.alpha.kubernetes.io/check": {"the default of the runtime", "runtime/default", ""},
		"k8s.v1.cni.cncf.io/network-status":                    {"what Multus writes about each pod of OpenShift", "[]", ""},
		"k8s.ovn.org/pod-networks":                             {"what OVN-Kubernetes writes about each pod of OpenShift", "{}", ""},
		"sidecar.istio.io/status":                              {"what the injector of a mesh writes", "{}", ""},
	} {
		t.Run(key, func(t *testing.T) {
			pod := podOf(check.Job)
			pod.Annotations = map[string]string{key: tc.value}
			got, err := alteration.OfPod(check.Job, pod)
			if err != nil || (got == "") != (tc.altered == "") || !strings.Contains(got, tc.altered) {
				t.Errorf("%s: %q, error %v", tc.reason, got, err)
			}
		})
	}
}

// The pod of a run that was taken over has the deadline of its Job, and all containers have the same.
func TestDeadlineOfARunThatWasTakenOver(t *testing.T) {
	const earlier = "2026-01-02T03:04:05Z"
	planned := releasetest.Plan(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
		spec := &job.Spec.Template.Spec
		spec.InitContainers = []corev1.Container{{Name: "first", Image: releasetest.Image}}
	}))).Checks[0].Job
	found := alteration.Until(earlier, planned)
	partly := planned.DeepCopy()
	partly.Spec.Template.Spec.InitContainers = found.Spec.Template.Spec.InitContainers
	invalid := alteration.Until("tomorrow", planned)
	for name, tc := range map[string]struct {
		reason    string
		have      *batchv1.Job
		unaltered bool
	}{
		"Planned": {"created by this process", planned, true},
		"Earlier": {"created by the process before", found, true},
		"Partly":  {"admission changed one container", partly, false},
		"Invalid": {"no process writes this", invalid, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := alteration.OfExisting(planned, tc.have)
			if err != nil || (got == "") != tc.unaltered {
				t.Errorf("%s: %q, error %v", tc.reason, got, err)
			}
		})
	}
	if got, err := alteration.Of(planned, found); err != nil || !strings.Contains(got, "env") {
		t.Errorf("another deadline than the one that was sent: %q, error %v", got, err)
	}
}
