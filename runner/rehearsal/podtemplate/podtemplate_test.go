package podtemplate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/rehearsal/podtemplate"
)

// of is the template of a workload, which has to have one.
func of(t *testing.T, text string) podtemplate.Template {
	t.Helper()
	template, ok, err := podtemplate.Of(workload(t, text))
	if err != nil || !ok {
		t.Fatalf("Of = %v, %v; want a template", ok, err)
	}
	return template
}

func workload(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = found.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return found
}

// minimal is a workload in namespace ns with one container.
func minimal(apiVersion, kind, spec string) string {
	const template = "template: {metadata: {labels: {app: w}, annotations: {note: a}, finalizers: [example.org/f]}, " +
		"spec: {containers: [{name: c, image: i}]}}"
	spec = strings.TrimSuffix(template+", "+spec, ", ")
	if kind == "CronJob" {
		spec = "jobTemplate: {spec: {" + spec + "}}"
	}
	return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: w, namespace: ns}, spec: {" + spec + "}}"
}

func TestPod(t *testing.T) {
	t.Parallel()
	account := "system:serviceaccount:kube-system:"
	const tolerated = "node.kubernetes.io/not-ready:NoExecute node.kubernetes.io/unreachable:NoExecute " +
		"node.kubernetes.io/disk-pressure:NoSchedule " +
		"node.kubernetes.io/memory-pressure:NoSchedule node.kubernetes.io/pid-pressure:NoSchedule node.kubernetes.io/unschedulable:NoSchedule"
	jobLabels := func(name string) string {
		return "app=w batch.kubernetes.io/controller-uid=* batch.kubernetes.io/job-name=" + name + " controller-uid=* job-name=" + name
	}
	for name, row := range map[string]struct {
		reason, workload                        string
		user, owner, labels, finalizer, allowed string
		name, generated, volumes, host          string
	}{
		"Deployment": {
			reason: "its ReplicaSet has the hash in its name, and makes the pods", workload: minimal("apps/v1", "Deployment", ""),
			user: "replicaset-controller", owner: "apps/v1 ReplicaSet w-*", labels: "app=w pod-template-hash=*", generated: "w-*-",
		},
		"DeploymentAgain": {
			reason:   "a hash that a person copied into the template is replaced",
			workload: strings.ReplaceAll(minimal("apps/v1", "Deployment", ""), "{app: w}", "{app: w, pod-template-hash: old}"),
			user:     "replicaset-controller", owner: "apps/v1 ReplicaSet w-*", labels: "app=w pod-template-hash=*", generated: "w-*-",
		},
		"ReplicaSet": {
			reason: "it has no hash but that of its template", workload: minimal("apps/v1", "ReplicaSet", ""),
			user: "replicaset-controller", owner: "apps/v1 ReplicaSet w", labels: "app=w", generated: "w-",
		},
		"ReplicationController": {
			reason: "as a ReplicaSet, of another controller", workload: minimal("v1", "ReplicationController", ""),
			user: "replication-controller", owner: "v1 ReplicationController w", labels: "app=w", generated: "w-",
		},
		"DaemonSet": {
			reason: "its pods tolerate what makes a node unfit", workload: minimal("apps/v1", "DaemonSet", ""),
			user: "daemon-set-controller", owner: "apps/v1 DaemonSet w", labels: "app=w controller-revision-hash=* pod-template-generation=1",
			generated: "w-",
			allowed:   tolerated,
		},
		"DaemonSetOfHosts": {
			reason: "pods of the network of the host run before there is a network, and the generation is that of the cluster",
			workload: strings.NewReplacer("name: w, ", "name: w, annotations: {deprecated.daemonset.template.generation: '7'}, ",
				"containers:", "hostNetwork: true, containers:").
				Replace(minimal("apps/v1", "DaemonSet", "")),
			user: "daemon-set-controller", owner: "apps/v1 DaemonSet w", labels: "app=w controller-revision-hash=* pod-template-generation=7",
			generated: "w-",
			allowed:   tolerated + " node.kubernetes.io/network-unavailable:NoSchedule",
		},
		"DaemonSetThatTolerates": {
			reason: "a toleration for some seconds becomes one without end, and others stay",
			workload: strings.Replace(minimal("apps/v1", "DaemonSet", ""), "containers:",
				"tolerations: [{operator: Exists}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}], "+
					"containers:", 1),
			user: "daemon-set-controller", owner: "apps/v1 DaemonSet w", labels: "app=w controller-revision-hash=* pod-template-generation=1",
			generated: "w-",
			allowed:   ": " + tolerated,
		},
		"StatefulSet": {
			reason: "its pod has a name, which no pod of today has, and volumes of claims in place of those of the template",
			workload: strings.Replace(minimal("apps/v1", "StatefulSet", "serviceName: s, volumeClaimTemplates: [{metadata: {name: data}}]"),
				"containers:", "volumes: [{name: data, emptyDir: {}}, {name: other, emptyDir: {}}], containers:", 1),
			user: "statefulset-controller", owner: "apps/v1 StatefulSet w", generated: "w-", name: "w-999",
			labels:  "app=w apps.kubernetes.io/pod-index=999 controller-revision-hash=w-* statefulset.kubernetes.io/pod-name=w-999",
			volumes: "other= data=data-w-999", host: "w-999.s",
		},
		"Job": {
			reason: "the API server labels its template", workload: minimal("batch/v1", "Job", ""),
			user: "job-controller", owner: "batch/v1 Job w", labels: jobLabels("w"), finalizer: "batch.kubernetes.io/job-tracking", generated: "w-",
		},
		"StoredJob": {
			reason:   "the API server labelled its template",
			workload: strings.Replace(minimal("batch/v1", "Job", ""), "{app: w}", "{app: w, job-name: w, controller-uid: u}", 1),
			user:     "job-controller", owner: "batch/v1 Job w", finalizer: "batch.kubernetes.io/job-tracking", generated: "w-",
			labels: "app=w batch.kubernetes.io/controller-uid=* batch.kubernetes.io/job-name=w controller-uid=u job-name=w",
		},
		"SelectingJob": {
			reason: "with a selector of its own it has no labels of the API server", workload: minimal("batch/v1", "Job", "manualSelector: true"),
			user: "job-controller", owner: "batch/v1 Job w", labels: "app=w", finalizer: "batch.kubernetes.io/job-tracking", generated: "w-",
		},
		"CronJob": {
			reason: "the pods are of a Job with the time in its name", workload: minimal("batch/v1", "CronJob", ""),
			user: "job-controller", owner: "batch/v1 Job w-*", labels: jobLabels("w-*"),
			finalizer: "batch.kubernetes.io/job-tracking", generated: "w-*-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := of(t, row.workload)
			if template.Kind == "" || template.Namespace != "ns" || template.Name != "w" {
				t.Errorf("template of %s %s/%s", template.Kind, template.Namespace, template.Name)
			}
			if got, want := template.User(), account+row.user; got != want {
				t.Errorf("%s: user %s, want %s", row.reason, got, want)
			}
			pod := template.Pod()
			owner := metav1.GetControllerOfNoCopy(pod)
			if owner == nil || owner.UID == "" || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
				t.Fatalf("owned by %v", owner)
			}
			var allowed, volumes []string
			for _, toleration := range pod.Spec.Tolerations {
				if toleration.TolerationSeconds != nil {
					t.Errorf("%v ends", toleration)
				}
				allowed = append(allowed, toleration.Key+":"+string(toleration.Effect))
			}
			for _, volume := range pod.Spec.Volumes {
				claim := ""
				if volume.PersistentVolumeClaim != nil {
					claim = volume.PersistentVolumeClaim.ClaimName
				}
				volumes = append(volumes, volume.Name+"="+claim)
			}
			var labels []string
			for _, label := range slices.Sorted(maps.Keys(pod.Labels)) {
				labels = append(labels, label+"="+pod.Labels[label])
			}
			made := strings.NewReplacer(string(owner.UID), "*", "6d4b75cb6d", "*", "29800000", "*")
			got := map[string]string{
				"owner": made.Replace(owner.APIVersion + " " + owner.Kind + " " + owner.Name), "labels": made.Replace(strings.Join(labels, " ")),
				"generated": made.Replace(pod.GenerateName), "name": pod.Name,
				"allowed": strings.Join(allowed, " "), "volumes": strings.Join(volumes, " "),
				"host":       strings.Trim(pod.Spec.Hostname+"."+pod.Spec.Subdomain, "."),
				"finalizers": strings.Join(pod.Finalizers, " "), "namespace": pod.Namespace,
				"image": pod.Spec.Containers[0].Image, "note": pod.Annotations["note"], "type": pod.APIVersion + " " + pod.Kind,
			}
			want := map[string]string{
				"owner": row.owner, "labels": row.labels, "generated": row.generated, "name": row.name, "allowed": row.allowed, "volumes": row.volumes,
				"host": row.host, "finalizers": strings.TrimSpace("example.org/f " + row.finalizer),
				"namespace": "ns", "image": "i", "note": "a", "type": "v1 Pod",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// TestPodIsNew checks that a change of a pod is none of the template.
func TestPodIsNew(t *testing.T) {
	t.Parallel()
	template := of(t, minimal("apps/v1", "DaemonSet", ""))
	want := template.Pod()
	pod := template.Pod()
	pod.Labels["app"], pod.Annotations["note"], pod.Spec.Containers[0].Image, pod.Finalizers[0] = "x", "x", "x", "x"
	*pod.OwnerReferences[0].Controller = false
	pod.Spec.Tolerations[0].Key = "x"
	if diff := cmp.Diff(want, template.Pod()); diff != "" {
		t.Errorf("the template changed (-want +got):\n%s", diff)
	}
}

func TestNoTemplate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, workload string
		isError          bool
	}{
		"Pod":            {reason: "no controller makes it", workload: "{apiVersion: v1, kind: Pod, metadata: {name: w}, spec: {}}"},
		"EarlierVersion": {reason: "the API server serves it no longer", workload: minimal("apps/v1beta1", "Deployment", "")},
		"OtherGroup": {
			reason:   "another controller makes its pods, by other rules",
			workload: minimal("apps.openshift.io/v1", "DeploymentConfig", ""),
		},
		"SameKind": {reason: "a kind of this name of another group", workload: minimal("example.org/v1", "Deployment", "")},
		"Empty":    {reason: "an object without a kind", workload: "{kind: '', apiVersion: '', a: 1}"},
		"NoSpec":   {reason: "no spec", workload: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}}", isError: true},
		"OtherSpec": {
			reason:   "the spec is no object",
			workload: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: [1]}",
			isError:  true,
		},
		"Without": {
			reason:   "a ReplicationController may have no template",
			workload: "{apiVersion: v1, kind: ReplicationController, metadata: {name: w}, spec: {template: null}}",
			isError:  true,
		},
		"Text": {
			reason:   "the template is no object",
			workload: "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: w}, spec: {template: text}}",
			isError:  true,
		},
		"Undecodable": {
			reason:   "containers are a list",
			workload: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w}, spec: {template: {spec: {containers: {name: c}}}}}",
			isError:  true,
		},
		"Quantity": {
			reason: "a quantity that is none",
			workload: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: w}, " +
				"spec: {template: {spec: {containers: [{resources: {limits: {cpu: much}}}]}}}}",
			isError: true,
		},
		"NoJob": {
			reason:   "no template of Jobs",
			workload: "{apiVersion: batch/v1, kind: CronJob, metadata: {name: w}, spec: {jobTemplate: text}}",
			isError:  true,
		},
		"Job": {
			reason:   "a CronJob has its template in that of its Jobs",
			workload: "{apiVersion: batch/v1, kind: CronJob, metadata: {name: w}, spec: {template: {spec: {}}}}",
			isError:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: map[string]any{}}
			if err := yaml.Unmarshal([]byte(row.workload), &object.Object); err != nil {
				t.Fatal(err)
			}
			template, ok, err := podtemplate.Of(object)
			if ok || (err != nil) != row.isError {
				t.Errorf("Of = %v, %v, %v; %s", template.Kind, ok, err, row.reason)
			}
			if err != nil && !strings.Contains(err.Error(), object.GetKind()+" /w") {
				t.Errorf("%q does not name the workload", err)
			}
		})
	}
	if _, ok, err := podtemplate.Of(nil); ok || err != nil {
		t.Errorf("Of(nil) = %v, %v", ok, err)
	}
}

func TestConstraint(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	pod.Annotations = map[string]string{"openshift.io/scc": "restricted-v2"}
	for want, pod := range map[string]*corev1.Pod{"restricted-v2": pod, "": {}} {
		if got := podtemplate.Constraint(pod); got != want {
			t.Errorf("Constraint = %q, want %q", got, want)
		}
	}
	if got := podtemplate.Constraint(nil); got != "" {
		t.Errorf("Constraint(nil) = %q", got)
	}
}
