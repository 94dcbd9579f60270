package after_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/test/after"
)

// recordings are the clusters of before: what "oc preflight collect" records of one, and the must-gather of the examples, in
// which the namespaces of users were gathered as well. In both, something is bad.
func recordings(t *testing.T) map[string]*recording {
	t.Helper()
	collected := collect(t, shop(after.Noon()), after.Noon())
	ordinary(collected)
	gathered := readRecording(t, "../../examples/archive")
	users := collect(t, shop(gathered.now), gathered.now)
	ordinary(users)
	addTo(gathered, users)
	return map[string]*recording{"Collected": collected, "Gathered": gathered}
}

// addTo adds the namespaces and nodes that churn needs to a must-gather.
func addTo(gathered, users *recording) {
	gathered.gather(users, "shop", "policy", "operators", "tools", "devices", "leaving", "openshift-operators", "openshift-kube-apiserver",
		"openshift-marketplace", "openshift-operator-lifecycle-manager", "openshift-machine-api")
	for _, each := range users.all("ValidatingWebhookConfiguration") {
		gathered.add(each.DeepCopy())
	}
	var own []any
	for _, namespace := range []string{
		"openshift-dns", "openshift-etcd", "openshift-kube-apiserver", "openshift-marketplace",
		"openshift-operator-lifecycle-manager", "openshift-machine-api",
	} {
		own = append(own, map[string]any{"group": "", "resource": "namespaces", "name": namespace})
	}
	gathered.put(gathered.get("ClusterOperator", "", "machine-config"), "status.relatedObjects", own)
	gathered.fire("KubeDeploymentReplicasMismatch", "openshift-dns", "firing", time.Hour)
	gathered.listed("certificates.k8s.io", "certificatesigningrequests", "")
	for _, name := range []string{"cordoned-1", "spare-1"} {
		gathered.add(users.get("Node", "", name).DeepCopy())
	}
}

// shop is a cluster with a workload for each change of one, and with something that is bad.
func shop(noon time.Time) *after.World {
	w := after.New(noon)
	for _, name := range []string{
		"scaled-up", "scaled-down", "scaling-up", "scaled-down-up", "stopped", "rolled-out", "deleted", "restarted",
		"evicted", "sliced",
	} {
		w.Workload("Deployment", "shop", name, 3)
	}
	w.Workload("StatefulSet", "shop", "scaled-set", 3)
	w.Workload("StatefulSet", "shop", "rolled-set", 3)
	w.Workload("DaemonSet", "shop", "rolled-daemons", 3)
	w.Workload("Deployment", "openshift-operator-lifecycle-manager", "catalog-operator", 1)
	for kind, name := range map[string]string{"Deployment": "web", "StatefulSet": "db", "DaemonSet": "logs"} {
		w.Workload(kind, "leaving", name, 3)
	}
	w.Set(after.Ref{Kind: "Route", Namespace: "leaving", Name: "web"},
		`{"spec":{"to":{"kind":"Service","name":"web"}},"status":{"ingress":[{"routerName":"default","conditions":[{"type":"Admitted","status":"True"}]}]}}`)
	for _, namespace := range []string{"tools", "devices", "openshift-operators"} {
		w.Set(after.Ref{Kind: "Namespace", Name: namespace}, `{}`)
		w.Set(after.Ref{Kind: "ClusterServiceVersion", Namespace: namespace, Name: "gadget.v1.0.0"}, `{"status":{"phase":"Succeeded"}}`)
	}
	for _, service := range []string{"train", "debug"} {
		w.Set(after.Ref{Kind: "Service", Namespace: "shop", Name: service}, `{"spec":{"selector":{"app":"`+service+`"},"ports":[{"port":80}]}}`)
	}
	w.Set(after.Ref{Kind: "Pod", Namespace: "shop", Name: "debug"},
		`{"metadata":{"labels":{"app":"debug"}},"spec":{"nodeName":"worker-0","containers":[{"name":"main"}]},"status":{"phase":"Running"}}`)
	for _, name := range []string{"cordoned-1", "spare-1"} {
		w.Set(after.Ref{Kind: "Node", Name: name}, `{"metadata":{"annotations":{"machine.openshift.io/machine":"openshift-machine-api/`+name+
			`"}},"status":{"nodeInfo":{"bootID":"boot-1-`+name+`"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	}
	for each := range strings.FieldsSeq("ClusterVersion.config.openshift.io ClusterOperator.config.openshift.io " +
		"MachineConfigPool.machineconfiguration.openshift.io MachineSet.machine.openshift.io IngressController.operator.openshift.io " +
		"EgressIP.k8s.ovn.org EgressFirewall.k8s.ovn.org ClusterServiceVersion.operators.coreos.com Subscription.operators.coreos.com") {
		kind, group, _ := strings.Cut(each, ".")
		plural := strings.ToLower(kind) + "s"
		w.Set(after.Ref{Kind: "CustomResourceDefinition", Name: plural + "." + group},
			fmt.Sprintf(`{"spec":{"group":%q,"names":{"kind":%q,"plural":%q},"versions":[{"name":"v1","served":true},{"name":"v1beta1","served":true},{"name":"v1alpha1","served":true}]}}`, group, kind, plural))
	}
	for _, each := range after.BadBefore() {
		each.Apply(w)
	}
	w.Fire("KubeDeploymentReplicasMismatch", "openshift-dns", "warning", time.Hour)
	return w
}

// ordinary adds what a cluster has that no check reads, and pods without a workload.
func ordinary(r *recording) {
	r.set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"leaving"},"status":{"phase":"Active"}}`)
	r.set(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"catalog-operator","namespace":"openshift-operator-lifecycle-manager"},"spec":{"holderIdentity":"a","leaseTransitions":1}}`)
	r.set(`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"report","namespace":"shop"},"spec":{"schedule":"0 * * * *"},"status":{}}`)
	r.set(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"import","namespace":"shop"},"status":{"active":1}}`)
	r.set(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"train","namespace":"shop"},"status":{"active":1}}`)
	r.set(jobPod("shop", "report-1-x", "report-1", "Succeeded", r.at(time.Hour)))
	r.set(jobPod("shop", "import-x", "import", "Running", r.at(time.Hour)))
	r.set(jobPod("shop", "train-x", "train", "Running", r.at(time.Hour)))
	r.serve("shop", "train", 1)
	r.serve("shop", "debug", 1)
	for _, catalog := range []string{"redhat-operators", "certified-operators"} {
		r.set(fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q,"namespace":"openshift-marketplace"},"spec":{"selector":{"olm.catalogSource":%[1]q},"ports":[{"port":50051}]}}`, catalog))
		r.set(fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s-abcde","namespace":"openshift-marketplace","labels":{"olm.catalogSource":%[1]q},"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","name":%[1]q,"uid":"1","controller":false}]},"spec":{"nodeName":"worker-0","containers":[{"name":"registry-server"}]},"status":{"phase":"Running","containerStatuses":[{"name":"registry-server","ready":true,"restartCount":0,"image":"i","imageID":"i","state":{"running":{}}}]}}`, catalog))
		r.serve("openshift-marketplace", catalog, 1)
	}
	r.set(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"installer-8-master-0","namespace":"openshift-kube-apiserver","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"revision-status-8","uid":"1"}]},"spec":{"nodeName":"master-0","containers":[{"name":"installer"}]},"status":{"phase":"Succeeded"}}`)
	r.set(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"kube-apiserver-master-0","namespace":"openshift-kube-apiserver","labels":{"revision":"8","apiserver":"true"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"master-0","uid":"1","controller":true}]},"spec":{"nodeName":"master-0","containers":[{"name":"kube-apiserver"}]},"status":{"phase":"Running","containerStatuses":[{"name":"kube-apiserver","ready":true,"restartCount":0,"image":"i","imageID":"i","state":{"running":{}}}]}}`)
	for _, name := range []string{"scaled-up", "scaled-down", "scaling-up", "scaled-down-up"} {
		r.set(fmt.Sprintf(
			`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":%q,"namespace":"shop"},"spec":{"maxReplicas":9,"scaleTargetRef":{"kind":"Deployment","name":%[1]q}},"status":{"currentReplicas":3,"desiredReplicas":3}}`, name))
	}
}

// suffix ends the name of a pod.
func (r *recording) suffix() string {
	r.made++
	return "n" + strconv.Itoa(r.made)
}

// rename makes a pod again, with another name.
func (r *recording) rename(pod *unstructured.Unstructured, name string, age time.Duration) *unstructured.Unstructured {
	next := pod.DeepCopy()
	r.delete(pod)
	next.SetName(name)
	r.put(next, "metadata.uid", "")
	r.put(next, "metadata.creationTimestamp", r.at(age))
	r.put(next, "status.startTime", r.at(age))
	r.containers(next, func(status map[string]any) {
		status["restartCount"] = int64(0)
		delete(status, "lastState")
	})
	r.add(next)
	return next
}

func (r *recording) containers(pod *unstructured.Unstructured, change func(map[string]any)) {
	all, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, each := range all {
		if status, ok := each.(map[string]any); ok {
			change(status)
		}
	}
	if all != nil {
		r.put(pod, "status.containerStatuses", all)
	}
}

// unready has the containers of a new pod wait.
func (r *recording) unready(pod *unstructured.Unstructured, reason string) {
	r.put(pod, "status.phase", "Pending")
	r.containers(pod, func(status map[string]any) {
		status["ready"], status["state"] = false, map[string]any{"waiting": map[string]any{"reason": reason}}
	})
}

// restart has each container of a pod restart once.
func (r *recording) restart(pod *unstructured.Unstructured, ago time.Duration) {
	r.containers(pod, func(status map[string]any) {
		count, _ := status["restartCount"].(int64)
		status["restartCount"] = count + 1
		status["lastState"] = map[string]any{"terminated": map[string]any{
			"exitCode": int64(1), "startedAt": r.at(ago + time.Hour),
			"finishedAt": r.at(ago),
		}}
	})
}

func (r *recording) conditions(object *unstructured.Unstructured, change func(map[string]any)) {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range all {
		if condition, ok := each.(map[string]any); ok {
			change(condition)
		}
	}
	if all != nil {
		r.put(object, "status.conditions", all)
	}
}

// condition sets a condition, that has had its status since then.
func (r *recording) condition(object *unstructured.Unstructured, kind, status string, since time.Duration) {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	made := []any{map[string]any{
		"type": kind, "status": status, "reason": "Reported", "message": "as reported",
		"lastTransitionTime": r.at(since),
	}}
	for _, each := range all {
		if condition, ok := each.(map[string]any); ok && condition["type"] != kind {
			made = append(made, condition)
		}
	}
	r.put(object, "status.conditions", made)
}

func (r *recording) annotate(object *unstructured.Unstructured, key, value string) {
	all := maps.Clone(object.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	object.SetAnnotations(all)
}

// counts are the pods of a workload.
func (r *recording) counts(of *unstructured.Unstructured, desired, ready int) {
	if of.GetKind() == "DaemonSet" {
		for field, count := range map[string]int{
			"desiredNumberScheduled": desired, "currentNumberScheduled": desired,
			"updatedNumberScheduled": desired, "numberReady": ready,
		} {
			r.put(of, "status."+field, count)
		}
		return
	}
	r.put(of, "spec.replicas", desired)
	for field, count := range map[string]int{
		"replicas": desired, "updatedReplicas": desired, "readyReplicas": ready,
		"availableReplicas": ready,
	} {
		r.put(of, "status."+field, count)
	}
}

// scale has a workload of the shop have a number of pods.
func (r *recording) scale(kind, name string, desired, ready int) {
	of := r.get(kind, "shop", name)
	pods := r.in("Pod", "shop", name+"-")
	for len(pods) > desired {
		r.delete(pods[len(pods)-1])
		pods = pods[:len(pods)-1]
	}
	for i := len(pods); i < desired && i > 0; i++ {
		next := pods[0].DeepCopy()
		next.SetName(name + "-" + r.suffix())
		r.put(next, "metadata.uid", "")
		r.put(next, "metadata.creationTimestamp", r.at(2*time.Minute))
		r.add(next)
		if i >= ready {
			r.unready(next, "ContainerCreating")
		}
	}
	r.put(of, "metadata.generation", of.GetGeneration()+1)
	r.counts(of, desired, ready)
	r.serve("shop", name, ready)
}

// autoscale is scale by an autoscaler.
func (r *recording) autoscale(name string, desired, ready int) {
	r.put(r.get("HorizontalPodAutoscaler", "shop", name), "status",
		map[string]any{"currentReplicas": int64(desired), "desiredReplicas": int64(desired), "lastScaleTime": r.at(2 * time.Minute)})
	r.scale("Deployment", name, desired, ready)
}

// serve has a Service have a number of ready endpoints.
func (r *recording) serve(namespace, service string, ready int) {
	for _, each := range r.in("EndpointSlice", namespace, "") {
		if each.GetLabels()["kubernetes.io/service-name"] == service {
			r.delete(each)
		}
	}
	var endpoints []string
	for i := range ready {
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses":["192.0.2.%d"],"conditions":{"ready":true}}`, i+1))
	}
	r.set(fmt.Sprintf(
		`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"%s-1","namespace":%q,"labels":{"kubernetes.io/service-name":%[1]q}},"addressType":"IPv4","endpoints":[%[3]s],"ports":[{"name":"","port":80}]}`, service, namespace, strings.Join(endpoints,
			",")))
}

// rollOut has a Deployment have pods of another ReplicaSet.
func (r *recording) rollOut(of *unstructured.Unstructured, age time.Duration) {
	const revision = "deployment.kubernetes.io/revision"
	number, _ := strconv.Atoi(of.GetAnnotations()[revision])
	r.annotate(of, revision, strconv.Itoa(number+1))
	r.put(of, "metadata.generation", of.GetGeneration()+1)
	hash := r.suffix()
	for _, each := range r.all("Pod") {
		owners := each.GetOwnerReferences()
		if each.GetNamespace() != of.GetNamespace() || len(owners) == 0 || owners[0].Kind != "ReplicaSet" ||
			owners[0].Name != of.GetName()+"-"+each.GetLabels()["pod-template-hash"] {
			continue
		}
		next := r.rename(each, of.GetName()+"-"+hash+"-"+r.suffix(), age)
		owners[0].Name = of.GetName() + "-" + hash
		next.SetOwnerReferences(owners)
		labels := next.GetLabels()
		labels["pod-template-hash"] = hash
		next.SetLabels(labels)
	}
}

// machines changes how many machines a MachineSet should have, and has.
func (r *recording) machines(name string, desired, ready int64) {
	of := r.get("MachineSet", "openshift-machine-api", name)
	wanted, _, _ := unstructured.NestedInt64(of.Object, "spec", "replicas")
	has, _, _ := unstructured.NestedInt64(of.Object, "status", "readyReplicas")
	r.put(of, "spec.replicas", wanted+desired)
	r.put(of, "status.readyReplicas", has+ready)
}

// spread has the DaemonSets have pods on more nodes.
func (r *recording) spread(desired, ready int64) {
	for _, each := range r.all("DaemonSet") {
		for field, count := range map[string]int64{
			"desiredNumberScheduled": desired, "currentNumberScheduled": desired,
			"updatedNumberScheduled": desired, "numberReady": ready,
		} {
			was, _, _ := unstructured.NestedInt64(each.Object, "status", field)
			r.put(each, "status."+field, was+count)
		}
	}
}

// join adds the node of a Machine.
func (r *recording) join(name string, ready bool, age time.Duration) {
	status := map[bool]string{true: "True", false: "False"}[ready]
	r.set(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"creationTimestamp":%q,"annotations":{"machine.openshift.io/machine":"openshift-machine-api/%[1]s"}},"status":{"nodeInfo":{"bootID":"b-%[1]s"},"conditions":[{"type":"Ready","status":%[3]q,"lastTransitionTime":%[2]q}]}}`, name, r.at(age), status))
}

// How long before the time of the recording the update began, and its parts ended.
const (
	began     = 220 * time.Minute
	completed = 160 * time.Minute
	rebooted  = 110 * time.Minute
	updated   = 100 * time.Minute
)

// update brings a recorded cluster to the next release: its operators, then its nodes. Each pod is made again.
func (r *recording) update() {
	version := r.get("ClusterVersion", "", "version")
	history, _, _ := unstructured.NestedSlice(version.Object, "status", "history")
	last, _ := history[0].(map[string]any)
	from := fmt.Sprint(last["version"])
	const to = "4.30.0"
	image := "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("c", 64)
	entry := map[string]any{
		"state": "Completed", "version": to, "image": image, "startedTime": r.at(began), "completionTime": r.at(completed),
		"verified": true,
	}
	r.put(version, "status.history", append([]any{entry}, history...))
	r.put(version, "status.desired", map[string]any{"version": to, "image": image})
	for _, each := range r.all("ClusterOperator") {
		versions, _, _ := unstructured.NestedSlice(each.Object, "status", "versions")
		for _, operand := range versions {
			if reported, ok := operand.(map[string]any); ok && reported["version"] == from {
				reported["version"] = to
			}
		}
		r.put(each, "status.versions", versions)
		r.conditions(each, func(condition map[string]any) {
			if condition["type"] == "Progressing" && condition["status"] == "False" {
				condition["lastTransitionTime"] = r.at(completed + time.Minute)
			}
		})
	}
	for _, each := range r.all("MachineConfigPool") {
		for _, path := range []string{"spec.configuration.name", "status.configuration.name"} {
			r.put(each, path, "rendered-"+each.GetName()+"-2")
		}
		nodes, _, _ := unstructured.NestedInt64(each.Object, "status", "machineCount")
		for _, field := range []string{"updatedMachineCount", "readyMachineCount"} {
			r.put(each, "status."+field, nodes)
		}
		r.condition(each, "Updated", "True", updated)
		r.condition(each, "Updating", "False", updated)
	}
	r.reboot()
	for _, each := range r.all("Deployment") {
		if strings.HasPrefix(each.GetNamespace(), "openshift-") {
			r.rollOut(each, completed)
		}
	}
	for _, each := range r.all("DaemonSet") {
		if strings.HasPrefix(each.GetNamespace(), "openshift-") {
			r.put(each, "metadata.generation", each.GetGeneration()+1)
			r.annotate(each, "deprecated.daemonset.template.generation", strconv.FormatInt(each.GetGeneration(), 10))
		}
	}
}

// reboot reboots all nodes, and has the pods of workloads that are on them made again.
func (r *recording) reboot() {
	for _, each := range r.all("Node") {
		r.put(each, "status.nodeInfo.bootID", "boot-2-"+each.GetName())
		r.put(each, "status.nodeInfo.kubeletVersion", "v1.43.0")
		for _, key := range []string{"currentConfig", "desiredConfig"} {
			if each.GetAnnotations()["machineconfiguration.openshift.io/"+key] != "" {
				r.annotate(each, "machineconfiguration.openshift.io/"+key, "rendered-2")
			}
		}
		r.conditions(each, func(condition map[string]any) {
			if condition["type"] == "Ready" && condition["status"] == "True" {
				condition["lastTransitionTime"] = r.at(rebooted)
			}
		})
	}
	for _, each := range r.all("Pod") {
		owners := each.GetOwnerReferences()
		switch {
		case len(owners) == 0:
		case owners[0].Kind == "Node":
			r.restart(each, rebooted)
		case owners[0].Kind == "DaemonSet":
			r.rename(each, owners[0].Name+"-"+r.suffix(), rebooted)
		case owners[0].Kind == "ReplicaSet":
			r.rename(each, owners[0].Name+"-"+r.suffix(), rebooted)
		case owners[0].Kind == "StatefulSet":
			r.rename(each, each.GetName(), rebooted)
		}
	}
}
