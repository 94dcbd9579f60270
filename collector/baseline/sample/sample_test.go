package sample_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/test/apiserver"
)

// now is when the samples are taken.
func now() time.Time { return time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) }

// version is the ClusterVersion of a cluster that has completed its last update.
const version = `{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: 6ba7b810-9dad-41d1-80b4-00c04fd430c8},
  status: {desired: {version: 4.19.3, image: quay.io/release@sha256:0123}, history: [{state: Completed, version: 4.19.3}]}}`

// start starts a server with objects, YAML that "---" separates. It has a ClusterVersion in any case.
func start(tb testing.TB, objects string) *apiserver.Server {
	tb.Helper()
	if !strings.Contains(objects, "kind: ClusterVersion,") {
		objects += "\n---\n" + version
	}
	server := apiserver.Start(tb)
	for text := range strings.SplitSeq(objects, "---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			tb.Fatalf("%v: %s", err, text)
		}
		server.Add(tb, object)
	}
	return server
}

func take(tb testing.TB, server *apiserver.Server, client *monitoring.Client) baseline.State {
	tb.Helper()
	api, err := cluster.Connect(server.Config(), "test")
	if err != nil {
		tb.Fatal(err)
	}
	state, err := sample.Take(tb.Context(), snapshot.Of(api), nil, client, now())
	if err != nil {
		tb.Fatal(err)
	}
	return state
}

// alerting is a client of a monitoring with these alerts, a JSON list.
func alerting(tb testing.TB, alerts string) *monitoring.Client {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"status":"success","data":{"alerts":%s}}`, alerts)
	}))
	tb.Cleanup(server.Close)
	return monitoring.New(func(context.Context) (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil },
		monitoring.DefaultTimeout)
}

// problems are all problems, each on a line: KEY REASON [TIME] [on NODE]: MESSAGE.
func problems(state baseline.State) []string {
	lines := []string{}
	for _, key := range state.Keys() {
		for _, each := range state.Objects[key].Problems {
			line := key.String() + " " + each.Reason
			if !each.Since.IsZero() {
				line += " " + each.Since.Format(time.RFC3339)
			}
			if each.Node != "" {
				line += " on " + each.Node
			}
			lines = append(lines, line+": "+each.Message)
		}
	}
	return lines
}

// row is one state of a cluster: what is wrong with it, and what is there.
type row struct {
	reason  string
	objects string
	// want are the problems, by lines.
	want []string
	// has is an object that is there; empty for that of the first problem.
	has string
}

func (r row) test(t *testing.T) {
	t.Helper()
	state := take(t, start(t, r.objects), alerting(t, "[]"))
	if diff := gocmp.Diff(append([]string{}, r.want...), problems(state)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", r.reason, diff)
	}
	if len(state.Unread) > 0 {
		t.Errorf("%s: not read: %v", r.reason, state.Unread)
	}
	if !slices.ContainsFunc(state.Keys(), func(key baseline.Key) bool { return r.has == "" || key.String() == r.has }) {
		t.Errorf("%s: %s is not there, but %v", r.reason, r.has, state.Keys())
	}
	packed, err := state.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := baseline.Unpack(packed); err != nil {
		t.Error(err)
	}
}

// condition is a condition since 11:00.
func condition(kind, status, text string) string {
	return fmt.Sprintf(`{type: %s, status: %q, %s, lastTransitionTime: "2026-11-25T11:00:00Z"}`, kind, status,
		cmp.Or(text, "reason: AsExpected"))
}

// What the release, its operators and its machines report.
func TestRelease(t *testing.T) {
	versionWith := func(conditions string) string {
		return strings.Replace(version, "desired:", "conditions: ["+conditions+"], desired:", 1)
	}
	operator := func(name, status string) string {
		return fmt.Sprintf(`{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: %s}, status: {%s}}`, name, status)
	}
	available := condition("Available", "True", "")
	pool := func(spec, status string) string {
		return fmt.Sprintf(
			`{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: worker}, spec: {%s}, status: {%s}}`, spec,
			status)
	}
	node := func(metadata, spec, conditions string) string {
		return fmt.Sprintf(
			`{apiVersion: v1, kind: Node, metadata: {name: w1, annotations: {%s}}, spec: {%s}, status: {conditions: [%s], nodeInfo: {bootID: b1}}}`,
			metadata, spec, conditions)
	}
	const mco = "machineconfiguration.openshift.io/"
	ready := condition("Ready", "True", "")
	request := func(status string) string {
		return fmt.Sprintf(
			`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr-x, creationTimestamp: "2026-11-25T11:30:00Z"},
  spec: {username: "system:node:w1", signerName: kubernetes.io/kubelet-serving}, status: {%s}}`, status)
	}
	for name, tc := range map[string]row{
		"Failing": {
			reason: "CVO cannot reconcile the release", objects: versionWith(condition("Failing", "True", "reason: Cause, message: text")),
			want: []string{"ClusterVersion version Failing 2026-11-25T11:00:00Z: Cause: text"},
		},
		"Invalid": {
			reason: "CVO cannot use its spec", objects: versionWith(condition("Invalid", "True", "")),
			want: []string{"ClusterVersion version Invalid 2026-11-25T11:00:00Z: AsExpected"},
		},
		"Capabilities": {
			reason:  "the update has enabled what was disabled",
			objects: versionWith(condition("ImplicitlyEnabledCapabilities", "True", "message: Console")),
			want:    []string{"ClusterVersion version ImplicitlyEnabledCapabilities 2026-11-25T11:00:00Z: Console"},
		},
		"NotFailing": {
			reason:  "these are good",
			objects: versionWith(condition("Failing", "False", "") + "," + condition("Available", "True", "")), has: "ClusterVersion version",
		},
		"Operator": {reason: "it works", objects: operator("etcd", "conditions: ["+available+
			"], versions: [{name: operator, version: 4.19.3}, {name: etcd, version: 4.18.0}]"), has: "ClusterOperator etcd"},
		"Unavailable": {
			reason: "it does not work", objects: operator("etcd", "conditions: ["+condition("Available", "False", "reason: NoQuorum")+"]"),
			want: []string{"ClusterOperator etcd Unavailable 2026-11-25T11:00:00Z: NoQuorum"},
		},
		"UnknownOperator": {
			reason: "what is not known is not good", objects: operator("etcd", "conditions: ["+condition("Available", "Unknown", "message: ''")+"]"),
			want: []string{"ClusterOperator etcd Unavailable 2026-11-25T11:00:00Z: Available is Unknown"},
		},
		"SilentOperator": {
			reason: "it has reported nothing", objects: operator("etcd", ""),
			want: []string{"ClusterOperator etcd Unavailable: Available is absent"},
		},
		"DegradedOperator": {
			reason: "it works badly",
			objects: operator("etcd", "conditions: ["+available+","+condition("Degraded", "True", "reason: A, message: b")+","+
				condition("Progressing", "True", "message: c")+"]"),
			want: []string{
				"ClusterOperator etcd Degraded 2026-11-25T11:00:00Z: A: b",
				"ClusterOperator etcd Progressing 2026-11-25T11:00:00Z: c",
			},
		},
		"OutdatedOperator": {
			reason:  "the update has completed without it",
			objects: operator("etcd", "conditions: ["+available+"], versions: [{name: operator, version: 4.18.9}]"),
			want:    []string{"ClusterOperator etcd OutdatedVersion: it has version 4.18.9 instead of 4.19.3"},
		},
		"Updating": {
			reason: "the update has not come to it yet",
			objects: operator("etcd", "conditions: ["+available+"], versions: [{name: operator, version: 4.18.9}]") + "\n---\n" +
				strings.Replace(version, "Completed", "Partial", 1),
			has: "ClusterOperator etcd",
		},
		"OwnOperator": {reason: "the preflight reports its own verdict by it", objects: operator("update-preflight", "")},
		"Pool": {
			reason:  "all nodes are updated",
			objects: pool("paused: false", "machineCount: 2, updatedMachineCount: 2, readyMachineCount: 1"), has: "MachineConfigPool worker",
		},
		"PoolNotUpdated": {
			reason: "a node has the configuration of before", objects: pool("paused: false", "machineCount: 2, updatedMachineCount: 1"),
			want: []string{"MachineConfigPool worker NotUpdated: 1 of 2 nodes updated"},
		},
		"PoolResumed": {
			reason: "it was paused for a day, and its update has begun just now", objects: pool("paused: false",
				"machineCount: 2, updatedMachineCount: 1, conditions: [{type: Updated, status: 'False', lastTransitionTime: "+
					"'2026-11-24T11:50:00Z'}, {type: Updating, status: 'True', lastTransitionTime: '2026-11-25T11:50:00Z'}]"),
			want: []string{"MachineConfigPool worker NotUpdated 2026-11-25T11:50:00Z: 1 of 2 nodes updated"},
		},
		"PoolPaused": {
			reason: "an administrator has paused it", objects: pool("paused: true", "machineCount: 2, updatedMachineCount: 1"),
			has: "MachineConfigPool worker",
		},
		"PoolDegraded": {
			reason: "a node could not be updated",
			objects: pool("paused: true", "conditions: ["+condition("Degraded", "True", "message: ''")+","+condition("NodeDegraded", "True",
				"message: node w1 reports x")+"]"),
			want: []string{"MachineConfigPool worker Degraded 2026-11-25T11:00:00Z: node w1 reports x"},
		},
		"PoolNotRendered": {
			reason:  "its configuration cannot be made",
			objects: pool("paused: false", "conditions: ["+condition("RenderDegraded", "True", "message: x")+"]"),
			want:    []string{"MachineConfigPool worker Degraded 2026-11-25T11:00:00Z: x"},
		},
		"Machines": {
			reason:  "a machine does not become a node",
			objects: `{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, metadata: {name: a, namespace: openshift-machine-api}, spec: {replicas: 3}, status: {readyReplicas: 2}}`,
			want:    []string{"MachineSet openshift-machine-api/a MachinesNotReady: 2 of 3 machines ready"},
		},
		"NoMachines": {
			reason:  "it is scaled to none",
			objects: `{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, metadata: {name: a, namespace: openshift-machine-api}, spec: {replicas: 0}}`,
			has:     "MachineSet openshift-machine-api/a",
		},
		"Node": {
			reason:  "it works, and is updated",
			objects: node(mco+"currentConfig: a, "+mco+"desiredConfig: a, "+mco+"state: Done", "", ready), has: "Node w1",
		},
		"Cordoned": {
			reason:  "an administrator has cordoned it",
			objects: node(mco+"desiredDrain: uncordon-a, "+mco+"lastAppliedDrain: uncordon-a", "unschedulable: true", ready), has: "Node w1",
		},
		"Drained": {
			reason:  "its drain is complete",
			objects: node(mco+"desiredDrain: drain-a, "+mco+"lastAppliedDrain: drain-a", "unschedulable: true", ready), has: "Node w1",
		},
		"Uncordoning": {
			reason:  "its update has ended, and it was not uncordoned",
			objects: node(mco+"desiredDrain: uncordon-b, "+mco+"lastAppliedDrain: drain-b", "unschedulable: true", ready),
			want:    []string{"Node w1 StaysCordoned: the update requested to uncordon it, but it is still cordoned"},
		},
		"Requested": {
			reason:  "its drain has not begun",
			objects: node(mco+"desiredDrain: drain-b, "+mco+"lastAppliedDrain: uncordon-a", "", ready), has: "Node w1",
		},
		"Draining": {
			reason: "its drain does not end", objects: node(mco+"desiredDrain: drain-b, "+mco+"lastAppliedDrain: uncordon-a", "unschedulable: true",
				ready),
			want: []string{"Node w1 Draining: its drain for an update is not complete"},
		},
		"NotReady": {
			reason: "its kubelet does not respond", objects: node("", "", condition("Ready", "Unknown", "reason: NodeStatusUnknown")),
			want: []string{"Node w1 NotReady 2026-11-25T11:00:00Z: NodeStatusUnknown"},
		},
		"Pressure": {
			reason: "it lacks resources",
			objects: node("", "", ready+","+condition("DiskPressure", "True", "")+","+condition("MemoryPressure", "True", "")+","+
				condition("PIDPressure", "True", "")+","+condition("NetworkUnavailable", "True", "")),
			want: []string{
				"Node w1 DiskPressure 2026-11-25T11:00:00Z: AsExpected", "Node w1 MemoryPressure 2026-11-25T11:00:00Z: AsExpected",
				"Node w1 NetworkUnavailable 2026-11-25T11:00:00Z: AsExpected", "Node w1 PIDPressure 2026-11-25T11:00:00Z: AsExpected",
			},
		},
		"ConfigDegraded": {
			reason: "its configuration cannot be applied", objects: node(mco+"state: Degraded, "+mco+"reason: unexpected on-disk state", "", ready),
			want: []string{"Node w1 ConfigDegraded: Degraded: unexpected on-disk state"},
		},
		"Unreconcilable": {
			reason: "nor can this one", objects: node(mco+"state: Unreconcilable", "", ready),
			want: []string{"Node w1 ConfigDegraded: Unreconcilable"},
		},
		"OutdatedConfig": {
			reason: "it has the configuration of before", objects: node(mco+"currentConfig: a, "+mco+"desiredConfig: b", "", ready),
			want: []string{"Node w1 OutdatedConfig: it has configuration a instead of b"},
		},
		"Request": {
			reason: "it waits for a decision", objects: request(""),
			want: []string{"CertificateSigningRequest csr-x Pending 2026-11-25T11:30:00Z: the request of system:node:w1 for " +
				"kubernetes.io/kubelet-serving is neither approved nor denied"},
		},
		"Approved": {reason: "it was approved", objects: request("conditions: [{type: Approved, status: 'True'}]")},
		"Denied":   {reason: "it was denied", objects: request("conditions: [{type: Denied, status: 'True'}]")},
		"Failed":   {reason: "its signer has answered", objects: request("conditions: [{type: Failed, status: 'True'}]")},
	} {
		t.Run(name, tc.test)
	}
}

// controller is a workload in namespace shop.
func controller(kind, name, annotations, spec, status string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: %s, metadata: {name: %s, namespace: shop, generation: 4, annotations: {%s}}, "+
		"spec: {%s}, status: {%s}}\n---\n", kind, name, annotations, spec, status)
}

// ownedBy is the reference of a controller.
func ownedBy(kind, name string) string {
	group := "apps/v1"
	switch kind {
	case "ReplicationController":
		group = "v1"
	case "DeploymentConfig":
		group = "apps.openshift.io/v1"
	}
	return fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: u, controller: true}]", group, kind, name)
}

// pod is a pod since 10:00.
func pod(name, metadata, spec, status string) string {
	return fmt.Sprintf(
		`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop, creationTimestamp: "2026-11-25T10:00:00Z", labels: {app: web, pod-template-hash: "1"}, %s}, spec: {%s}, status: {%s}}`,
		name, metadata, spec, status) + "\n---\n"
}

func waiting(reason string) string {
	return fmt.Sprintf("containerStatuses: [{name: c, restartCount: 0, state: {waiting: {reason: %s}}}]", reason)
}

// What workloads report.
func TestWorkloads(t *testing.T) {
	const good = "replicas: 3, readyReplicas: 3, updatedReplicas: 3"
	for name, tc := range map[string]row{
		"Deployment": {reason: "it has all pods", objects: controller("Deployment", "web", "", "replicas: 3", good), has: "Deployment shop/web"},
		"Unavailable": {
			reason: "pods are missing",
			objects: controller("Deployment", "web", "", "replicas: 3",
				"readyReplicas: 1, updatedReplicas: 3, conditions: ["+condition("Available", "False", "")+"]"),
			want: []string{"Deployment shop/web Unavailable 2026-11-25T11:00:00Z: 1 of 3 pods are ready"},
		},
		"Lacking": {
			reason: "a pod is missing, and the others are sufficient",
			objects: controller("Deployment", "web", "", "replicas: 3",
				"readyReplicas: 2, updatedReplicas: 3, conditions: ["+condition("Available", "True", "")+"]"),
			want: []string{"Deployment shop/web Unavailable: 2 of 3 pods are ready"},
		},
		"DefaultReplicas": {reason: "it has one pod by default", objects: controller("Deployment", "web", "", "", ""), want: []string{
			"Deployment shop/web RolloutIncomplete: 0 of 1 pods have its current revision",
			"Deployment shop/web Unavailable: 0 of 1 pods are ready",
		}},
		"ScaledToNone": {reason: "it should have no pods", objects: controller("Deployment", "web", "", "replicas: 0",
			"conditions: ["+condition("ReplicaFailure", "True", "")+"]"), has: "Deployment shop/web"},
		"FailedCreate": {
			reason: "a quota or a security context forbids its pods",
			objects: controller("Deployment", "web", "", "replicas: 3",
				good+", conditions: ["+condition("ReplicaFailure", "True", "reason: FailedCreate, message: forbidden")+"]"),
			want: []string{"Deployment shop/web FailedCreate 2026-11-25T11:00:00Z: FailedCreate: forbidden"},
		},
		"Deadline": {
			reason: "its rollout takes too long",
			objects: controller("Deployment", "web", "", "replicas: 3",
				good+", conditions: ["+condition("Progressing", "False", "reason: ProgressDeadlineExceeded")+"]"),
			want: []string{"Deployment shop/web ProgressDeadlineExceeded 2026-11-25T11:00:00Z: ProgressDeadlineExceeded"},
		},
		"Rollout": {
			reason:  "pods are of the revision of before",
			objects: controller("Deployment", "web", "", "replicas: 3", "readyReplicas: 3, updatedReplicas: 1"),
			want:    []string{"Deployment shop/web RolloutIncomplete: 1 of 3 pods have its current revision"},
		},
		"PausedRollout": {
			reason:  "its rollout is paused by choice",
			objects: controller("Deployment", "web", "", "replicas: 3, paused: true", "readyReplicas: 3"), has: "Deployment shop/web",
		},
		"StatefulSet": {
			reason:  "it has all pods",
			objects: controller("StatefulSet", "db", "", "replicas: 3, updateStrategy: {type: RollingUpdate}", good), has: "StatefulSet shop/db",
		},
		"StatefulSetUnavailable": {
			reason: "pods are missing", objects: controller("StatefulSet", "db", "", "replicas: 3", "readyReplicas: 2"),
			want: []string{"StatefulSet shop/db Unavailable: 2 of 3 pods are ready"},
		},
		"StatefulSetRollout": {
			reason: "pods are of the revision of before", objects: controller("StatefulSet", "db", "",
				"replicas: 3, updateStrategy: {type: RollingUpdate}", "readyReplicas: 3, updatedReplicas: 2"),
			want: []string{"StatefulSet shop/db RolloutIncomplete: 2 of 3 pods have its current revision"},
		},
		"Partition": {
			reason: "a part of its pods is updated by choice",
			objects: controller("StatefulSet", "db", "", "replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}",
				"readyReplicas: 3, updatedReplicas: 1"),
			has: "StatefulSet shop/db",
		},
		"DaemonSet": {
			reason: "a node has no pod of it, and another one that of before",
			objects: controller("DaemonSet", "log", "", "updateStrategy: {type: RollingUpdate}",
				"desiredNumberScheduled: 3, numberReady: 2, updatedNumberScheduled: 1"),
			want: []string{
				"DaemonSet shop/log RolloutIncomplete: 1 of 3 pods have its current revision",
				"DaemonSet shop/log Unavailable: 2 of 3 pods are ready",
			},
		},
		"OnDelete": {
			reason: "its pods are updated by who deletes them",
			objects: controller("DaemonSet", "log", "", "updateStrategy: {type: OnDelete}",
				"desiredNumberScheduled: 3, numberReady: 3, updatedNumberScheduled: 1"), has: "DaemonSet shop/log",
		},
		"Config": {
			reason: "a DeploymentConfig has its name in each revision",
			objects: "{apiVersion: v1, kind: ReplicationController, metadata: {name: web-2, namespace: shop, " + ownedBy("DeploymentConfig", "web") +
				"}, spec: {replicas: 2}, status: {readyReplicas: 1}}",
			want: []string{"ReplicationController shop/web Unavailable: 1 of 2 pods are ready"},
		},
		"EarlierRevision": {
			reason:  "it should have no pods",
			objects: "{apiVersion: v1, kind: ReplicationController, metadata: {name: web-1, namespace: shop}, spec: {replicas: 0}}",
		},
	} {
		t.Run(name, tc.test)
	}
}

// What pods report, for their workload.
func TestPods(t *testing.T) {
	web := controller("Deployment", "web", "", "replicas: 1", "readyReplicas: 1, updatedReplicas: 1")
	of := ownedBy("ReplicaSet", "web-1")
	const scheduled, pending = "nodeName: w1", "phase: Pending, "
	restarted := func(count int, finished string) string {
		return fmt.Sprintf("phase: Running, startTime: '2026-11-25T10:05:00Z', containerStatuses: [{restartCount: %d, lastState: "+
			"{terminated: {finishedAt: '%s'}}, state: {running: {}}}]", count, finished)
	}
	for name, tc := range map[string]row{
		"CrashLoop": {
			reason: "its program ends again and again, so the pod does not state since when it is bad",
			objects: web + pod("a", of, scheduled, "phase: Running, containerStatuses: [{restartCount: 2, state: {waiting: {reason: "+
				"CrashLoopBackOff, message: m}}}]") +
				pod("b", of, "nodeName: w2", "phase: Running, containerStatuses: [{restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}}]"),
			want: []string{"Deployment shop/web CrashLoopBackOff: 2 pods have a container that waits: CrashLoopBackOff, such as pod a"},
		},
		"InitCrashLoop": {
			reason: "its init container ends, for which the others wait",
			objects: web + pod("a", of, scheduled, pending+
				"initContainerStatuses: [{restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}}], "+waiting("PodInitializing")),
			want: []string{"Deployment shop/web CrashLoopBackOff on w1: pod a has a container that waits: CrashLoopBackOff"},
		},
		"Image": {
			reason: "its image cannot be pulled, in each of the states", objects: web + pod("a", of, scheduled,
				pending+waiting("ErrImagePull")) + pod("b", of, scheduled, pending+waiting("ImagePullBackOff")) + pod("c", of, scheduled,
				pending+waiting("InvalidImageName")),
			want: []string{"Deployment shop/web ImagePullBackOff 2026-11-25T10:00:00Z on w1: 3 pods have a container that waits: " +
				"ImagePullBackOff, such as pod a"},
		},
		"Container": {
			reason: "its container cannot be made", objects: web + pod("a", of, scheduled, pending+waiting("CreateContainerConfigError")),
			want: []string{"Deployment shop/web CreateContainerError 2026-11-25T10:00:00Z on w1: pod a has a container that waits: " +
				"CreateContainerError"},
		},
		"RunContainer": {
			reason: "its container cannot be started", objects: web + pod("a", of, scheduled, pending+waiting("RunContainerError")),
			want: []string{"Deployment shop/web CreateContainerError 2026-11-25T10:00:00Z on w1: pod a has a container that waits: " +
				"CreateContainerError"},
		},
		"Creating": {
			reason: "its volumes are not mounted", objects: web + pod("a", of, scheduled, pending+waiting("ContainerCreating")),
			want: []string{"Deployment shop/web ContainerCreating 2026-11-25T10:00:00Z on w1: pod a has a node, " +
				"and containers that have not started"},
		},
		"Unschedulable": {
			reason: "no node is suitable", objects: web + pod("a", of, "",
				pending+"conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]"),
			want: []string{"Deployment shop/web Unschedulable 2026-11-25T10:00:00Z: pod a is not scheduled to a node"},
		},
		"Restarting": {
			reason: "it runs now, and does not run for long", objects: web + pod("a", of, scheduled, restarted(3, "2026-11-25T11:50:00Z")),
			want: []string{"Deployment shop/web Restarting 2026-11-25T10:05:00Z on w1: pod a has a container with 3 restarts or more, the " +
				"last one within 15 minutes"},
		},
		"StatefulSet": {
			reason: "a pod of a StatefulSet is one of it",
			objects: controller("StatefulSet", "db", "", "replicas: 1", "readyReplicas: 1") + pod("a", ownedBy("StatefulSet", "db"), scheduled,
				pending+waiting("ErrImagePull")),
			want: []string{"StatefulSet shop/db ImagePullBackOff 2026-11-25T10:00:00Z on w1: pod a has a container that waits: ImagePullBackOff"},
		},
		"DaemonSet": {
			reason:  "and that of a DaemonSet",
			objects: controller("DaemonSet", "log", "", "", "") + pod("a", ownedBy("DaemonSet", "log"), scheduled, pending+waiting("ErrImagePull")),
			want:    []string{"DaemonSet shop/log ImagePullBackOff 2026-11-25T10:00:00Z on w1: pod a has a container that waits: ImagePullBackOff"},
		},
		"Config": {
			reason: "and that of a DeploymentConfig",
			objects: "{apiVersion: v1, kind: ReplicationController, metadata: {name: web-2, namespace: shop, " + ownedBy("DeploymentConfig", "web") +
				"}, spec: {replicas: 1}, status: {readyReplicas: 1}}\n---\n" +
				pod("a", ownedBy("ReplicationController", "web-2"), scheduled, pending+waiting("ErrImagePull")),
			want: []string{"ReplicationController shop/web ImagePullBackOff 2026-11-25T10:00:00Z on w1: pod a has a container that waits: " +
				"ImagePullBackOff"},
		},
		"Deleted": {reason: "it is being deleted", objects: web + pod("a", of+", deletionTimestamp: '2026-11-25T11:00:00Z'", scheduled,
			pending+waiting("ErrImagePull")), has: "Deployment shop/web"},
		"Ended": {
			reason:  "it was evicted, and another one has replaced it",
			objects: web + pod("a", of, scheduled, "phase: Failed, "+waiting("CrashLoopBackOff")), has: "Deployment shop/web",
		},
		"Alone": {
			reason: "no workload is responsible for it", objects: web + pod("a", "", scheduled, pending+waiting("ErrImagePull")),
			has: "Deployment shop/web",
		},
		"Gated": {reason: "it is not to be scheduled yet", objects: web + pod("a", of, "",
			pending+"conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]"), has: "Deployment shop/web"},
		"New": {reason: "the scheduler has not seen it yet", objects: web + pod("a", of, "", "phase: Pending"), has: "Deployment shop/web"},
		"Rebooted": {
			reason:  "the reboot of its node has restarted it",
			objects: web + pod("a", of, scheduled, restarted(1, "2026-11-25T11:50:00Z")), has: "Deployment shop/web",
		},
		"Repeatedly": {
			reason: "it has restarted three times in a month, the last time just now, and they are no series",
			objects: controller("DaemonSet", "log", "", "", "") + pod("a", ownedBy("DaemonSet", "log"), scheduled,
				strings.Replace(restarted(3, "2026-11-25T11:50:00Z"), "2026-11-25T10:05:00Z", "2026-10-25T10:05:00Z", 1)),
			want: []string{"DaemonSet shop/log Restarting on w1: pod a has a container with 3 restarts or more, the last one within 15 minutes"},
		},
		"Stabilized": {
			reason: "it restarted at first", objects: web + pod("a", of, scheduled, restarted(9, "2026-11-25T11:40:00Z")),
			has: "Deployment shop/web",
		},
		"OtherGroup": {
			reason: "another API has a kind of this name, and its object is judged by its pods alone",
			objects: controller("StatefulSet", "db", "", "replicas: 1", "readyReplicas: 1") + pod("a",
				strings.Replace(ownedBy("StatefulSet", "db"), "apps/v1", "apps.kruise.io/v1", 1), scheduled, pending+waiting("ErrImagePull")),
			want: []string{
				"StatefulSet shop/db ImagePullBackOff 2026-11-25T10:00:00Z on w1: pod a has a container that waits: ImagePullBackOff",
				"StatefulSet shop/db PartsNotReady: 0 of 1 pod ready",
			},
		},
		"OtherParent": {
			reason:  "its ReplicaSet is of no Deployment, and is judged by its pods alone",
			objects: web + pod("a", of+", labels: {app: web}", scheduled, pending+waiting("ErrImagePull")),
			want: []string{
				"ReplicaSet shop/web-1 ImagePullBackOff 2026-11-25T10:00:00Z on w1: pod a has a container that waits: ImagePullBackOff",
				"ReplicaSet shop/web-1 PartsNotReady: 0 of 1 pod ready",
			},
		},
	} {
		t.Run(name, tc.test)
	}
}

// What serves requests, and storage.
func TestServing(t *testing.T) {
	service := func(spec string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {%s}}\n---\n", spec)
	}
	slice := func(name, family, ready string) string {
		return fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: %s, namespace: shop, labels: "+
			"{kubernetes.io/service-name: web}}, addressType: %s, ports: [{name: '', port: 80}], endpoints: [{conditions: {ready: %s}}]}\n---\n",
			name, family, ready)
	}
	running := pod("a", "", "nodeName: w1", "phase: Running")
	const selecting = "selector: {app: web}, ports: [{port: 443}]"
	route := func(ingress string) string {
		return fmt.Sprintf("{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: web, namespace: shop}, status: {ingress: [%s]}}",
			ingress)
	}
	ingress := func(conditions string) string {
		return fmt.Sprintf("{apiVersion: operator.openshift.io/v1, kind: IngressController, metadata: {name: default, namespace: "+
			"openshift-ingress-operator}, status: {conditions: [%s]}}", conditions)
	}
	api := func(conditions string) string {
		return fmt.Sprintf("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.apps}, status: {conditions: [%s]}}",
			conditions)
	}
	webhook := func(kind, client string) string {
		return fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: %s, metadata: {name: policy}, webhooks: [{name: a.b.c, "+
			"clientConfig: {%s}}]}\n---\n", kind, client)
	}
	claim := func(class, phase string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, creationTimestamp: "+
			"'2026-11-25T10:00:00Z'}, spec: {%s, volumeName: pv-1}, status: {phase: %s}}\n---\n", class, phase)
	}
	class := func(mode string) string {
		return fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: gold}, volumeBindingMode: %s}\n---\n", mode)
	}
	attachment := func(status string) string {
		return fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: csi-0123}, spec: {nodeName: w1, "+
			"source: {persistentVolumeName: pv-1}}, status: {%s}}", status)
	}
	for name, tc := range map[string]row{
		"Service": {reason: "a pod is ready", objects: service(selecting) + slice("web-1", "IPv4", "true") + running, has: "Service shop/web"},
		"NoEndpoints": {
			reason: "none of its pods is ready", objects: service(selecting) + slice("web-1", "IPv4", "false") + running,
			want: []string{"Service shop/web NoReadyEndpoints: none of its endpoints is ready"},
		},
		"NoPods": {
			reason: "its workload may be scaled to none", objects: service(selecting) + slice("web-1", "IPv4", "false"),
			want: []string{"Service shop/web NoEndpoints: it selects no pod"},
		},
		"ExternalName": {
			reason: "it has a name in place of endpoints", objects: service("type: ExternalName, "+selecting) + running,
			has: "Service shop/web",
		},
		"NoSelector": {
			reason: "another process makes its endpoints", objects: service("ports: [{port: 80}]") + running,
			has: "Service shop/web",
		},
		"Route": {
			reason: "a router admits it", objects: route("{routerName: default, conditions: [" + condition("Admitted", "True", "") + "]}"),
			has: "Route shop/web",
		},
		"NotAdmitted": {
			reason: "one of its routers does not",
			objects: route("{routerName: default, conditions: [" + condition("Admitted", "True", "") + "]}, {routerName: shard, conditions: [" +
				condition("Admitted", "False", "reason: HostAlreadyClaimed") + "]}"),
			want: []string{"Route shop/web NotAdmitted 2026-11-25T11:00:00Z: router shard has not admitted it: HostAlreadyClaimed"},
		},
		"NoRouter": {
			reason: "no router has seen it", objects: route(""),
			want: []string{"Route shop/web NotAdmitted: no router has admitted it"},
		},
		"Ingress": {reason: "it works", objects: ingress(condition("Available", "True", "") + "," + condition("CanaryChecksSucceeding", "True",
			"")), has: "IngressController openshift-ingress-operator/default"},
		"IngressFails": {
			reason: "it does not",
			objects: ingress(condition("Available", "False", "") + "," + condition("Degraded", "True", "") + "," +
				condition("CanaryChecksSucceeding", "False", "message: canary")),
			want: []string{
				"IngressController openshift-ingress-operator/default CanaryChecksFailing 2026-11-25T11:00:00Z: canary",
				"IngressController openshift-ingress-operator/default Degraded 2026-11-25T11:00:00Z: AsExpected",
				"IngressController openshift-ingress-operator/default Unavailable 2026-11-25T11:00:00Z: AsExpected",
			},
		},
		"API": {reason: "its server responds", objects: api(condition("Available", "True", "")), has: "APIService v1.apps"},
		"APIFails": {
			reason: "its server does not", objects: api(condition("Available", "False", "reason: FailedDiscoveryCheck")),
			want: []string{"APIService v1.apps Unavailable 2026-11-25T11:00:00Z: FailedDiscoveryCheck"},
		},
		"APISilent": {reason: "nothing is known of it", objects: api(""), want: []string{"APIService v1.apps Unavailable: Available is absent"}},
		"Definition": {
			reason: "presence alone counts", objects: "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: " +
				"{name: a.b.c}}", has: "CustomResourceDefinition a.b.c",
		},
		"Webhook": {
			reason: "its Service has a ready endpoint", objects: webhook("ValidatingWebhookConfiguration",
				"caBundle: Zm9v, service: {namespace: shop, name: web}") + service("ports: [{port: 443}]") + slice("web-1", "IPv4", "true"),
			has: "ValidatingWebhookConfiguration policy",
		},
		"WebhookEmpty": {
			reason: "its Service has none", objects: webhook("ValidatingWebhookConfiguration",
				"caBundle: Zm9v, service: {namespace: shop, name: web}") + service("ports: [{port: 443}]"),
			want: []string{"ValidatingWebhookConfiguration policy NoEndpoints: its Service shop/web has no ready endpoint"},
		},
		"WebhookMissing": {
			reason: "its Service was deleted", objects: webhook("MutatingWebhookConfiguration",
				"caBundle: Zm9v, service: {namespace: shop, name: web}"),
			want: []string{"MutatingWebhookConfiguration policy NoReadyEndpoints: its Service shop/web does not exist"},
		},
		"WebhookPort": {
			reason: "its Service has another port", objects: webhook("MutatingWebhookConfiguration",
				"caBundle: Zm9v, service: {namespace: shop, name: web, port: 8443}") + service("ports: [{port: 443}]"),
			want: []string{"MutatingWebhookConfiguration policy NoReadyEndpoints: its Service shop/web has no port 8443"},
		},
		"NoCABundle": {
			reason: "nothing has injected the certificates of its Service", objects: webhook("ValidatingWebhookConfiguration",
				"service: {namespace: shop, name: web}") + service("ports: [{port: 443}]") + slice("web-1", "IPv4", "true"),
			want: []string{"ValidatingWebhookConfiguration policy NoCABundle: a webhook with Service shop/web has no CA certificates to verify it"},
		},
		"WebhookURL": {
			reason: "it is not in the cluster", objects: webhook("MutatingWebhookConfiguration", "url: 'https://example.com'"),
			has: "MutatingWebhookConfiguration policy",
		},
		"Claim": {reason: "it has a volume", objects: claim("storageClassName: gold", "Bound"), has: "PersistentVolumeClaim shop/data"},
		"ClaimWaits": {
			reason: "it waits for its first pod", objects: claim("storageClassName: gold", "Pending") + class("WaitForFirstConsumer"),
			has: "PersistentVolumeClaim shop/data",
		},
		"NotBound": {
			reason: "no volume is made for it", objects: claim("storageClassName: gold", "Pending") + class("Immediate"),
			want: []string{"PersistentVolumeClaim shop/data NotBound 2026-11-25T10:00:00Z: it is not bound, and has StorageClass gold"},
		},
		"NoClass": {
			reason: "its StorageClass was deleted", objects: claim("storageClassName: gold", "Pending"),
			want: []string{"PersistentVolumeClaim shop/data NotBound 2026-11-25T10:00:00Z: it is not bound, and has StorageClass gold"},
		},
		"Lost": {
			reason: "its volume was deleted", objects: claim("storageClassName: gold", "Lost") + class("WaitForFirstConsumer"),
			want: []string{"PersistentVolumeClaim shop/data Lost: its PersistentVolume pv-1 does not exist"},
		},
		"Class": {reason: "presence alone counts", objects: class("Immediate"), has: "StorageClass gold"},
		"Driver": {
			reason:  "presence alone counts",
			objects: "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: ebs.csi.aws.com}}", has: "CSIDriver ebs.csi.aws.com",
		},
		"AttachFailed": {
			reason:  "the driver cannot attach it to a node",
			objects: attachment("attached: false, attachError: {time: '2026-11-25T11:00:00Z', message: x}"),
			want:    []string{"VolumeAttachment pv-1 AttachFailed 2026-11-25T11:00:00Z on w1: x"},
		},
		"Detached": {
			reason: "it is being deleted",
			objects: strings.Replace(attachment("attached: false, attachError: {time: '2026-11-25T11:00:00Z', message: x}"), "name: csi-0123",
				"name: csi-0123, deletionTimestamp: '2026-11-25T11:00:00Z'", 1),
		},
		"Attached": {reason: "it is attached", objects: attachment("attached: true")},
	} {
		t.Run(name, tc.test)
	}
}

// What operators of OLM and the network report.
func TestOperators(t *testing.T) {
	operator := func(name, metadata, status string) string {
		return fmt.Sprintf("{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: %s, namespace: "+
			"shop, %s}, status: {%s}}\n---\n", name, metadata, status)
	}
	subscription := func(status string) string {
		return fmt.Sprintf("{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: etcd, namespace: shop}, "+
			"status: {%s}}", status)
	}
	egress := func(spec, items string) string {
		return fmt.Sprintf("{apiVersion: k8s.ovn.org/v1, kind: EgressIP, metadata: {name: shop}, spec: {egressIPs: [%s]}, status: {items: [%s]}}",
			spec, items)
	}
	firewall := func(status string) string {
		return fmt.Sprintf("{apiVersion: k8s.ovn.org/v1, kind: EgressFirewall, metadata: {name: default, namespace: shop}, status: "+
			"{status: '%s'}}", status)
	}
	rows := map[string]row{
		"Operator": {reason: "it runs", objects: operator("etcd.v0.9.4", "", "phase: Succeeded"), has: "ClusterServiceVersion shop/etcd"},
		"NoPrefix": {
			reason: "the version has no v", objects: operator("elasticsearch-operator.4.6.0-2021", "", "phase: Succeeded"),
			has: "ClusterServiceVersion shop/elasticsearch-operator",
		},
		"Labelled": {
			reason: "OLM has named it", objects: operator("etcdoperator.v0.9.4",
				"labels: {operators.coreos.com/etcd.shop: '', operators.coreos.com/a.other: ''}", "phase: Succeeded"),
			has: "ClusterServiceVersion shop/etcd",
		},
		"Failed": {
			reason: "its installation has failed", objects: operator("etcd.v1", "", "phase: Failed, reason: InstallCheckFailed, message: x"),
			want: []string{"ClusterServiceVersion shop/etcd NotSucceeded: its phase is Failed: InstallCheckFailed: x"},
		},
		"Replacing": {
			reason:  "the state of the operator is that of the version that replaces the other",
			objects: operator("etcd.v1", "", "phase: Replacing") + operator("etcd.v2", "", "phase: Installing"),
			want:    []string{"ClusterServiceVersion shop/etcd NotSucceeded: its phase is Installing"},
		},
		"Copy": {
			reason:  "the original is judged",
			objects: operator("etcd.v1", "annotations: {olm.operatorNamespace: other}", "phase: Failed"),
		},
		"Updated": {reason: "nothing is to be done", objects: subscription("state: AtLatestKnown, conditions: [" +
			condition("CatalogSourcesUnhealthy", "False", "") + "]"), has: "Subscription shop/etcd"},
		"NotUpdate": {
			reason: "the update of an operator has failed", objects: subscription("state: UpgradeFailed"),
			want: []string{"Subscription shop/etcd UpgradeFailed: the update of the operator has failed"},
		},
		"Egress": {reason: "each address is assigned, in any spelling", objects: egress("'10.0.0.1', '2001:db8:0::1'",
			"{egressIP: '2001:db8::1', node: w1}, {egressIP: 10.0.0.1, node: w1}"), has: "EgressIP shop"},
		"EgressFails": {
			reason: "an address is assigned to no node", objects: egress("'10.0.0.1', '10.0.0.2'", "{egressIP: 10.0.0.1, node: w1}"),
			want: []string{"EgressIP shop NotAssigned: 10.0.0.2 is assigned to no node"},
		},
		"Firewall":    {reason: "it works", objects: firewall("EgressFirewall Rules applied"), has: "EgressFirewall shop/default"},
		"NewFirewall": {reason: "nothing is known of it", objects: firewall(""), has: "EgressFirewall shop/default"},
		"FirewallFails": {
			reason: "it does not", objects: firewall("EgressFirewall Rules not correctly added"),
			want: []string{"EgressFirewall shop/default NotApplied: EgressFirewall Rules not correctly added"},
		},
	}
	for _, kind := range []string{
		"ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed", "InstallPlanMissing",
		"CatalogSourcesUnhealthy",
	} {
		rows[kind] = row{
			reason: "OLM cannot update the operator", objects: subscription("conditions: [" + condition(kind, "True", "message: x") + "]"),
			want: []string{"Subscription shop/etcd " + kind + " 2026-11-25T11:00:00Z: x"},
		}
	}
	for name, tc := range rows {
		t.Run(name, tc.test)
	}
}

// Which alerts count, and since when.
func TestAlerts(t *testing.T) {
	alert := func(labels, state string) string {
		return fmt.Sprintf(
			`{"labels":{%s},"annotations":{"summary":"The disk is full."},"state":%q,"activeAt":"2026-11-25T11:00:00Z","value":"1"}`, labels, state)
	}
	earlier := func(of string) string { return strings.Replace(of, "11:00", "10:00", 1) }
	const disk = `"alertname":"Disk","severity":"warning","namespace":"shop"`
	for name, tc := range map[string]struct {
		reason, alerts string
		want           []string
	}{
		"Firing": {reason: "the instances of an alert are one object", alerts: alert(disk+`,"pod":"a"`, "firing") + "," +
			earlier(alert(disk+`,"pod":"b"`, "firing")) + "," + alert(disk+`,"pod":"c"`, "firing"), want: []string{
			"Alert shop/Disk/warning Firing 2026-11-25T10:00:00Z: The disk is full.",
		}},
		"Critical": {
			reason: "another severity is another alert",
			alerts: alert(disk, "firing") + "," + alert(`"alertname":"Disk","severity":"critical"`, "firing"), want: []string{
				"Alert Disk/critical Firing 2026-11-25T11:00:00Z: The disk is full.",
				"Alert shop/Disk/warning Firing 2026-11-25T11:00:00Z: The disk is full.",
			},
		},
		"Pending": {reason: "it may never fire", alerts: alert(disk, "pending")},
		"Info": {reason: "it is no problem", alerts: alert(`"alertname":"Disk","severity":"info"`, "firing") + "," +
			alert(`"alertname":"Disk","severity":"none"`, "firing") + "," + alert(`"alertname":"Disk"`, "firing")},
		"Watchdog": {reason: "it always fires", alerts: alert(`"alertname":"Watchdog","severity":"warning"`, "firing")},
		"Own": {
			reason: "the preflight has raised it",
			alerts: alert(`"alertname":"UpdatePreflightBlocked","severity":"warning","namespace":"openshift-update-preflight"`, "firing"),
		},
		"Repeated": {
			reason: "it repeats what the preflight reports",
			alerts: alert(`"alertname":"ClusterOperatorDegraded","severity":"warning","name":"update-preflight"`, "firing"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := take(t, start(t, ""), alerting(t, "["+tc.alerts+"]"))
			if diff := gocmp.Diff(append([]string{}, tc.want...), problems(state)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The facts by which an object is compared with a later one.
func TestFacts(t *testing.T) {
	state := take(t, start(t, strings.Join([]string{
		"{apiVersion: v1, kind: Node, metadata: {name: w1, annotations: {machine.openshift.io/machine: openshift-machine-api/m1}}, " +
			"status: {conditions: [{type: Ready, status: 'True'}], nodeInfo: {bootID: b1}}}\n",
		"{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: w1}, spec: {drivers: [{name: z}, {name: a}]}}\n",
		"{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: worker, generation: 7}, spec: " +
			"{paused: true}, status: {machineCount: 3, readyMachineCount: 2, updatedMachineCount: 1}}\n",
		controller("Deployment", "web", "deployment.kubernetes.io/revision: '9'", "replicas: 2", "readyReplicas: 2, updatedReplicas: 2") +
			pod("a", ownedBy("ReplicaSet", "web-1"), "nodeName: w1",
				"phase: Running, startTime: '2026-11-24T12:00:00Z', containerStatuses: [{restartCount: 2}, {restartCount: 1}]") +
			pod("b", ownedBy("ReplicaSet", "web-1"), "nodeName: w1",
				"phase: Running, startTime: '2026-11-24T12:00:00Z', containerStatuses: [{restartCount: 0}]"),
		controller("StatefulSet", "db", "", "replicas: 1", "readyReplicas: 1, updateRevision: db-5d9"),
		controller("DaemonSet", "log", "deprecated.daemonset.template.generation: '3'", "", "desiredNumberScheduled: 1, numberReady: 1") +
			pod("c", ownedBy("DaemonSet", "log"), "nodeName: w1",
				"phase: Running, startTime: '2026-11-25T11:59:00Z', containerStatuses: [{restartCount: 1}]"),
		"{apiVersion: v1, kind: ReplicationController, metadata: {name: cart-9, namespace: shop, annotations: " +
			"{openshift.io/deployment-config.latest-version: '9'}, " + ownedBy("DeploymentConfig", "cart") +
			"}, spec: {replicas: 1}, status: {readyReplicas: 1}}\n",
		"{apiVersion: v1, kind: ReplicationController, metadata: {name: cart-10, namespace: shop, annotations: " +
			"{openshift.io/deployment-config.latest-version: '10'}, " + ownedBy("DeploymentConfig", "cart") +
			"}, spec: {replicas: 1}, status: {readyReplicas: 1}}\n",
		"{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}}}\n",
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.com}, spec: {service: {namespace: shop, " +
			"name: web}}, status: {conditions: [" + condition("Available", "True", "") + "]}}\n",
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: shop, labels: " +
			"{kubernetes.io/service-name: web}}, addressType: IPv4, endpoints: [{conditions: {ready: true}}, {}, {conditions: {ready: false}}]}\n",
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-2, namespace: shop, labels: " +
			"{kubernetes.io/service-name: web}}, addressType: IPv6, endpoints: [{conditions: {ready: true}}]}\n",
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, status: {phase: Bound}}\n",
		"{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: etcd.v1, namespace: shop}, status: " +
			"{phase: Succeeded}}\n",
		"{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: etcd}, status: {conditions: [{type: Available, " +
			"status: 'True'}], versions: [{name: operator, version: 4.19.3}]}}\n",
	}, "---\n")), alerting(t, "[]"))
	if state.ClusterID != "6ba7b810-9dad-41d1-80b4-00c04fd430c8" || state.Version != "4.19.3" ||
		state.Image != "quay.io/release@sha256:0123" || !state.Taken.Equal(now()) {
		t.Errorf("the state is of %s at %s, %s, %s", state.ClusterID, state.Version, state.Image, state.Taken)
	}
	for key, want := range map[baseline.Key]baseline.Object{
		{Kind: baseline.Node, Name: "w1"}: {Revision: "openshift-machine-api/m1", Detail: "b1"},
		{Kind: baseline.CSINode, Name: "w1"}: {
			Detail: "a,z",
			Refs:   []baseline.Key{{Kind: baseline.Node, Name: "w1"}},
		},
		{Kind: baseline.MachineConfigPool, Name: "worker"}: {Desired: 3, Ready: 2, Detail: "paused"},
		{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}: {
			Desired: 2, Ready: 2, Revision: "9", Generation: 4,
			Restarted: 3, Restarts: 1.5,
		},
		{Kind: baseline.StatefulSet, Namespace: "shop", Name: "db"}: {
			Desired: 1, Ready: 1, Revision: "4", Generation: 4,
			Detail: "db-5d9",
		},
		{Kind: baseline.DaemonSet, Namespace: "shop", Name: "log"}: {
			Desired: 1, Ready: 1, Revision: "3", Generation: 4,
			Restarted: 1, Restarts: 1,
		},
		{Kind: baseline.ReplicationController, Namespace: "shop", Name: "cart"}: {
			Desired: 2, Ready: 2, Revision: "10",
			Owner: baseline.Key{Kind: "DeploymentConfig.apps.openshift.io", Namespace: "shop", Name: "cart"},
		},
		{Kind: baseline.Service, Namespace: "shop", Name: "web"}: {Ready: 2, Revision: "f95e1400", Refs: []baseline.Key{ // of app=web
			{Kind: baseline.DaemonSet, Namespace: "shop", Name: "log"}, {Kind: baseline.Deployment, Namespace: "shop", Name: "web"},
		}},
		{Kind: baseline.APIService, Name: "v1.example.com"}:                     {Detail: "shop/web"},
		{Kind: baseline.PersistentVolumeClaim, Namespace: "shop", Name: "data"}: {Detail: "Bound"},
		{Kind: baseline.ClusterServiceVersion, Namespace: "shop", Name: "etcd"}: {Detail: "etcd.v1"},
		{Kind: baseline.ClusterOperator, Name: "etcd"}:                          {Generation: 1, Detail: "4.19.3", Release: true},
	} {
		got := state.Objects[key]
		// Of a DeploymentConfig each revision is another object, and the others are none that a user makes again.
		identified := !slices.Contains([]baseline.Kind{baseline.CSINode, baseline.ReplicationController, baseline.ClusterServiceVersion},
			key.Kind)
		if identified != (got.UID != "") {
			t.Errorf("%s is identified by %q", key, got.UID)
		}
		got.UID = ""
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", key, diff)
		}
	}
}

// Whose an object is: proven by what states it, and never by its name. Who has written it is not kept of the kinds with a row.
func TestOwnership(t *testing.T) {
	written := func(manager string) string {
		return "managedFields: [{manager: " + manager + ", operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:spec': {}}}]"
	}
	in := func(kind, name, metadata string) string {
		return "{apiVersion: " + kind + ", metadata: {name: " + name + ", " + metadata + "}, spec: {replicas: 0}, status: {}}\n---\n"
	}
	const deployment, router = "apps/v1, kind: Deployment", "operator.openshift.io/v1, kind: IngressController"
	state := take(t, start(t, strings.Join([]string{
		"{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: ingress}, status: {relatedObjects: [{group: '', " +
			"resource: namespaces, name: openshift-ingress}, {group: '', resource: namespaces, name: openshift-ingress-operator}]}}\n---\n",
		in(deployment, "router", "namespace: openshift-ingress, "+written("ingress-operator")),
		in(deployment, "debug", "namespace: openshift-ingress, "+written("kubectl-create")),
		in(deployment, "owned", "namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: applied, uid: u, "+
			"controller: true}]"),
		in(deployment, "applied", "namespace: shop, annotations: {include.release.openshift.io/self-managed-high-availability: 'true'}"),
		in(deployment, "written", "namespace: shop, "+written("cluster-version-operator")),
		in(deployment, "loki", "namespace: openshift-logging"),
		in(router, "default", "namespace: openshift-ingress-operator, "+written("ingress-operator")),
		in(router, "customers", "namespace: openshift-ingress-operator, "+written("argocd-controller")),
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {service: {namespace: " +
			"openshift-ingress, name: a}}}\n---\n",
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.b}, spec: {service: {namespace: shop, name: b}}}\n---\n",
		"{apiVersion: v1, kind: Node, metadata: {name: m1, labels: {node-role.kubernetes.io/control-plane: ''}}}\n---\n",
		"{apiVersion: v1, kind: Node, metadata: {name: w1}}\n",
	}, "")), alerting(t, "[]"))
	for text, want := range map[string]bool{
		"Deployment openshift-ingress/router": true, "Deployment openshift-ingress/debug": true, "Deployment shop/owned": true,
		"Deployment shop/applied": true,
		"Deployment shop/written": false, "Deployment openshift-logging/loki": false,
		"IngressController openshift-ingress-operator/default":   true,
		"IngressController openshift-ingress-operator/customers": true, "APIService v1.a": true, "APIService v1.b": false, "Node m1": true,
		"Node w1":                 false,
		"ClusterOperator ingress": true, "ClusterVersion version": true,
	} {
		at := slices.IndexFunc(state.Keys(), func(key baseline.Key) bool { return key.String() == text })
		if at < 0 {
			t.Errorf("%s is not there", text)
			continue
		}
		if got := state.Objects[state.Keys()[at]].Release; got != want {
			t.Errorf("%s is of the release: %t, want %t", text, got, want)
		}
	}
}

// Who cordons a node may remove it: an administrator, and not the update that drains it before its reboot.
func TestCordoned(t *testing.T) {
	const mco = "machineconfiguration.openshift.io/"
	for name, tc := range map[string]struct {
		reason, notes, spec string
		want                bool
	}{
		"Administrator": {
			reason: "the update has uncordoned it before",
			notes:  mco + "desiredDrain: uncordon-a, " + mco + "lastAppliedDrain: uncordon-a", spec: "unschedulable: true", want: true,
		},
		"Never": {reason: "no update has drained it", spec: "unschedulable: true", want: true},
		"Update": {
			reason: "the update has drained it", notes: mco + "desiredDrain: drain-b, " + mco + "lastAppliedDrain: drain-b",
			spec: "unschedulable: true",
		},
		"Drains": {
			reason: "the update drains it", notes: mco + "desiredDrain: drain-b, " + mco + "lastAppliedDrain: uncordon-a",
			spec: "unschedulable: true",
		},
		"Schedulable": {reason: "pods are scheduled to it"},
	} {
		state := take(t, start(t, "{apiVersion: v1, kind: Node, metadata: {name: w1, annotations: {"+tc.notes+"}}, spec: {"+tc.spec+"}}"),
			alerting(t, "[]"))
		if got := state.Objects[baseline.Key{Kind: baseline.Node, Name: "w1"}].Cordoned; got != tc.want {
			t.Errorf("%s: cordoned %t, want %t: %s", name, got, tc.want, tc.reason)
		}
	}
}

// A kind that cannot be read, or is judged by one, is named; the others are read.
func TestUnread(t *testing.T) {
	objects := controller("Deployment", "web", "", "replicas: 1", "updatedReplicas: 1") +
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {storageClassName: gold}, status: " +
		"{phase: Pending}}\n---\n" +
		"{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}}}\n---\n" +
		pod("a", "", "nodeName: w1", "phase: Running") +
		"{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: policy}, webhooks: [{name: " +
		"a.b.c, clientConfig: {caBundle: Zm9v, service: {namespace: shop, name: web}}}]}"
	for name, tc := range map[string]struct {
		reason string
		denied schema.GroupResource
		unread []baseline.Kind
		want   []string
	}{
		"Routes": {
			reason: "a kind of its own", denied: schema.GroupResource{Group: "route.openshift.io", Resource: "routes"},
			unread: []baseline.Kind{baseline.Route},
		},
		"Pods": {
			reason: "workloads and Services are judged by their pods, too", denied: schema.GroupResource{Resource: "pods"},
			unread: []baseline.Kind{
				baseline.DaemonSet, baseline.Deployment, baseline.MutatingWebhook, baseline.ReplicationController,
				baseline.Service, baseline.StatefulSet, baseline.ValidatingWebhook,
			},
		},
		"StorageClasses": {reason: "a claim may wait for its first pod", denied: schema.GroupResource{
			Group:    "storage.k8s.io",
			Resource: "storageclasses",
		}, unread: []baseline.Kind{baseline.PersistentVolumeClaim, baseline.StorageClass}},
		"EndpointSlices": {
			reason: "Services may have endpoints", denied: schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
			unread: []baseline.Kind{baseline.MutatingWebhook, baseline.Service, baseline.ValidatingWebhook},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, objects+"\n---\n{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: web, namespace: shop}}")
			server.Deny(func(_ string, request apiserver.Request) bool {
				return request.Group == tc.denied.Group && request.Resource == tc.denied.Resource
			})
			state := take(t, server, alerting(t, "[]"))
			var unread []baseline.Kind
			for kind, cause := range state.Unread {
				unread = append(unread, kind)
				if !strings.Contains(cause, tc.denied.Resource) {
					t.Errorf("the cause for %s is %q", kind, cause)
				}
			}
			slices.Sort(unread)
			if diff := gocmp.Diff(tc.unread, unread); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, line := range problems(state) {
				kind, _, _ := strings.Cut(line, " ")
				if slices.Contains([]baseline.Kind{baseline.Service, baseline.MutatingWebhook, baseline.PersistentVolumeClaim}, baseline.Kind(kind)) &&
					slices.Contains(unread, baseline.Kind(kind)) {
					t.Errorf("%s: what was not read is a problem: %s", tc.reason, line)
				}
			}
			if object, ok := state.Objects[baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}]; !ok ||
				len(object.Problems) == 0 {
				t.Errorf("%s: the Deployment is %+v", tc.reason, object)
			}
		})
	}
}

// A monitoring that cannot be read is named, and so is that there is none.
func TestUnreadAlerts(t *testing.T) {
	down := monitoring.New(func(context.Context) (*rest.Config, error) { return &rest.Config{Host: "http://127.0.0.1:1"}, nil },
		monitoring.DefaultTimeout)
	for _, client := range []*monitoring.Client{nil, down} {
		if cause := take(t, start(t, ""), client).Unread[baseline.Alert]; cause == "" {
			t.Error("alerts that were not read seem to be complete")
		}
	}
}

// Without a ClusterVersion nothing says of which release and cluster a state is.
func TestNoClusterVersion(t *testing.T) {
	api, err := cluster.Connect(apiserver.Start(t).Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if state, err := sample.Take(t.Context(), snapshot.Of(api), nil, nil, now()); err == nil ||
		!strings.Contains(err.Error(), `ClusterVersion "version"`) {
		t.Errorf("state %+v, error %v", state, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sample.Take(canceled, snapshot.Of(api), nil, nil, now()); err == nil {
		t.Error("a reading that was interrupted has no error")
	}
}
