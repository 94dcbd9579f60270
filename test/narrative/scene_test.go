package narrative_test

import (
	"context"
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

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
)

// scene is a cluster as a story wants it. It begins well: every update that is
// available is Ready.
type scene struct {
	t       testing.TB
	cluster *cluster.Cluster
	config  *rest.Config
	// state is what apply makes true.
	state openshift.State
	// kubeconfig is the path of that of the program.
	kubeconfig string
	// monitoring is the URL of the Prometheus that the program asks.
	monitoring string
}

// current is the version of the cluster where a story does not say another.
const current = "4.18.15"

// on takes the stage until the test ends. Alerts fire, and series are there, as
// the rules of the Prometheus have it.
func on(tb testing.TB, stage *stage, rules ...prometheus.Rule) *scene {
	tb.Helper()
	stage.turn.Lock()
	tb.Cleanup(stage.turn.Unlock)
	config := rest.CopyConfig(stage.cluster.Config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	s := &scene{t: tb, cluster: stage.cluster, config: config, kubeconfig: stage.cluster.Kubeconfig, monitoring: prometheus.Run(tb, rules...).URL}
	s.state = openshift.State{
		Version: current, Image: digested("0"), Channel: "candidate-4.18", Topology: configv1.HighlyAvailableTopologyMode,
		Gates: map[string]string{}, Acks: map[string]string{}, Operators: []configv1.ClusterOperator{operator("etcd"), operator("kube-apiserver")},
	}
	s.hold(pool("master"), pool("worker"), node("control-plane-0", "master", "v1.31.9"), node("worker-0", "worker", "v1.31.9"))
	return s
}

// apply makes the cluster what the state says.
func (s *scene) apply() {
	s.t.Helper()
	if err := openshift.Apply(s.t.Context(), s.config, s.state); err != nil {
		s.t.Fatal(err)
	}
}

// digested is the pull spec of a release that is not read.
func digested(digit string) string {
	return "registry.example.com/openshift/release@sha256:" + strings.Repeat(digit, 64)
}

// operator is a ClusterOperator that is well.
func operator(name string, conditions ...configv1.ClusterOperatorStatusCondition) configv1.ClusterOperator {
	made := configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for kind, status := range map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
		configv1.OperatorAvailable: configv1.ConditionTrue, configv1.OperatorDegraded: configv1.ConditionFalse,
		configv1.OperatorProgressing: configv1.ConditionFalse,
	} {
		made.Status.Conditions = append(made.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: kind, Status: status, Reason: "AsExpected", LastTransitionTime: metav1.Now(),
		})
	}
	for _, condition := range conditions {
		condition.LastTransitionTime = metav1.Now()
		made.Status.Conditions = append(made.Status.Conditions, condition)
	}
	return made
}

// pool is a MachineConfigPool that is up to date.
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

// paused is a pool that is left behind.
func paused(pool string) string { return strings.ReplaceAll(pool, "paused: false", "paused: true") }

// node is a Node that is well.
func node(name, role, kubelet string) string {
	return strings.NewReplacer("NAME", name, "ROLE", role, "KUBELET", kubelet).Replace(`
apiVersion: v1
kind: Node
metadata:
  name: NAME
  labels: {node-role.kubernetes.io/ROLE: "", kubernetes.io/os: linux}
  annotations: {machineconfiguration.openshift.io/state: Done}
status:
  nodeInfo: {kubeletVersion: KUBELET, architecture: amd64, bootID: "", containerRuntimeVersion: "", kernelVersion: "", kubeProxyVersion: "", machineID: "", operatingSystem: linux, osImage: "", systemUUID: ""}
  conditions:
  - {type: Ready, status: "True", reason: KubeletReady}
  - {type: MemoryPressure, status: "False"}
  - {type: DiskPressure, status: "False"}
  - {type: PIDPressure, status: "False"}
`)
}

// hold has the cluster hold what the manifests say, with its status, until the
// test ends.
func (s *scene) hold(manifests ...string) {
	s.t.Helper()
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			s.t.Fatal(err)
		}
		s.create(object)
	}
}

func (s *scene) create(object *unstructured.Unstructured) {
	s.t.Helper()
	resources := s.resources(object)
	created, err := resources.Create(s.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		err := resources.Delete(context.WithoutCancel(s.t.Context()), object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Error(err)
		}
	})
	s.writeStatus(created, object.Object["status"])
}

// writeStatus writes the status of an object, if it has one.
func (s *scene) writeStatus(object *unstructured.Unstructured, status any) {
	s.t.Helper()
	if status == nil {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		s.t.Fatal(err)
	}
	// A patch, since controllers look at the object too.
	_, err = s.resources(object).Patch(s.t.Context(), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		s.t.Fatal(err)
	}
}

// resources are those of the object's kind, in its namespace, which is made
// where it is missing.
func (s *scene) resources(object *unstructured.Unstructured) dynamic.ResourceInterface {
	s.t.Helper()
	core := kubernetes.NewForConfigOrDie(s.config)
	kind := object.GroupVersionKind()
	mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(core.Discovery())).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		s.t.Fatal(err)
	}
	resources := dynamic.NewForConfigOrDie(s.config).Resource(mapping.Resource)
	if object.GetNamespace() == "" {
		return resources
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}}
	if _, err := core.CoreV1().Namespaces().Create(s.t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	return resources.Namespace(object.GetNamespace())
}

// change has the cluster hold the manifest in place of what has its name.
func (s *scene) change(manifest string) {
	s.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		s.t.Fatal(err)
	}
	err := s.resources(object).Delete(s.t.Context(), object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.create(object)
}
