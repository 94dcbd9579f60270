package story

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/openshift/update-preflight/test/cluster"
)

// namespaces are those of the operators in the story.
func namespaces() []string {
	return []string{
		"openshift-cloud-credential-operator", "openshift-image-registry",
		"openshift-ingress", "openshift-ingress-operator", "openshift-machine-config-operator",
	}
}

// applyScene gives the cluster the objects that the checks look at, and the
// status that operators would.
func applyScene(ctx context.Context, c *cluster.Cluster, root string) error {
	steps := [][]string{
		{"apply", "--server-side", "-f", filepath.Join(root, "test", "story", "scene.yaml")},
		{
			"patch", "infrastructure", "cluster", "--subresource=status", "--type=merge",
			"-p", `{"status":{"platform":"AWS","platformStatus":{"type":"AWS"}}}`,
		},
		{
			"patch", "machineconfigpool", "worker", "--subresource=status", "--type=merge",
			"-p", `{"status":{"observedGeneration":1,"configuration":{"name":"rendered-worker-1"},"conditions":[{"type":"Updated","status":"True"},{"type":"Degraded","status":"False"}]}}`,
		},
	}
	for _, step := range steps {
		kubectl := exec.CommandContext(ctx, filepath.Join(root, "bin", "kubectl"), step...) //nolint:gosec // our own arguments
		kubectl.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
		if out, err := kubectl.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", step[0], err, out)
		}
	}
	return nil
}
