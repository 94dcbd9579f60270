package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Annotations that control the pods on simulated nodes, the first two those of Jobs. They have no
// domain, since the policy for preflights allows few domains.
const (
	// AnnotationTakes is how long the pod runs, in the format of
	// time.ParseDuration. The default is one second.
	AnnotationTakes = "simulation-takes"
	// AnnotationMessage is the termination message of its containers.
	AnnotationMessage = "simulation-message"
	// AnnotationReady is how long after its start a pod gets ready, in the format of
	// time.ParseDuration, or NeverReady. Without it, a pod is ready at once.
	AnnotationReady = "simulation-ready"
	// NeverReady is a value of AnnotationReady.
	NeverReady = "never"
	// AnnotationSick is the ordinal of a StatefulSet whose pod never gets ready. It is an annotation of its
	// template.
	AnnotationSick = "simulation-sick"
	// AnnotationAddress is the IP address of a pod, without which no EndpointSlice has it.
	AnnotationAddress = "simulation-address"
	// AnnotationEnds is how long a deleted pod takes to end, in the format of time.ParseDuration. Without it,
	// it ends at once.
	AnnotationEnds = "simulation-ends"
)

// podsPerNode is the default limit of OpenShift.
const podsPerNode = 250

//go:embed kwok.yaml
var kwokYAML string

// startSimulation creates the nodes and starts kwok, which simulates their
// kubelets.
func (p *plan) startSimulation(ctx context.Context) error {
	start := time.Now()
	clients, err := kubernetes.NewForConfig(p.cluster.Config)
	if err != nil {
		return err
	}
	for i := range p.simulated {
		if err := CreateNode(ctx, clients, fmt.Sprintf("simulated-%03d", i)); err != nil {
			return fmt.Errorf("create a simulated node: %w", err)
		}
	}
	config := filepath.Join(p.cluster.Dir, "kwok.yaml")
	if err := os.WriteFile(config, []byte(kwokYAML), 0o600); err != nil {
		return err
	}
	err = p.spawn("kwok", "kwok", "--config="+config, "--kubeconfig="+p.cluster.Kubeconfig,
		"--server-address="+p.kwok, "--manage-all-nodes", "--v=WARN")
	if err != nil {
		return err
	}
	if err := p.await(ctx, "kwok", get(http.DefaultClient, "http://"+p.kwok+"/healthz")); err != nil {
		return err
	}
	p.done(fmt.Sprintf("kwok, nodes: %d", p.simulated), start)
	return nil
}

// CreateNode creates a node that is ready for pods that tolerate its taints. It removes
// the taint of new nodes, since the controller that does so may not be running.
func CreateNode(ctx context.Context, clients kubernetes.Interface, name string, taints ...corev1.Taint) error {
	version, err := clients.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	_, err = clients.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "node-role.kubernetes.io/worker": "",
		}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			NodeInfo:   corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: version.GitVersion},
			Conditions: readyConditions(),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func readyConditions() []corev1.NodeCondition {
	now := metav1.Now()
	var conditions []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		conditions = append(conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasEnough", LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	return append(conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
	})
}
