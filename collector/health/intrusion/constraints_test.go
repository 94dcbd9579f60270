package intrusion_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// constraint is an SCC that allows what anyuid allows.
func constraint(name string, parts fields) fields {
	of := fields{
		"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": fields{"name": name}, "priority": nil,
		"runAsUser": fields{"type": "RunAsAny"}, "seLinuxContext": fields{"type": "MustRunAs"}, "fsGroup": fields{"type": "RunAsAny"},
		"volumes": []string{"configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"},
	}
	maps.Copy(of, parts)
	return of
}

var (
	ofRelease = fields{"annotations": fields{"include.release.openshift.io/self-managed-high-availability": "true"}}
	allUsers  = []string{"system:authenticated"}
)

func release(name string, parts fields) fields {
	of := constraint(name, parts)
	maps.Copy(of["metadata"].(fields), ofRelease) //nolint:forcetypeassert,errcheck // by constraint
	return of
}

// admitting is a cluster with SCCs of the release, one more, and a workload.
func admitting(more fields, w workload, others ...fields) world {
	return world{workloads: []workload{w}, constraints: append([]fields{
		release("anyuid", fields{"priority": 10, "groups": []string{"system:cluster-admins"}}),
		release("restricted-v2", fields{
			"runAsUser": fields{"type": "MustRunAsRange"}, "requiredDropCapabilities": []string{"ALL"}, "allowPrivilegeEscalation": false,
			"groups": allUsers, "seccompProfiles": []string{"runtime/default"}, "allowedCapabilities": []string{"NET_BIND_SERVICE"},
		}),
		more,
	}, others...)}
}

func TestConstraints(t *testing.T) {
	const found, anyuid, restricted = "PlatformPodsSCC-hardened", "openshift.io/scc=anyuid", "openshift.io/scc=restricted-v2"
	hardened := func(parts fields) fields {
		of := fields{"priority": 20, "groups": allUsers, "readOnlyRootFilesystem": true, "seLinuxContext": fields{"type": "RunAsAny"}}
		maps.Copy(of, parts)
		return constraint("hardened", of)
	}
	oauth := func(changes ...func(*workload)) workload {
		return workloadIn(authentication, append([]func(*workload){annotated(anyuid)}, changes...)...)
	}
	container := func(of corev1.SecurityContext) func(*workload) {
		return requesting(func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext = &of })
	}
	injected := func(w *workload) {
		w.pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)}
	}
	created := func(hour int) func(*workload) {
		return func(w *workload) { w.pod.CreationTimestamp = at(hour) }
	}
	since := func(hour int, more fields) fields {
		meta := fields{"name": "hardened", "creationTimestamp": at(hour), "generation": 1}
		maps.Copy(meta, more)
		return hardened(fields{"metadata": meta})
	}
	for name, tc := range map[string]row{
		"Known": {
			reason: "the SCC has a higher priority than anyuid, and is for all users", want: []string{found},
			world: admitting(hardened(nil), oauth()),
			message: []string{
				"priority 20", "anyuid (priority 10)", "1 namespace: openshift-authentication", "1 pod ",
				"readOnlyRootFilesystem is true", "system:authenticated",
			}, absent: "runAsUser",
		},
		"Has": {reason: "the pod was created again since", want: []string{found}, world: admitting(hardened(nil),
			oauth(annotated("openshift.io/scc=hardened"))), message: []string{"it is already the SCC of 1 of them"}},
		"NoRestriction": {
			reason: "what the pod runs as changes as well", want: []string{found}, message: []string{"no field of it restricts"},
			world: admitting(hardened(fields{"readOnlyRootFilesystem": false}), workloadIn(authentication, annotated(restricted))),
		},
		"AllAccounts": {
			reason: "every account of a pod is in this group", want: []string{found},
			world: admitting(hardened(fields{"groups": []string{"system:serviceaccounts"}}), oauth()),
		},
		"Namespace": {
			reason: "the group of the namespace", want: []string{found},
			world: admitting(hardened(fields{"groups": []string{"system:serviceaccounts:" + authentication}}), oauth()),
		},
		"Account": {
			reason: "the account itself", want: []string{found},
			world: admitting(hardened(fields{"groups": nil, "users": []string{"system:serviceaccount:openshift-authentication:app"}}), oauth()),
		},
		"Controllers": {
			reason: "admission asks for the creator of the pod, too", want: []string{found},
			world: admitting(hardened(fields{"groups": []string{"system:serviceaccounts:kube-system"}}), oauth()),
		},
		"Stricter": {
			reason: "with the same priority, the stricter SCC is tried first", want: []string{found},
			world: admitting(hardened(fields{
				"priority": nil, "runAsUser": fields{"type": "MustRunAs"},
				"seLinuxContext": fields{"type": "MustRunAs"}, "requiredDropCapabilities": []string{"ALL"},
			}),
				workloadIn(authentication, annotated(restricted))),
		},
		"ByName": {
			reason: "as strict, the name decides", want: []string{"PlatformPodsSCC-a"},
			world: admitting(constraint("a", fields{
				"runAsUser": fields{"type": "MustRunAsRange"}, "requiredDropCapabilities": []string{"ALL"},
				"allowedCapabilities": []string{"NET_BIND_SERVICE"}, "groups": allUsers,
			}), workloadIn(authentication, annotated(restricted))),
		},
		"Injected": {
			reason: "the template, not what admission made of it, is requested again", want: []string{found},
			world: admitting(hardened(nil), oauth(injected)),
		},
		"NewerThanPod": {
			reason: "the pod was created before the SCC", want: []string{found},
			world: admitting(since(12, nil), oauth(created(11))),
		},
		"ChangedSince": {
			reason: "the SCC was changed after the pod was created", want: []string{found},
			world: admitting(since(10, fields{"generation": 2}), oauth(created(11))),
		},
		"ChangedAt": {reason: "and when that was is in the managed fields", want: []string{found}, world: admitting(since(10,
			fields{"managedFields": []fields{{"manager": "oc", "operation": "Update", "apiVersion": "v1", "time": at(12)}}}), oauth(created(11)))},
		"PersonsSCC": {
			reason: "a person allowed it for the account of the platform, and the pod has it", want: []string{found},
			world: admitting(hardened(fields{"groups": nil, "metadata": fields{
				"name":          "hardened",
				"managedFields": written(`{"f:priority":{}}`, "oc"),
			}}), oauth(annotated("openshift.io/scc=hardened"))),
		},
		"PassedBy": {
			reason: "admission has chosen another SCC although there was this one",
			world:  admitting(since(10, nil), oauth(created(11))),
		},
		"LowerPriority": {reason: "anyuid comes first", world: admitting(hardened(fields{"priority": 5}), oauth())},
		"Laxer": {
			reason: "with the same priority, the laxer SCC is tried last",
			world:  admitting(hardened(fields{"priority": 10, "allowHostNetwork": true}), oauth()),
		},
		"OtherGroup": {
			reason: "no account of a pod is in this group",
			world:  admitting(hardened(fields{"groups": []string{"developers"}}), oauth()),
		},
		"OtherNamespace": {reason: "the accounts of another namespace", world: admitting(
			hardened(fields{"groups": []string{"system:serviceaccounts:team"}, "users": []string{"system:serviceaccount:team:app"}}), oauth())},
		"Required": {
			reason: "the pod names its SCC",
			world:  admitting(hardened(nil), oauth(annotated("openshift.io/required-scc=anyuid"))),
		},
		"OfRelease": {
			reason: "the release has the SCC",
			world:  admitting(release("hardened", fields{"priority": 20, "groups": allUsers}), oauth()),
		},
		"UsersPod": {
			reason: "a pod of a user is no pod of the platform",
			world:  admitting(hardened(nil), workloadIn("team", annotated(anyuid))),
		},
		"Mirror": {
			reason: "a static pod is not admitted",
			world:  admitting(hardened(nil), oauth(annotated("kubernetes.io/config.mirror=1"))),
		},
		"Ended": {
			reason: "a pod that has ended is not created again",
			world:  admitting(hardened(nil), oauth(func(w *workload) { w.pod.Status.Phase = corev1.PodSucceeded })),
		},
		"NoAdmission": {
			reason: "admission passes by the namespaces of the first run levels",
			world:  admitting(hardened(nil), workloadIn("openshift-kube-apiserver")),
		},
		"Unlisted": {
			reason: "the SCC that the pod has is gone, so nothing can be compared",
			world:  admitting(hardened(nil), oauth(annotated("openshift.io/scc=deleted"))),
		},
		"HostNetwork": {
			reason: "the SCC refuses the network of the host",
			world:  admitting(hardened(nil), oauth(requesting(func(spec *corev1.PodSpec) { spec.HostNetwork = true }))),
		},
		"HostPath": {reason: "the SCC refuses volumes of the host", world: admitting(hardened(nil), oauth(requesting(func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		})))},
		"HostPathDefault": {
			reason: "an SCC without volumes has the default",
			world: admitting(hardened(fields{"volumes": nil}), oauth(requesting(func(spec *corev1.PodSpec) {
				spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			}))),
		},
		"OtherVolume": {
			reason: "the SCC refuses the type of a volume",
			world: admitting(hardened(fields{"volumes": []string{"secret"}}), oauth(requesting(func(spec *corev1.PodSpec) {
				spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			}))),
		},
		"Privileged": {
			reason: "the SCC refuses a privileged container",
			world:  admitting(hardened(nil), oauth(container(corev1.SecurityContext{Privileged: new(true)}))),
		},
		"Capability": {reason: "the SCC refuses a capability", world: admitting(hardened(nil),
			oauth(container(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}})))},
		"Writable": {
			reason: "the container requests a file system that can be written, which the SCC refuses",
			world:  admitting(hardened(nil), oauth(container(corev1.SecurityContext{ReadOnlyRootFilesystem: new(false)}))),
		},
		"HostPort": {reason: "the SCC refuses a port of the host", world: admitting(hardened(nil), oauth(requesting(func(spec *corev1.PodSpec) {
			spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}
		})))},
		"Root": {reason: "the SCC refuses root", world: admitting(hardened(fields{"runAsUser": fields{"type": "MustRunAsNonRoot"}}),
			oauth(container(corev1.SecurityContext{RunAsUser: new(int64(0))})))},
		"Seccomp": {reason: "an SCC without profiles refuses one that the pod names", world: admitting(hardened(nil),
			oauth(container(corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}})))},
		"Operators": {
			reason: "an operator of the platform made it for its own account, as node-exporter",
			world: admitting(constraint("node-exporter", fields{"users": []string{"system:serviceaccount:openshift-monitoring:app"}}),
				workloadIn("openshift-monitoring", annotated("openshift.io/scc=node-exporter"))),
		},
		"OperatorsRole": {
			reason: "an operator allowed it by a role, as the compliance operator",
			world: admitting(constraint("adjusted", fields{"priority": 30, "metadata": fields{"name": "adjusted", "managedFields": written(
				`{"f:priority":{}}`, "compliance-operator")}}), workloadIn("openshift-compliance", annotated("openshift.io/scc=adjusted"))),
		},
	} {
		t.Run(name, func(t *testing.T) { tc.test(t, "UsersSCCForPlatformPods") })
	}
}

// However many pods, namespaces and groups there are, and whatever they are named, the texts stay short.
func TestConstraintsBounded(t *testing.T) {
	groups := append([]string{"a\x1b[2J" + strings.Repeat("x", 5000)}, allUsers...)
	w := admitting(constraint("hardened", fields{
		"priority": 20, "groups": groups,
		"requiredDropCapabilities": []string{strings.Repeat("y", 5000)},
	}), workloadIn(authentication, annotated("openshift.io/scc=anyuid")))
	for i := range 60 {
		w.workloads = append(w.workloads, workloadIn(fmt.Sprintf("openshift-%03d", i), annotated("openshift.io/scc=anyuid")))
	}
	for i := range 100 {
		w.constraints = append(w.constraints, constraint(fmt.Sprintf("more-%03d", i), fields{"priority": 20, "groups": groups}))
	}
	findings := run(t, w)
	bounded(t, findings)
	if len(findings) != 51 {
		t.Errorf("%d findings", len(findings))
	}
	if !strings.Contains(findings[0].Message, "61 pods of the platform in 61 namespaces") {
		t.Error(findings[0].Message)
	}
}
