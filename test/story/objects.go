package story

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/objects"
	"github.com/openshift/update-preflight/test/openshift"
)

// namespaces returns the namespaces of the operators in the story.
func namespaces() []string {
	return []string{
		"openshift-cloud-credential-operator", "openshift-image-registry",
		"openshift-ingress", "openshift-ingress-operator", "openshift-machine-config-operator",
	}
}

// applyObjects creates the objects that the checks read, with the status that operators
// write.
func applyObjects(ctx context.Context, c *cluster.Cluster, root string) error {
	w, err := objects.New(c.Config)
	if err != nil {
		return err
	}
	if err := applyFile(ctx, w, root, "objects.yaml"); err != nil {
		return err
	}
	infrastructure := objects.Object{
		GroupVersionResource: configv1.GroupVersion.WithResource("infrastructures"), Name: "cluster",
		Subresource: "status",
	}
	if err := w.Patch(ctx, infrastructure, `{"status":{"platform":"AWS","platformStatus":{"type":"AWS"}}}`); err != nil {
		return err
	}
	return applyPool(ctx, c, root)
}

// applyFile applies the objects of a file of the story.
func applyFile(ctx context.Context, w *objects.Writer, root, name string) error {
	documents, err := os.ReadFile(filepath.Join(root, "test", "story", name)) //nolint:gosec // the repository's own file
	if err != nil {
		return err
	}
	return w.Apply(ctx, documents)
}

// worker makes a node a worker whose config is that of its pool.
const worker = `{"metadata":{"labels":{"node-role.kubernetes.io/worker":""},"annotations":{"machineconfiguration.openshift.io/state":"Done",` +
	`"machineconfiguration.openshift.io/currentConfig":"rendered-worker-1","machineconfiguration.openshift.io/desiredConfig":"rendered-worker-1"}}}`

// applyPool makes all nodes workers in a pool that is updated.
func applyPool(ctx context.Context, c *cluster.Cluster, root string) error {
	w, err := objects.New(c.Config)
	if err != nil {
		return err
	}
	if err := applyFile(ctx, w, root, "pool.yaml"); err != nil {
		return err
	}
	pool := objects.Object{
		GroupVersionResource: schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Resource: "machineconfigpools"},
		Name:                 "worker", Subresource: "status",
	}
	err = w.Patch(ctx, pool, `{"status":{"observedGeneration":1,"configuration":{"name":"rendered-worker-1"},`+
		`"conditions":[{"type":"Updated","status":"True"},{"type":"Degraded","status":"False"}]}}`)
	if err != nil {
		return err
	}
	core, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		node := objects.Object{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("nodes"), Name: nodes.Items[i].Name}
		if err := w.Patch(ctx, node, worker); err != nil {
			return err
		}
	}
	return nil
}

// kubectlAll runs kubectl with each of these arguments, one after the other.
func kubectlAll(ctx context.Context, c *cluster.Cluster, root string, steps ...[]string) error {
	for _, step := range steps {
		if err := kubectl(ctx, c, root, step...); err != nil {
			return err
		}
	}
	return nil
}

// kubectl runs kubectl on the cluster.
func kubectl(ctx context.Context, c *cluster.Cluster, root string, arguments ...string) error {
	program := exec.CommandContext(ctx, filepath.Join(root, "bin", "kubectl"), arguments...) //nolint:gosec // our own arguments
	program.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	if out, err := program.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", arguments[0], err, out)
	}
	return nil
}

// operators returns the ClusterOperators of the story, all of them healthy.
func operators() []configv1.ClusterOperator {
	since := metav1.NewTime(installed())
	var operators []configv1.ClusterOperator
	for _, name := range []string{"cloud-credential", "ingress", "kube-apiserver", "machine-config"} {
		operators = append(operators, configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: configv1.ClusterOperatorStatus{Versions: openshift.OperatorVersions(From), Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: since},
				{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: since},
				{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: since},
				{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionTrue, LastTransitionTime: since},
			}},
		})
	}
	return operators
}
