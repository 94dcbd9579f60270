package story

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/test/cluster"
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
	err := kubectlAll(ctx, c, root,
		[]string{"apply", "--server-side", "-f", filepath.Join(root, "test", "story", "objects.yaml")},
		[]string{
			"patch", "infrastructure", "cluster", "--subresource=status", "--type=merge",
			"-p", `{"status":{"platform":"AWS","platformStatus":{"type":"AWS"}}}`,
		},
	)
	if err != nil {
		return err
	}
	return applyPool(ctx, c, root)
}

// applyPool makes all nodes workers in a pool that is updated.
func applyPool(ctx context.Context, c *cluster.Cluster, root string) error {
	return kubectlAll(ctx, c, root,
		[]string{"apply", "--server-side", "-f", filepath.Join(root, "test", "story", "pool.yaml")},
		[]string{"label", "node", "--all", "--overwrite", "node-role.kubernetes.io/worker="},
		[]string{
			"annotate", "node", "--all", "--overwrite", "machineconfiguration.openshift.io/state=Done",
			"machineconfiguration.openshift.io/currentConfig=rendered-worker-1", "machineconfiguration.openshift.io/desiredConfig=rendered-worker-1",
		},
		[]string{
			"patch", "machineconfigpool", "worker", "--subresource=status", "--type=merge",
			"-p", `{"status":{"observedGeneration":1,"configuration":{"name":"rendered-worker-1"},"conditions":[{"type":"Updated","status":"True"},{"type":"Degraded","status":"False"}]}}`,
		},
	)
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
	now := metav1.Now()
	var operators []configv1.ClusterOperator
	for _, name := range []string{"cloud-credential", "ingress", "kube-apiserver", "machine-config"} {
		operators = append(operators, configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: now},
				{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: now},
				{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: now},
				{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionTrue, LastTransitionTime: now},
			}},
		})
	}
	return operators
}
