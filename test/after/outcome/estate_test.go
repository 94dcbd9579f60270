package outcome_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/test/after"
)

// kinds are how the kinds of users' operators are served, by name.
func kinds() map[string]after.Kind {
	all := map[string]after.Kind{
		"DeploymentConfig": {API: "apps.openshift.io/v1", Plural: "deploymentconfigs", Status: true},
		"Application":      {API: "argoproj.io/v1alpha1", Plural: "applications", Status: true, Bare: true, Custom: true},
	}
	for line := range strings.Lines(`Rollout argoproj.io/v1alpha1 rollouts
ArgoCD argoproj.io/v1beta1 argocds
Kafka kafka.strimzi.io/v1beta2 kafkas
KafkaTopic kafka.strimzi.io/v1beta2 kafkatopics
StrimziPodSet core.strimzi.io/v1beta2 strimzipodsets
Certificate cert-manager.io/v1 certificates
CephCluster ceph.rook.io/v1 cephclusters
Volume longhorn.io/v1beta2 volumes
VirtualMachine kubevirt.io/v1 virtualmachines
RayCluster ray.io/v1 rayclusters
LokiStack loki.grafana.com/v1 lokistacks
ScaledObject keda.sh/v1alpha1 scaledobjects
Service.serving.knative.dev serving.knative.dev/v1 services
Configuration serving.knative.dev/v1 configurations
Elasticsearch elasticsearch.k8s.elastic.co/v1 elasticsearches
TaskRun tekton.dev/v1 taskruns
VolumeSnapshot snapshot.storage.k8s.io/v1 volumesnapshots
BackupStorageLocation velero.io/v1 backupstoragelocations
ClusterPolicy nvidia.com/v1 clusterpolicies cluster
NodeFeatureDiscovery nfd.openshift.io/v1 nodefeaturediscoveries
SriovNetworkNodeState sriovnetwork.openshift.io/v1 sriovnetworknodestates
MetalLB metallb.io/v1beta1 metallbs
Bucket s3.aws.upbound.io/v1beta1 buckets cluster
ConsolePlugin console.openshift.io/v1 consoleplugins cluster
Prometheus monitoring.coreos.com/v1 prometheuses
Gateway gateway.networking.k8s.io/v1 gateways
HTTPRoute gateway.networking.k8s.io/v1 httproutes
ClusterSecretStore external-secrets.io/v1beta1 clustersecretstores cluster
ExternalSecret external-secrets.io/v1beta1 externalsecrets
NodeNetworkConfigurationPolicy nmstate.io/v1 nodenetworkconfigurationpolicies cluster
PerformanceProfile performance.openshift.io/v2 performanceprofiles cluster
Profile tuned.openshift.io/v1 profiles
StorageCluster ocs.openshift.io/v1 storageclusters
MachineHealthCheck machine.openshift.io/v1beta1 machinehealthchecks
CatalogSource operators.coreos.com/v1alpha1 catalogsources
OperatorCondition operators.coreos.com/v2 operatorconditions
DNSRecord ingress.operator.openshift.io/v1 dnsrecords
EgressQoS k8s.ovn.org/v1 egressqoses
PipelineRun tekton.dev/v1 pipelineruns
Backup velero.io/v1 backups
Revision serving.knative.dev/v1 revisions
Kustomization kustomize.toolkit.fluxcd.io/v1 kustomizations
Widget example.com/v1 widgets`) {
		fields := strings.Fields(line)
		all[fields[0]] = after.Kind{API: fields[1], Plural: fields[2], Cluster: len(fields) > 3, Status: true, Custom: true}
	}
	return all
}

// isOfRelease reports whether the definition of a kind is a manifest of the release.
func isOfRelease(kind after.Kind) bool {
	group, _, _ := strings.Cut(kind.API, "/")
	return kind.Custom && slices.Contains([]string{
		"machine.openshift.io", "operators.coreos.com", "ingress.operator.openshift.io",
		"k8s.ovn.org", "performance.openshift.io", "tuned.openshift.io", "monitoring.coreos.com", "console.openshift.io",
		"gateway.networking.k8s.io",
	}, group)
}

func ref(kind, namespace, name string) after.Ref {
	return after.Ref{Kind: kind, Namespace: namespace, Name: name}
}

func refs(all ...after.Ref) []after.Ref { return all }

// in is an object by "Kind namespace/name", or "Kind name".
func in(text string) after.Ref {
	kind, name, _ := strings.Cut(text, " ")
	namespace, own, namespaced := strings.Cut(name, "/")
	if !namespaced || kind == "Alert" && strings.Count(name, "/") < 2 {
		return ref(kind, "", name)
	}
	return ref(kind, namespace, own)
}

// put makes an object, of a kind that is registered when it is needed, and its namespace.
func put(w *after.World, of, content string) after.Ref {
	at := in(of)
	if kind := kinds()[at.Kind]; !w.Serves(at.Kind) {
		if definition := w.Register(at.Kind, kind); isOfRelease(kind) {
			w.Released(definition)
		}
	}
	if home := ref("Namespace", "", at.Namespace); at.Namespace != "" && !w.Exists(home) {
		w.Set(home, `{"status":{"phase":"Active"}}`)
	}
	w.Set(at, content)
	return at
}

// made makes an object as put does, of this age.
func made(w *after.World, of string, age time.Duration, content string) after.Ref {
	at := in(of)
	home := ref("Namespace", "", at.Namespace)
	isNew := at.Namespace != "" && !w.Exists(home)
	put(w, of, content)
	w.Put(at, "metadata.creationTimestamp", w.At(age))
	w.Managed(at, "kubectl-create", "Update", age)
	if isNew {
		w.Put(home, "metadata.creationTimestamp", w.At(age))
	}
	return at
}

// conditions are those of an object, as "Type=Status/Reason", since then.
func conditions(w *after.World, of after.Ref, ago time.Duration, all ...string) {
	for _, each := range all {
		kind, rest, _ := strings.Cut(each, "=")
		status, reason, _ := strings.Cut(rest, "/")
		if reason == "" {
			reason = "AsExpected"
		}
		w.Condition(of, kind, status, reason, ago)
	}
}

// long is the age of what has been so since before the update.
const long = 30 * 24 * time.Hour

// with makes an object with conditions as of before the update.
func with(w *after.World, of, content string, all ...string) after.Ref {
	at := put(w, of, content)
	conditions(w, at, long, all...)
	return at
}

// edited has a manager change the spec of an object.
func edited(w *after.World, of after.Ref, manager string, ago time.Duration) {
	w.Put(of, "metadata.generation", w.Object(of).GetGeneration()+1)
	w.Managed(of, manager, "Update", ago)
}

// pods makes ready pods with an owner, and deletes those that it had.
func pods(w *after.World, owner after.Ref, number int, age time.Duration) []after.Ref {
	for _, old := range w.Pods(owner) {
		w.Delete(old)
	}
	var all []after.Ref
	for i := range number {
		pod := ref("Pod", owner.Namespace, fmt.Sprintf("%s-%d", owner.Name, i))
		w.Set(pod, fmt.Sprintf(
			`{"metadata":{"creationTimestamp":%q,"labels":{"app":%q},"ownerReferences":[%s]},"spec":{"nodeName":"worker-%d","containers":[{"name":"main"}]},"status":{"phase":"Running","startTime":%[1]q,
			"containerStatuses":[{"name":"main","ready":true,"restartCount":0,"image":"main","imageID":"main","state":{"running":{"startedAt":%[1]q}}}]}}`, w.At(age), owner.Name, w.Owner(owner), i%3))
		conditions(w, pod, age, "Ready=True", "ContainersReady=True", "PodScheduled=True")
		all = append(all, pod)
	}
	return all
}

// service makes the Service of a workload, with ready endpoints.
func service(w *after.World, namespace, name string, ready int) {
	put(w, "Service "+namespace+"/"+name, `{"spec":{"type":"ClusterIP","clusterIP":"172.30.0.9","selector":{"app":"`+name+
		`"},"ports":[{"port":443}]},"status":{"loadBalancer":{}}}`)
	w.Endpoints(namespace, name, ready)
}

// rollout makes an Argo Rollout with its ReplicaSet, its pods and its Service.
func rollout(w *after.World, namespace, name string, replicas int) after.Ref {
	of := with(w, "Rollout "+namespace+"/"+name, fmt.Sprintf(
		`{"spec":{"replicas":%d,"selector":{"matchLabels":{"app":%q}},"strategy":{"canary":{}}},"status":{"observedGeneration":"1","phase":"Healthy",
		"replicas":%[1]d,"updatedReplicas":%[1]d,"readyReplicas":%[1]d,"availableReplicas":%[1]d,"HPAReplicas":%[1]d}}`, replicas, name),
		"Available=True/AvailableReason", "Progressing=True/NewReplicaSetAvailable", "Healthy=True/RolloutHealthy",
		"Completed=True/RolloutCompleted")
	set := ref("ReplicaSet", namespace, name)
	w.Set(set, fmt.Sprintf(`{"metadata":{"labels":{"app":%q},"ownerReferences":[%s]},"spec":{"selector":{"matchLabels":{"app":%[1]q}}}}`, name,
		w.Owner(of)))
	w.Counts(set, replicas, replicas)
	pods(w, set, replicas, long)
	service(w, namespace, name, replicas)
	return of
}

// ready sets how many replicas of a Rollout are ready, and of its ReplicaSet and its Service.
func ready(w *after.World, of after.Ref, number int) {
	w.Put(of, "status.readyReplicas", number)
	w.Put(of, "status.availableReplicas", number)
	w.Put(ref("ReplicaSet", of.Namespace, of.Name), "status.readyReplicas", number)
	w.Put(ref("ReplicaSet", of.Namespace, of.Name), "status.availableReplicas", number)
	w.Endpoints(of.Namespace, of.Name, number)
}

// stop deletes the pods of a Rollout that its owner scaled to zero.
func stop(w *after.World, of after.Ref) {
	w.Put(of, "spec.replicas", 0)
	for _, field := range []string{"replicas", "updatedReplicas", "HPAReplicas"} {
		w.Put(of, "status."+field, 0)
	}
	set := ref("ReplicaSet", of.Namespace, of.Name)
	w.Counts(set, 0, 0)
	pods(w, set, 0, 0)
	ready(w, of, 0)
	edited(w, of, "kubectl-argo-rollouts", since)
}

// fail has pods wait for a reason.
func fail(w *after.World, reason string, ago time.Duration, all ...after.Ref) {
	for _, pod := range all {
		restarts := 0
		if reason == "CrashLoopBackOff" {
			restarts = 17
		}
		w.Container(pod, map[string]any{"waiting": map[string]any{"reason": reason, "message": reason}}, restarts, 3*time.Minute)
		conditions(w, pod, ago, "Ready=False/ContainersNotReady", "ContainersReady=False/ContainersNotReady")
	}
}

// down has a number of the pods of a Deployment, StatefulSet or DaemonSet wait for a reason since then.
func down(w *after.World, of after.Ref, number int, reason string, ago time.Duration) {
	all := w.Pods(of)
	fail(w, reason, ago, all[:number]...)
	w.Counts(of, len(all), len(all)-number)
	if w.Exists(ref("Service", of.Namespace, of.Name)) {
		w.Endpoints(of.Namespace, of.Name, len(all)-number)
	}
	if of.Kind == "Deployment" {
		status := "True"
		if number == len(all) {
			status = "False"
		}
		conditions(w, of, ago, "Available="+status+"/MinimumReplicasUnavailable")
	}
}

// broke makes a Deployment of this age whose pods wait for a reason from the start.
func broke(w *after.World, namespace, name, reason string, age time.Duration) after.Ref {
	of := ref("Deployment", namespace, name)
	home := ref("Namespace", "", namespace)
	isNew := !w.Exists(home)
	w.Workload("Deployment", namespace, name, 1)
	w.Replace(of, 1, age)
	born := append(w.Refs("ReplicaSet", namespace, name+"-"), of, ref("Service", namespace, name), ref("EndpointSlice", namespace, name+"-1"))
	if isNew {
		born = append(born, home)
	}
	down(w, of, 1, reason, age)
	for _, each := range born {
		w.Put(each, "metadata.creationTimestamp", w.At(age))
	}
	w.Managed(of, "kubectl-create", "Update", age)
	return of
}

// gone deletes objects, and what they own.
func gone(w *after.World, all ...after.Ref) {
	for _, each := range all {
		uid := w.Object(each).GetUID()
		w.Delete(each)
		for _, kind := range []string{"Pod", "ReplicaSet"} {
			for _, other := range w.All(kind) {
				for _, owner := range w.Object(other).GetOwnerReferences() {
					if owner.UID == uid && w.Exists(other) {
						gone(w, other)
					}
				}
			}
		}
	}
}

// move has the pods of a node that is gone be on another one.
func move(w *after.World, from, to string) {
	for _, pod := range w.All("Pod") {
		if spec, ok := w.Object(pod).Object["spec"].(map[string]any); ok && spec["nodeName"] == from {
			spec["nodeName"] = to
		}
	}
}

// shrink has a MachineConfigPool have so many nodes.
func shrink(w *after.World, pool string, nodes int) {
	for _, field := range []string{"machineCount", "updatedMachineCount", "readyMachineCount"} {
		w.Put(in("MachineConfigPool "+pool), "status."+field, nodes)
	}
}

// reboot restarts the pods that the update did not make again.
func reboot(w *after.World) {
	for _, pod := range w.All("Pod") {
		if after.Noon().Sub(w.Object(pod).GetCreationTimestamp().Time) > 4*time.Hour {
			w.Restarts(pod, 1, 88*time.Minute)
			conditions(w, pod, 87*time.Minute, "Ready=True", "ContainersReady=True")
		}
	}
}
