package e2e_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// mutatedJob creates an admission policy that replaces the program of the check.
func mutatedJob(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "fail", Plain: true}})
	probe := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: probeSpec()}},
	}
	defer mutate(t, client, mutation{
		group: "batch", resource: "jobs",
		patch: `{op: "replace", path: "/spec/template/spec/containers/0/command", value: ["/bin/preflight", "plain-pass"]}`,
		inEffect: func() bool {
			admitted, err := client.BatchV1().Jobs(zooNamespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			return len(admitted.Spec.Template.Spec.Containers[0].Command) == 2
		},
	})()
	return describe(t, runPreflight(t, 4, "--to", to), "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

// probeSpec returns the spec of a pod for a dry run, which shows whether a policy is in
// effect.
func probeSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "probe", Image: zooImage, Command: []string{"/bin/true"}}},
	}
}

// mutation is an admission policy that changes new objects.
type mutation struct {
	group, resource string
	// patch is the argument of JSONPatch.
	patch string
	// inEffect reports whether the API server applies the policy.
	inEffect func() bool
}

// mutate creates the policy, and returns when it is in effect. The returned function
// deletes it, and returns when it is not in effect any more.
func mutate(t *testing.T, client kubernetes.Interface, m mutation) (restore func()) {
	t.Helper()
	name := "mutate-" + m.resource
	admission := client.AdmissionregistrationV1()
	_, err := admission.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{m.group}, APIVersions: []string{"v1"}, Resources: []string{m.resource}},
				},
			}}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: "[JSONPatch" + m.patch + "]"},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = admission.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for !m.inEffect() {
	}
	return func() {
		testCluster.Kubectl(t, "delete", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", name)
		for m.inEffect() {
		}
	}
}

// mutatePods is mutate for pods. The patch must add a container or an init container, change
// the command to one with arguments, add the volume "attack" or a Secret, or share
// processes.
func mutatePods(t *testing.T, client kubernetes.Interface, patch string) (restore func()) {
	t.Helper()
	return mutate(t, client, mutation{group: "", resource: "pods", patch: patch, inEffect: func() bool {
		admitted, err := client.CoreV1().Pods(zooNamespace).Create(t.Context(),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: probeSpec()}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		spec := admitted.Spec
		mounted := slices.ContainsFunc(spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == "attack" || volume.Secret != nil })
		return mounted || spec.ShareProcessNamespace != nil || len(spec.Containers)+len(spec.InitContainers) > 1 ||
			len(spec.Containers[0].Command) > 1
	}})
}

func alteredPod(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "plain-fail", Plain: true}})
	defer mutatePods(t, client, `{op: "replace", path: "/spec/containers/0/command", value: ["/bin/preflight", "plain-pass"]}`)()
	return describe(t, runPreflight(t, 4, "--to", to), "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

// hiddenPod replaces the program of the check, and the labels by which its pod is found.
func hiddenPod(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "plain-fail", Plain: true}})
	defer mutatePods(t, client, `{op: "add", path: "/metadata/labels", value: {"app": "other"}},
		JSONPatch{op: "replace", path: "/spec/containers/0/command", value: ["/bin/preflight", "plain-pass"]}`)()
	result := runPreflight(t, 4, "--to", to)
	if f := byName(result)["Zoo.First"]; !strings.Contains(f.Message, "denied before it started") {
		t.Errorf("%q, want a pod that did not start", f.Message)
	}
	return describe(t, result, "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

// mountedProgram mounts a ConfigMap over the program of the check.
func mountedProgram(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "plain-fail", Plain: true}})
	defer mutatePods(t, client, `{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{
		name: "attack", configMap: Object.spec.volumes.configMap{name: "attack", optional: true}}},
		JSONPatch{op: "add", path: "/spec/containers/0/volumeMounts/-", value: Object.spec.containers.volumeMounts{name: "attack", mountPath: "/bin"}}`)()
	return describe(t, runPreflight(t, 4, "--to", to), "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

// mountedToken replaces the token of the check by that of another account, in the same
// directory.
func mountedToken(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "plain-fail", Plain: true}})
	defer mutatePods(t, client, `{op: "replace", path: "/spec/volumes/0", value: Object.spec.volumes{
		name: object.spec.volumes[0].name, secret: Object.spec.volumes.secret{secretName: "attack", optional: true}}}`)()
	return describe(t, runPreflight(t, 4, "--to", to), "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

// sharedProcesses adds a container that reaches the files of the check by its process.
func sharedProcesses(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "plain-fail", Plain: true}})
	defer mutatePods(t, client, `{op: "add", path: "/spec/shareProcessNamespace", value: true},
		JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{
		name: "injected", image: object.spec.containers[0].image, command: ["/bin/preflight", "pass"]}}`)()
	return describe(t, runPreflight(t, 4, "--to", to), "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

// claimedDirectory adds a PersistentVolumeClaim whose volume is a directory of the node, and an init container
// that writes there: in the image store of the node it would replace the program of the check.
func claimedDirectory(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "plain-fail", Plain: true}})
	directory := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: directory, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}},
	}}
	if _, err := client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, "delete", "persistentvolume", "attack", "--wait=false")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, VolumeName: "attack", StorageClassName: new(""),
		Resources: corev1.VolumeResourceRequirements{Requests: directory},
	}}
	if _, err := client.CoreV1().PersistentVolumeClaims(zooNamespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, "delete", "persistentvolumeclaim", "attack", "-n", zooNamespace, "--wait=false")
	defer mutatePods(t, client, `{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{
		name: "attack", persistentVolumeClaim: Object.spec.volumes.persistentVolumeClaim{claimName: "attack"}}},
		JSONPatch{op: "add", path: "/spec/initContainers", value: [Object.spec.initContainers{
		name: "injected", image: object.spec.containers[0].image, command: ["/bin/preflight", "plain-pass"],
		volumeMounts: [Object.spec.initContainers.volumeMounts{name: "attack", mountPath: "/attack"}]}]}`)()
	return describe(t, runPreflight(t, 4, "--to", to), "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

// redirectedConnections adds an init container of root that may change the routes of the pod.
func redirectedConnections(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "plain-fail", Plain: true}})
	defer mutatePods(t, client, `{op: "add", path: "/spec/initContainers", value: [Object.spec.initContainers{
		name: "injected", image: object.spec.containers[0].image, command: ["/bin/preflight", "plain-pass"],
		securityContext: Object.spec.initContainers.securityContext{runAsUser: 0,
		capabilities: Object.spec.initContainers.securityContext.capabilities{add: ["NET_ADMIN"]}}}]}`)()
	return describe(t, runPreflight(t, 4, "--to", to), "Zoo.First", "Undecided, Unknown(AlteredByAdmission)")
}

func injectedContainer(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "pass"}})
	defer mutatePods(t, client, `{op: "add", path: "/spec/containers/-", value: Object.spec.containers{
		name: "injected", image: object.spec.containers[0].image, command: ["/bin/preflight", "forever"]}}`)()
	return describe(t, runPreflight(t, 0, "--to", to), "Zoo.Animal", "Ready, Pass(Passed)")
}

func injectedInit(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "pass"}})
	defer mutatePods(t, client, `{op: "add", path: "/spec/initContainers", value: [Object.spec.initContainers{
		name: "injected", image: object.spec.containers[0].image, command: ["/bin/preflight", "forever"]}]}`)()
	return describe(t, runPreflight(t, 4, "--to", to, "--timeout", "10s"), "Zoo.First", "Undecided, Unknown(Timeout)")
}
