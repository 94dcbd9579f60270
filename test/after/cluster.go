package after

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Noon is a time of the last look at a cluster, where none is needed that is near to the present.
func Noon() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

// New makes a cluster with operators, pools, nodes and the workloads of a user, in which everything is good. All that
// happens to it is before noon, the time of the last look.
func New(noon time.Time) *World {
	w := &World{noon: noon.UTC().Truncate(time.Second), objects: map[Ref]map[string]any{}, kinds: builtIn()}
	w.Set(Ref{Kind: "Infrastructure", Name: "cluster"},
		`{"status":{"controlPlaneTopology":"HighlyAvailable","platformStatus":{"type":"AWS"}}}`)
	w.Set(Ref{Kind: "Network", Name: "cluster"}, `{"status":{"networkType":"OVNKubernetes"}}`)
	w.Set(Ref{Kind: "ClusterVersion", Name: "version"},
		fmt.Sprintf(`{"spec":{"clusterID":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"},"status":{"observedGeneration":1,"desired":{"version":%q,"image":%q},"history":[%s],
		"conditions":[{"type":"Available","status":"True","lastTransitionTime":%q},{"type":"Progressing","status":"False","lastTransitionTime":%[4]q},{"type":"Failing","status":"False","lastTransitionTime":%[4]q}]}}`,
			From, image(From), w.entry("Completed", From, 31*24*time.Hour, 30*24*time.Hour), w.At(30*24*time.Hour)))
	for _, name := range []string{
		"authentication", "dns", "etcd", "ingress", "kube-apiserver", "machine-api", "machine-config", "monitoring",
		"network", "openshift-apiserver", "storage",
	} {
		w.Set(Ref{Kind: "ClusterOperator", Name: name}, fmt.Sprintf(`{"status":{"versions":[{"name":"operator","version":%q}]}}`, From))
		for kind, status := range map[string]string{"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"} {
			w.Condition(Ref{Kind: "ClusterOperator", Name: name}, kind, status, "AsExpected", 30*24*time.Hour)
		}
	}
	for name, nodes := range map[string]int{"master": 3, "worker": 3, "infra": 1} {
		w.pool(name, nodes)
		for i := range nodes {
			w.AddNode(fmt.Sprintf("%s-%d", name, i))
		}
	}
	w.platform()
	w.user()
	w.released()
	return w
}

func image(version string) string {
	digest := strings.Repeat("a", 64)
	if version == To {
		digest = strings.Repeat("b", 64)
	}
	return "quay.io/openshift-release-dev/ocp-release@sha256:" + digest
}

// entry is an entry of a history, that began and ended then.
func (w *World) entry(state, version string, began, ended time.Duration) string {
	return fmt.Sprintf(`{"state":%q,"version":%q,"image":%q,"startedTime":%q,"completionTime":%q,"verified":true}`, state, version,
		image(version), w.At(began), w.At(ended))
}

func (w *World) pool(name string, nodes int) {
	ref := Ref{Kind: "MachineConfigPool", Name: name}
	w.Set(ref, fmt.Sprintf(
		`{"spec":{"paused":false},"status":{"observedGeneration":1,"machineCount":%d,"updatedMachineCount":%[1]d,"readyMachineCount":%[1]d,"unavailableMachineCount":0,"degradedMachineCount":0}}`, nodes))
	for kind, status := range map[string]string{
		"Updated": "True", "Updating": "False", "Degraded": "False", "NodeDegraded": "False",
		"RenderDegraded": "False",
	} {
		w.Condition(ref, kind, status, "AsExpected", 30*24*time.Hour)
	}
}

// AddNode adds a node that is healthy, of the role that its name begins with.
func (w *World) AddNode(name string) {
	ref := Ref{Kind: "Node", Name: name}
	role, _, _ := strings.Cut(name, "-")
	w.Set(ref, fmt.Sprintf(
		`{"metadata":{"labels":{"node-role.kubernetes.io/%[2]s":""},"annotations":{"machineconfiguration.openshift.io/state":"Done","machineconfiguration.openshift.io/currentConfig":"rendered-1","machineconfiguration.openshift.io/desiredConfig":"rendered-1",
		"machineconfiguration.openshift.io/desiredDrain":"uncordon-1","machineconfiguration.openshift.io/lastAppliedDrain":"uncordon-1"}},"status":{"nodeInfo":{"bootID":"boot-1-%[1]s","kubeletVersion":"v1.31.1","architecture":"amd64"}}}`, name, role))
	if strings.HasPrefix(name, "worker-") {
		w.Annotate(ref, map[string]string{"machine.openshift.io/machine": "openshift-machine-api/" + name})
	}
	w.Condition(ref, "Ready", "True", "KubeletReady", 30*24*time.Hour)
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure"} {
		w.Condition(ref, kind, "False", "AsExpected", 30*24*time.Hour)
	}
	w.Set(Ref{Kind: "CSINode", Name: name}, `{"spec":{"drivers":[{"name":"ebs.csi.aws.com","nodeID":"n"}]}}`)
}

// platform are workloads and objects of the release.
func (w *World) platform() {
	w.Workload("DaemonSet", "openshift-dns", "dns-default", 7)
	w.Workload("Deployment", "openshift-ingress", "router-default", 2)
	w.Workload("StatefulSet", "openshift-monitoring", "alertmanager-main", 2)
	w.Workload("DaemonSet", "openshift-cluster-csi-drivers", "aws-ebs-csi-driver-node", 7)
	w.Workload("Deployment", "openshift-ovn-kubernetes", "ovnkube-control-plane", 2)
	w.Workload("Deployment", "openshift-apiserver", "apiserver", 3)
	w.Workload("Deployment", "openshift-apiserver-operator", "openshift-apiserver-operator", 1)
	w.Set(Ref{Kind: "APIService", Name: "v1.apps.openshift.io"}, `{"spec":{"service":{"namespace":"openshift-apiserver","name":"apiserver"}}}`)
	w.Condition(Ref{Kind: "APIService", Name: "v1.apps.openshift.io"}, "Available", "True", "Passed", 30*24*time.Hour)
	router := Ref{Kind: "IngressController", Namespace: "openshift-ingress-operator", Name: "default"}
	w.Set(router, `{}`)
	for kind, status := range map[string]string{"Available": "True", "Degraded": "False", "CanaryChecksSucceeding": "True"} {
		w.Condition(router, kind, status, "AsExpected", 30*24*time.Hour)
	}
	w.Set(Ref{Kind: "StorageClass", Name: "gp3-csi"},
		`{"metadata":{"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"ebs.csi.aws.com","volumeBindingMode":"WaitForFirstConsumer"}`)
	w.Set(Ref{Kind: "StorageClass", Name: "nfs"}, `{"provisioner":"nfs.example.com","volumeBindingMode":"Immediate"}`)
	w.Set(Ref{Kind: "CSIDriver", Name: "ebs.csi.aws.com"}, `{}`)
	w.AddRoute("openshift-authentication", "oauth-openshift")
}

// user are the workloads and objects of users.
func (w *World) user() {
	for _, name := range []string{"web", "api", "cart", "mail"} {
		w.Workload("Deployment", "shop", name, 3)
		w.AddRoute("shop", name)
	}
	w.Workload("StatefulSet", "shop", "db", 3)
	w.Workload("DaemonSet", "shop", "logs", 3)
	for i := range 3 {
		w.Set(Ref{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: fmt.Sprintf("data-db-%d", i)},
			`{"spec":{"storageClassName":"nfs"},"status":{"phase":"Bound"}}`)
	}
	w.Workload("Deployment", "policy", "webhook", 2)
	w.Set(Ref{Kind: "ValidatingWebhookConfiguration", Name: "policy"},
		`{"webhooks":[{"name":"policy.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Fail","clientConfig":{"caBundle":"Y2E=","service":{"namespace":"policy","name":"webhook"}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}]}`)
	w.Workload("Deployment", "operators", "widget-operator", 1)
	w.Set(Ref{Kind: "ClusterServiceVersion", Namespace: "operators", Name: "widget.v1.2.3"},
		`{"status":{"phase":"Succeeded","reason":"InstallSucceeded"}}`)
	w.Set(Ref{Kind: "Subscription", Namespace: "operators", Name: "widget"},
		`{"spec":{"name":"widget"},"status":{"state":"AtLatestKnown","installedCSV":"widget.v1.2.3","currentCSV":"widget.v1.2.3"}}`)
	w.Set(Ref{Kind: "EgressIP", Name: "shop"},
		`{"spec":{"egressIPs":["192.0.2.10"]},"status":{"items":[{"egressIP":"192.0.2.10","node":"worker-0"}]}}`)
	w.Set(Ref{Kind: "EgressFirewall", Namespace: "shop", Name: "default"}, `{"status":{"status":"EgressFirewall Rules applied"}}`)
	w.Set(Ref{Kind: "MachineSet", Namespace: "openshift-machine-api", Name: "workers"},
		`{"spec":{"replicas":3},"status":{"replicas":3,"readyReplicas":3,"availableReplicas":3}}`)
}

// AddRoute adds a Route to the Service of its name, which the router admits.
func (w *World) AddRoute(namespace, name string) {
	ref := Ref{Kind: "Route", Namespace: namespace, Name: name}
	w.Set(ref, `{"spec":{"to":{"kind":"Service","name":"`+name+`"}}}`)
	w.Admit(ref, "True", 30*24*time.Hour)
}

// Admit has the router admit a Route, or not.
func (w *World) Admit(route Ref, status string, since time.Duration) {
	w.Put(route, "status.ingress", []any{map[string]any{"routerName": "default", "conditions": []any{
		map[string]any{"type": "Admitted", "status": status, "reason": "Router", "lastTransitionTime": w.At(since)},
	}}})
}

// Workload makes a workload with its ready pods, its Service and the endpoints of that.
func (w *World) Workload(kind, namespace, name string, replicas int) {
	ref := Ref{Kind: kind, Namespace: namespace, Name: name}
	labels := `{"app":"` + name + `"}`
	template := `"template":{"metadata":{"labels":` + labels + `},"spec":{"containers":[{"name":"main","image":"main"}]}}`
	if home := (Ref{Kind: "Namespace", Name: namespace}); !w.Exists(home) {
		w.Set(home, `{"status":{"phase":"Active"}}`)
	}
	switch kind {
	case "Deployment":
		w.Set(ref, `{"metadata":{"labels":`+labels+`,"annotations":{"deployment.kubernetes.io/revision":"1"}},"spec":{"selector":{"matchLabels":`+
			labels+`},`+template+`}}`)
		w.Condition(ref, "Progressing", "True", "NewReplicaSetAvailable", 30*24*time.Hour)
		w.Condition(ref, "Available", "True", "MinimumReplicasAvailable", 30*24*time.Hour)
	case "StatefulSet":
		w.Set(ref, `{"spec":{"serviceName":"`+name+`","selector":{"matchLabels":`+labels+`},`+template+`},"status":{"currentRevision":"`+name+
			`-1","updateRevision":"`+name+`-1","observedGeneration":1}}`)
	case "DaemonSet":
		w.Set(ref, `{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"1"}},"spec":{"updateStrategy":{"type":"RollingUpdate"},"selector":{"matchLabels":`+labels+`},`+template+`}}`)
	}
	w.Set(Ref{Kind: "Service", Namespace: namespace, Name: name}, `{"spec":{"selector":`+labels+`,"ports":[{"port":443}]}}`)
	w.Scale(ref, replicas)
}

// Scale has a workload have as many replicas, all ready, as its controllers do.
func (w *World) Scale(ref Ref, replicas int) {
	w.Counts(ref, replicas, replicas)
	w.Replace(ref, replicas, time.Hour*24*30)
	w.Endpoints(ref.Namespace, ref.Name, replicas)
}

// Counts are the replicas of a workload in its status.
func (w *World) Counts(ref Ref, desired, ready int) {
	switch ref.Kind {
	case "DaemonSet":
		for field, count := range map[string]int{
			"desiredNumberScheduled": desired, "currentNumberScheduled": desired,
			"updatedNumberScheduled": desired, "numberReady": ready, "numberAvailable": ready,
		} {
			w.Put(ref, "status."+field, count)
		}
	default:
		w.Put(ref, "spec.replicas", desired)
		for field, count := range map[string]int{
			"replicas": desired, "updatedReplicas": desired, "currentReplicas": desired,
			"readyReplicas": ready, "availableReplicas": ready,
		} {
			w.Put(ref, "status."+field, count)
		}
	}
	if ref.Kind == "ReplicaSet" {
		w.Put(ref, "status.fullyLabeledReplicas", desired)
	}
	w.Put(ref, "status.observedGeneration", w.Object(ref).GetGeneration())
}

// Replace replaces the pods of a workload by new ones, made then.
func (w *World) Replace(ref Ref, replicas int, age time.Duration) {
	for _, old := range w.Pods(ref) {
		w.Delete(old)
	}
	owner, revision := ref, ""
	if ref.Kind == "Deployment" {
		revision = w.Object(ref).GetAnnotations()["deployment.kubernetes.io/revision"]
		owner = Ref{Kind: "ReplicaSet", Namespace: ref.Namespace, Name: ref.Name + "-" + revision}
		if _, exists := w.objects[owner]; !exists {
			w.Set(owner, `{"metadata":{"ownerReferences":[`+w.Owner(ref)+`]},"spec":{"selector":{"matchLabels":{"app":"`+ref.Name+
				`"}},"template":{"metadata":{"labels":{"app":"`+ref.Name+`"}},"spec":{"containers":[{"name":"main"}]}}}}`)
		}
		w.Counts(owner, replicas, replicas)
	}
	for i := range replicas {
		w.made++
		pod := Ref{Kind: "Pod", Namespace: ref.Namespace, Name: fmt.Sprintf("%s-%d", owner.Name, w.made)}
		if ref.Kind == "StatefulSet" {
			pod.Name = fmt.Sprintf("%s-%d", ref.Name, i)
		}
		w.Set(pod, fmt.Sprintf(
			`{"metadata":{"creationTimestamp":%q,"labels":{"app":%q,"pod-template-hash":%q},"ownerReferences":[%s]},"spec":{"nodeName":"worker-%d","containers":[{"name":"main"}]},"status":{"phase":"Running","startTime":%[1]q,
			"conditions":[{"type":"Ready","status":"True"},{"type":"PodScheduled","status":"True"}],"containerStatuses":[{"name":"main","ready":true,"restartCount":0,"image":"main","imageID":"main","state":{"running":{"startedAt":%[1]q}}}]}}`,
			w.At(age), ref.Name, revision, w.Owner(owner), i%3))
	}
}

// Pods are the pods of a workload.
func (w *World) Pods(ref Ref) []Ref {
	return slices.DeleteFunc(w.Refs("Pod", ref.Namespace, ref.Name+"-"), func(pod Ref) bool {
		return w.Object(pod).GetLabels()["app"] != ref.Name
	})
}

// Owner is the owner reference of what an object controls, as JSON.
func (w *World) Owner(ref Ref) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}`, w.kinds[ref.Kind].API, ref.plain(), ref.Name,
		w.Object(ref).GetUID())
}

// Endpoints are the ready endpoints of a Service.
func (w *World) Endpoints(namespace, service string, ready int) {
	var endpoints []string
	for i := range ready {
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses":["192.0.2.%d"],"conditions":{"ready":true,"serving":true}}`, i+1))
	}
	w.Set(Ref{Kind: "EndpointSlice", Namespace: namespace, Name: service + "-1"}, `{"metadata":{"labels":{"kubernetes.io/service-name":"`+
		service+`"}},"addressType":"IPv4","endpoints":[`+strings.Join(endpoints, ",")+`],"ports":[{"name":"","port":443}]}`)
}

// Update brings the cluster to the next release, without harm: the operators first, then a node after the other, and
// each pod is made again and restarts once. It has settled an hour before noon.
func (w *World) Update() {
	version := Ref{Kind: "ClusterVersion", Name: "version"}
	w.Put(version, "status.desired", map[string]any{"version": To, "image": image(To)})
	w.history(w.entry("Completed", To, 3*time.Hour, 2*time.Hour), w.entry("Completed", From, 31*24*time.Hour, 30*24*time.Hour))
	for ref := range w.objects {
		switch ref.Kind {
		case "ClusterOperator":
			w.Put(ref, "status.versions", []any{map[string]any{"name": "operator", "version": To}})
			w.Condition(ref, "Progressing", "False", "AsExpected", 130*time.Minute)
		case "MachineConfigPool":
			w.Condition(ref, "Updated", "True", "AsExpected", 80*time.Minute)
		case "Node":
			w.Put(ref, "status.nodeInfo.bootID", "boot-2-"+ref.Name)
			w.Put(ref, "status.nodeInfo.kubeletVersion", "v1.31.2")
			w.Annotate(ref, map[string]string{
				"machineconfiguration.openshift.io/state": "Done", "machineconfiguration.openshift.io/currentConfig": "rendered-2",
				"machineconfiguration.openshift.io/desiredConfig": "rendered-2",
				"machineconfiguration.openshift.io/desiredDrain":  "uncordon-2", "machineconfiguration.openshift.io/lastAppliedDrain": "uncordon-2",
			})
			w.Condition(ref, "Ready", "True", "KubeletReady", 85*time.Minute)
		}
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		for _, ref := range w.All(kind) {
			w.roll(ref)
		}
	}
}

// All are the objects of a kind, sorted.
func (w *World) All(kind string) []Ref {
	var refs []Ref
	for ref := range w.objects {
		if ref.Kind == kind {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return refs
}

// roll makes the pods of a workload again. The release changes its own workloads.
func (w *World) roll(ref Ref) {
	replicas := len(w.Pods(ref))
	if strings.HasPrefix(ref.Namespace, "openshift-") {
		w.change(ref)
	}
	w.Replace(ref, replicas, 90*time.Minute)
	for _, pod := range w.Pods(ref) {
		w.Restarts(pod, 1, 88*time.Minute)
	}
}

// change changes the template of a workload, whose pods are all new.
func (w *World) change(ref Ref) {
	w.Put(ref, "metadata.generation", 2)
	switch ref.Kind {
	case "Deployment":
		w.Put(ref, "metadata.annotations", map[string]any{"deployment.kubernetes.io/revision": "2"})
	case "StatefulSet":
		w.Put(ref, "status.updateRevision", ref.Name+"-2")
		w.Put(ref, "status.currentRevision", ref.Name+"-2")
	case "DaemonSet":
		w.Put(ref, "metadata.annotations", map[string]any{"deprecated.daemonset.template.generation": "2"})
	}
}

// Restarts has the container of a pod have restarted, the last time then.
func (w *World) Restarts(pod Ref, count int, last time.Duration) {
	w.Container(pod, map[string]any{"running": map[string]any{"startedAt": w.At(last)}}, count, last)
}

// Container sets the state of the container of a pod.
func (w *World) Container(pod Ref, state map[string]any, restarts int, last time.Duration) {
	status := map[string]any{
		"name": "main", "ready": state["running"] != nil, "image": "main", "imageID": "main",
		"restartCount": int64(restarts), "state": state,
	}
	if restarts > 0 {
		status["lastState"] = map[string]any{"terminated": map[string]any{
			"exitCode": int64(1), "finishedAt": w.At(last),
			"startedAt": w.At(last + time.Minute),
		}}
	}
	w.Put(pod, "status.containerStatuses", []any{status})
}

// history replaces the history of updates, the newest entry first.
func (w *World) history(entries ...string) {
	version := Ref{Kind: "ClusterVersion", Name: "version"}
	holder := &World{noon: w.noon, objects: map[Ref]map[string]any{}, kinds: w.kinds}
	holder.Set(version, `{"history":[`+strings.Join(entries, ",")+`]}`)
	w.Put(version, "status.history", holder.objects[version]["history"])
}
