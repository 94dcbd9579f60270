package decide_test

import (
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The large cluster: 20 000 pods, of which DaemonSets have half, 1 000 budgets, and as many ReplicaSets of
// earlier revisions as a tenth revision leaves.
const (
	largeNodes      = 500
	largeDaemons    = 20
	largeApps       = 1000
	largeReplicas   = 9 // of an application
	largeRevisions  = 6 // of an application, without pods
	largeStates     = 200
	largeMembers    = 5 // of a StatefulSet
	largeNamespaces = 250
	largePools      = 5
)

// largeTime is when all objects of the cluster were created.
var largeTime = metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))

// largeCluster are the objects of the cluster by resource: how many, and the one at a position. They are made
// when they are requested, so that the server has little memory of its own.
func largeCluster() map[string]objects {
	return map[string]objects{
		"nodes":              {largeNodes, func(at int) runtime.Object { return largeNode(at) }},
		"machineconfigpools": {largePools, largePool},
		"pods": {
			largeNodes*largeDaemons + largeApps*largeReplicas + largeStates*largeMembers,
			func(at int) runtime.Object { return largePod(at) },
		},
		"daemonsets":             {largeDaemons, largeDaemonSet},
		"replicasets":            {largeApps * (1 + largeRevisions), largeReplicaSet},
		"statefulsets":           {largeStates, largeStatefulSet},
		"jobs":                   {largeStates, largeJob},
		"poddisruptionbudgets":   {largeApps, largeBudget},
		"services":               {largeApps, largeService},
		"namespaces":             {largeNamespaces, largeNamespace},
		"persistentvolumeclaims": {largeStates * largeMembers, largeClaim},
		"persistentvolumes":      {largeStates * largeMembers, largeVolume},
		"clusterversions":        {1, largeVersion},
		"infrastructures":        {1, largeInfrastructure},
	}
}

// largeMeta is metadata as an API server has it, with the fields of four managers.
func largeMeta(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	made := metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("5d1c2f04-7a3e-4f0b-9a55-%012x", len(name))),
		ResourceVersion: "184467", CreationTimestamp: largeTime, Labels: labels, Annotations: map[string]string{},
	}
	for _, manager := range []string{"kube-controller-manager", "multus-daemon", "ip-10-0-12-17.eu-central-1.compute.internal", "kubelet"} {
		made.ManagedFields = append(made.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &largeTime, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(
				`{"f:metadata":{"f:annotations":{".":{},"f:k8s.ovn.org/pod-networks":{}},"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{` +
					strings.Repeat(`".":{},"f:env":{".":{},"k:{\"name\":\"SETTING\"}":{".":{},"f:name":{},"f:value":{}}},`, 5) + `"f:image":{}}}}}`),
		})
	}
	return made
}

func appName(app int) string { return fmt.Sprintf("application-%04d", app) }

func appNamespace(app int) string { return fmt.Sprintf("team-%03d", app%largeNamespaces) }

// podSpec is a spec with a container and a sidecar, and the volumes and variables that pods have.
func podSpec(of string) corev1.PodSpec {
	spec := corev1.PodSpec{
		ServiceAccountName: of, DeprecatedServiceAccount: of, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
		TerminationGracePeriodSeconds: new(int64(30)), SchedulerName: corev1.DefaultSchedulerName, Priority: new(int32(0)),
		PreemptionPolicy: new(corev1.PreemptLowerPriority), EnableServiceLinks: new(true),
		SecurityContext: &corev1.PodSecurityContext{
			FSGroup:        new(int64(1000680000)),
			SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c26,c15"},
		},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: of + "-dockercfg-7xk2p"}},
		Tolerations: []corev1.Toleration{
			{
				Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(300)),
			},
			{
				Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(300)),
			},
			{Key: "node.kubernetes.io/memory-pressure", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		},
		Volumes: []corev1.Volume{
			{
				Name: "config",
				VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: of},
					DefaultMode:          new(int32(420)),
				}},
			},
			{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: of, DefaultMode: new(int32(420))}}},
			{Name: "kube-api-access-x2k4f", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: new(int32(420)),
				Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
						Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
					}},
					{ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: "openshift-service-ca.crt"},
						Items:                []corev1.KeyToPath{{Key: "service-ca.crt", Path: "service-ca.crt"}},
					}},
				},
			}}},
		},
	}
	for _, name := range []string{"main", "proxy"} {
		spec.Containers = append(spec.Containers, container(name))
	}
	return spec
}

func container(name string) corev1.Container {
	probe := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/healthz", Port: intstr.FromString("http"),
			Scheme: corev1.URISchemeHTTP,
		}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
	made := corev1.Container{
		Name: name, Image: "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + strings.Repeat("0123456789abcdef", 4),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/usr/bin/" + name}, Args: []string{
			"--config=/etc/" + name + "/config.yaml", "--logtostderr", "--v=2",
			"--tls-cert-file=/etc/tls/tls.crt",
		},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("25m"),
			corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/" + name, ReadOnly: true},
			{Name: "tls", MountPath: "/etc/tls", ReadOnly: true},
			{Name: "kube-api-access-x2k4f", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		LivenessProbe: probe, ReadinessProbe: probe, TerminationMessagePath: "/dev/termination-log",
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), RunAsUser: new(int64(1000680000)),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	for i := range 8 {
		made.Env = append(made.Env, corev1.EnvVar{
			Name:  fmt.Sprintf("SETTING_%d_OF_%s", i, strings.ToUpper(name)),
			Value: "https://service.example.svc:8443/some/path",
		})
	}
	made.Env = append(made.Env, corev1.EnvVar{
		Name:      "POD_NAME",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}},
	})
	return made
}

// largePod is a pod of a DaemonSet, of an application or of a StatefulSet, which follow each other.
func largePod(at int) *corev1.Pod {
	switch daemons, apps := largeNodes*largeDaemons, largeApps*largeReplicas; {
	case at < daemons:
		set := fmt.Sprintf("daemon-%02d", at%largeDaemons)
		pod := runningPod("openshift-daemons", fmt.Sprintf("%s-%05d", set, at), "DaemonSet", set, at/largeDaemons)
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{
				Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
				Values: []string{pod.Spec.NodeName},
			}},
		}}}}}
		return pod
	case at < daemons+apps:
		return appPod(at - daemons)
	default:
		at -= daemons + apps
		set := at / largeMembers
		name := fmt.Sprintf("state-%04d", set)
		pod := runningPod(appNamespace(set), fmt.Sprintf("%s-%d", name, at%largeMembers), "StatefulSet", name, at*13)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name:         "data",
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + pod.Name}},
		})
		return pod
	}
}

// appPod is a pod of an application. A tenth of these have anti-affinity, a tenth topology spread.
func appPod(at int) *corev1.Pod {
	app := at / largeReplicas
	set := appName(app) + "-6b8f9c7d5"
	pod := runningPod(appNamespace(app), fmt.Sprintf("%s-%05d", set, at), "ReplicaSet", set, app*largeReplicas+at%largeReplicas*7)
	pod.Labels["app"], pod.Labels["pod-template-hash"] = appName(app), "6b8f9c7d5"
	place(&pod.Spec, app)
	return pod
}

func place(spec *corev1.PodSpec, app int) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": appName(app)}}
	switch app % 10 {
	case 0:
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: selector, TopologyKey: corev1.LabelHostname,
		}}}}
	case 1:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 3, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
		}}
	}
}

func runningPod(namespace, name, kind, controller string, node int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: largeMeta(namespace, name, map[string]string{"app": controller, "app.kubernetes.io/name": controller}),
		Spec:       podSpec(controller),
	}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: kind, Name: controller, UID: pod.UID, Controller: new(true),
		BlockOwnerDeletion: new(true),
	}}
	pod.Annotations["k8s.ovn.org/pod-networks"] = `{"default":{"ip_addresses":["10.128.2.17/23"],"mac_address":"0a:58:0a:80:02:11","gateway_ips":["10.128.2.1"],"routes":[{"dest":"10.128.0.0/14","nextHop":"10.128.2.1"}]}}`
	pod.Annotations["k8s.v1.cni.cncf.io/network-status"] = "[{\n    \"name\": \"ovn-kubernetes\",\n    \"interface\": \"eth0\",\n    " +
		"\"ips\": [\n        \"10.128.2.17\"\n    ],\n    \"mac\": \"0a:58:0a:80:02:11\",\n    \"default\": true,\n    \"dns\": {}\n}]"
	pod.Annotations["openshift.io/scc"] = "restricted-v2"
	pod.Annotations["seccomp.security.alpha.kubernetes.io/pod"] = "runtime/default"
	pod.Spec.NodeName = nodeName(node)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "10.0.12.17", PodIP: "10.128.2.17", PodIPs: []corev1.PodIP{{IP: "10.128.2.17"}}, StartTime: &largeTime,
		QOSClass: corev1.PodQOSBurstable,
	}
	for _, condition := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady,
		corev1.ContainersReady, corev1.PodScheduled,
	} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: largeTime})
	}
	for i := range pod.Spec.Containers {
		of := &pod.Spec.Containers[i]
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: of.Name, Image: of.Image, ImageID: of.Image, Ready: true, Started: new(true),
			ContainerID: "cri-o://" + strings.Repeat("fedcba9876543210", 4),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: largeTime}},
		})
	}
	return pod
}

// template is that of a controller of pods.
func template(name string, app int) corev1.PodTemplateSpec {
	made := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: podSpec(name)}
	place(&made.Spec, app)
	return made
}

func largeReplicaSet(at int) runtime.Object {
	app, revision := at/(1+largeRevisions), at%(1+largeRevisions)
	made := &appsv1.ReplicaSet{ObjectMeta: largeMeta(appNamespace(app), fmt.Sprintf("%s-6b8f9c7d%d", appName(app), revision),
		map[string]string{"app": appName(app)})}
	made.Annotations["deployment.kubernetes.io/revision"] = fmt.Sprint(revision)
	made.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "Deployment", Name: appName(app), UID: made.UID,
		Controller: new(true),
	}}
	made.Spec = appsv1.ReplicaSetSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": appName(app)}},
		Template: template(appName(app), app),
	}
	if revision == 5 {
		made.Spec.Replicas = new(int32(largeReplicas))
		made.Status = appsv1.ReplicaSetStatus{Replicas: largeReplicas, ReadyReplicas: largeReplicas}
	}
	return made
}

func largeStatefulSet(at int) runtime.Object {
	name := fmt.Sprintf("state-%04d", at)
	return &appsv1.StatefulSet{
		ObjectMeta: largeMeta(appNamespace(at), name, map[string]string{"app": name}),
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(largeMembers)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name, at),
		},
	}
}

func largeDaemonSet(at int) runtime.Object {
	name := fmt.Sprintf("daemon-%02d", at)
	return &appsv1.DaemonSet{ObjectMeta: largeMeta("openshift-daemons", name, nil), Spec: appsv1.DaemonSetSpec{Template: template(name, 5)}}
}

func largeJob(at int) runtime.Object {
	name := fmt.Sprintf("job-%04d", at)
	return &batchv1.Job{
		ObjectMeta: largeMeta(appNamespace(at), name, nil), Spec: batchv1.JobSpec{Template: template(name, 5)},
		Status: batchv1.JobStatus{Succeeded: 1},
	}
}

func largeBudget(at int) runtime.Object {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: largeMeta(appNamespace(at), appName(at), nil),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": appName(at)}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: 1, CurrentHealthy: largeReplicas, DesiredHealthy: largeReplicas - 1,
			ExpectedPods: largeReplicas,
		},
	}
}

func largeService(at int) runtime.Object {
	return &corev1.Service{
		ObjectMeta: largeMeta(appNamespace(at), appName(at), nil),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": appName(at)},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}, ClusterIP: "172.30.1.1",
		},
	}
}

func largeNamespace(at int) runtime.Object {
	return &corev1.Namespace{ObjectMeta: largeMeta("", appNamespace(at), map[string]string{"pod-security.kubernetes.io/warn": "restricted"})}
}

func largeClaim(at int) runtime.Object {
	made := &corev1.PersistentVolumeClaim{ObjectMeta: largeMeta(appNamespace(at/largeMembers),
		fmt.Sprintf("data-state-%04d-%d", at/largeMembers, at%largeMembers), nil)}
	made.Spec = corev1.PersistentVolumeClaimSpec{VolumeName: fmt.Sprintf("pvc-%06d", at), StorageClassName: new("gp3-csi")}
	return made
}

func largeVolume(at int) runtime.Object {
	return &corev1.PersistentVolume{
		ObjectMeta: largeMeta("", fmt.Sprintf("pvc-%06d", at), nil),
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:       "gp3-csi",
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com"}},
		},
	}
}

func nodeName(at int) string {
	return fmt.Sprintf("ip-10-0-%03d.eu-central-1.compute.internal", at%largeNodes)
}

func largeNode(at int) *corev1.Node {
	pool := fmt.Sprintf("pool%d", at%largePools)
	made := &corev1.Node{ObjectMeta: largeMeta("", nodeName(at), map[string]string{
		"node-role.kubernetes.io/" + pool: "", corev1.LabelHostname: nodeName(at),
		corev1.LabelTopologyZone: fmt.Sprintf("eu-central-1%c", 'a'+at%3), corev1.LabelOSStable: "linux",
	})}
	for _, key := range []string{"currentConfig", "desiredConfig"} {
		made.Annotations["machineconfiguration.openshift.io/"+key] = "rendered-" + pool + "-0123456789abcdef"
	}
	made.Annotations["machineconfiguration.openshift.io/state"] = "Done"
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("15500m"), corev1.ResourceMemory: resource.MustParse("63Gi"),
		corev1.ResourcePods: resource.MustParse("250"),
	}
	made.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", KubeletVersion: "v1.32.5"},
	}
	for _, condition := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
		corev1.NodeReady,
	} {
		status := corev1.ConditionFalse
		if condition == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		made.Status.Conditions = append(made.Status.Conditions,
			corev1.NodeCondition{Type: condition, Status: status, Reason: "KubeletIsHealthy", Message: "kubelet is posting ready status"})
	}
	for i := range 50 {
		made.Status.Images = append(made.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf(
			"quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064d", i)}, SizeBytes: 1 << 29})
	}
	return made
}

func largePool(at int) runtime.Object {
	name := fmt.Sprintf("pool%d", at)
	return &machineconfigurationv1.MachineConfigPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool"},
		ObjectMeta: largeMeta("", name, nil),
		Spec: machineconfigurationv1.MachineConfigPoolSpec{
			MaxUnavailable: new(intstr.FromInt32(2)),
			NodeSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}},
		},
	}
}

func largeVersion(int) runtime.Object {
	return &configv1.ClusterVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion"}, ObjectMeta: largeMeta("", "version", nil),
		Spec: configv1.ClusterVersionSpec{ClusterID: "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18", Channel: "stable-4.19"},
		Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: "4.19.1", Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("0", 64)},
			History: []configv1.UpdateHistory{{
				State: configv1.CompletedUpdate, Version: "4.19.1", StartedTime: largeTime,
				CompletionTime: &largeTime,
			}},
		},
	}
}

func largeInfrastructure(int) runtime.Object {
	return &configv1.Infrastructure{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Infrastructure"}, ObjectMeta: largeMeta("", "cluster", nil),
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology:   configv1.HighlyAvailableTopologyMode,
			InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
		},
	}
}
