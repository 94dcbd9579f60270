package commands_test

import (
	"encoding/json"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
)

// environment is the state of a cluster for one test. Initially every available update is
// Ready.
type environment struct {
	t      testing.TB
	plane  *plane
	config *rest.Config
	// state takes effect with apply.
	state openshift.State
	// monitoring is the URL of the Prometheus for the program.
	monitoring string
}

// current is the version of the cluster, unless a test sets another one.
const current = "4.18.15"

// newEnvironment uses a cluster until the test ends. The rules of its Prometheus define the
// alerts and the series; without rules it has a monitoring without alerts, which answers no query.
func newEnvironment(tb testing.TB, on *plane, rules ...prometheus.Rule) *environment {
	tb.Helper()
	on.use(tb)
	config := rest.CopyConfig(on.Config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	e := &environment{t: tb, plane: on, config: config, monitoring: testCluster.Monitoring}
	if len(rules) > 0 {
		e.monitoring = monitoring.Load(tb, rules...).URL
	}
	e.state = openshift.State{
		Version: current, Image: examplePullSpec("0"), Channel: "candidate-4.18", Topology: configv1.HighlyAvailableTopologyMode,
		Gates: map[string]string{}, Acks: map[string]string{},
		Operators: []configv1.ClusterOperator{operator("etcd"), operator("kube-apiserver")},
	}
	e.create(pool("master"), pool("worker"), node("control-plane-0", "master", "v1.31.9"), node("worker-0", "worker", "v1.31.9"))
	return e
}

// apply writes the state to the cluster.
func (e *environment) apply() {
	e.t.Helper()
	if err := openshift.Apply(e.t.Context(), e.config, e.state); err != nil {
		e.t.Fatal(err)
	}
}

// examplePullSpec returns the pull spec of a release that does not exist.
func examplePullSpec(digit string) string {
	return "registry.example.com/openshift/release@sha256:" + strings.Repeat(digit, 64)
}

// operator returns a healthy ClusterOperator with further conditions.
func operator(name string, conditions ...configv1.ClusterOperatorStatusCondition) configv1.ClusterOperator {
	result := configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for kind, status := range map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
		configv1.OperatorAvailable: configv1.ConditionTrue, configv1.OperatorDegraded: configv1.ConditionFalse,
		configv1.OperatorProgressing: configv1.ConditionFalse,
	} {
		result.Status.Conditions = append(result.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: kind, Status: status, Reason: "AsExpected", LastTransitionTime: metav1.Now(),
		})
	}
	for _, condition := range conditions {
		condition.LastTransitionTime = metav1.Now()
		result.Status.Conditions = append(result.Status.Conditions, condition)
	}
	return result
}

// pool returns a MachineConfigPool whose nodes are up to date.
func pool(name string) string {
	return strings.ReplaceAll(`
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: NAME}
spec:
  paused: false
  nodeSelector: {matchLabels: {node-role.kubernetes.io/NAME: ""}}
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: NAME}}
status:
  observedGeneration: 1
  machineCount: 1
  updatedMachineCount: 1
  readyMachineCount: 1
  conditions:
  - {type: Updated, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Updating, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Degraded, status: "False", lastTransitionTime: "2026-01-01T00:00:00Z"}
`, "NAME", name)
}

// paused returns the pool, paused.
func paused(pool string) string { return strings.ReplaceAll(pool, "paused: false", "paused: true") }

// node returns a healthy Node.
func node(name, role, kubelet string) string {
	return strings.NewReplacer("NAME", name, "ROLE", role, "KUBELET", kubelet).Replace(`
apiVersion: v1
kind: Node
metadata:
  name: NAME
  labels: {node-role.kubernetes.io/ROLE: "", kubernetes.io/os: linux}
  annotations: {machineconfiguration.openshift.io/state: Done, machineconfiguration.openshift.io/currentConfig: a, machineconfiguration.openshift.io/desiredConfig: a}
status:
  nodeInfo: {kubeletVersion: KUBELET, architecture: amd64, bootID: "", containerRuntimeVersion: "", kernelVersion: "", kubeProxyVersion: "", machineID: "", operatingSystem: linux, osImage: "", systemUUID: ""}
  conditions:
  - {type: Ready, status: "True", reason: KubeletReady}
  - {type: MemoryPressure, status: "False"}
  - {type: DiskPressure, status: "False"}
  - {type: PIDPressure, status: "False"}
`)
}

// create creates the objects of the manifests, with their status.
func (e *environment) create(manifests ...string) {
	e.t.Helper()
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			e.t.Fatal(err)
		}
		e.createObject(object)
	}
}

// createObject creates an object with its status.
func (e *environment) createObject(object *unstructured.Unstructured) {
	e.t.Helper()
	resources := e.resources(object)
	created, err := resources.Create(e.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	e.writeStatus(created, object.Object["status"])
}

// writeStatus writes the status of an object, if it has one.
func (e *environment) writeStatus(object *unstructured.Unstructured, status any) {
	e.t.Helper()
	if status == nil {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		e.t.Fatal(err)
	}
	// A patch, since controllers change the object, too.
	_, err = e.resources(object).Patch(e.t.Context(), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		e.t.Fatal(err)
	}
}

// resources returns the client for the kind of the object in its namespace, which it creates
// if it does not exist.
func (e *environment) resources(object *unstructured.Unstructured) dynamic.ResourceInterface {
	e.t.Helper()
	core := kubernetes.NewForConfigOrDie(e.config)
	kind := object.GroupVersionKind()
	mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(core.Discovery())).RESTMapping(kind.GroupKind(),
		kind.Version)
	if err != nil {
		e.t.Fatal(err)
	}
	administrator := rest.CopyConfig(e.config)
	administrator.UserAgent = "oc" // objects name who writes them
	resources := dynamic.NewForConfigOrDie(administrator).Resource(mapping.Resource)
	if object.GetNamespace() == "" {
		return resources
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}}
	if _, err := core.CoreV1().Namespaces().Create(e.t.Context(), namespace, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		e.t.Fatal(err)
	}
	return resources.Namespace(object.GetNamespace())
}

// replace replaces the object with the name of the manifest.
func (e *environment) replace(manifest string) {
	e.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		e.t.Fatal(err)
	}
	err := e.resources(object).Delete(e.t.Context(), object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil {
		e.t.Fatal(err)
	}
	e.createObject(object)
}
