package story

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/test/build"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/release"
)

// The hosted cluster of the story, its NodePool, and the patch release that is requested.
const (
	HostedCluster = "clusters/example"
	NodePool      = "workers"
	Patch         = "5.1.4"
	// ManagementCheck is the check of the release that runs in ControlPlane, the namespace of the control plane.
	ManagementCheck = "KubeApiserver.ControlPlane"
	ControlPlane    = "clusters-example"
)

// PrepareHosted creates a hosted cluster in a management cluster and its guest: an annotation of an
// earlier update blocks even a patch, a NodePool is too old, and a budget never allows the drain
// of its node. Files are written to directory.
func PrepareHosted(ctx context.Context, guest, management *cluster.Cluster, directory string, step func(string)) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	step("building the release " + Patch + " with a check of examples/ for the guest and one for the management cluster, and signing it")
	above, err := os.ReadFile(filepath.Join(root, "test", "story", "hosted-check.yaml")) //nolint:gosec // the repository's own file
	if err != nil {
		return err
	}
	pullSpec, err := push(ctx, guest.Registry, root, content{
		version: Patch, examples: map[string]string{"cloud-credential-operator": "cloud-credential"}, //nolint:gosec // a name, not a credential
		more: map[string]string{"0000_50_kube-apiserver_10_control-plane.yaml": string(above)},
	})
	if err != nil {
		return err
	}
	signer, err := release.NewSigner("Story Release Key")
	if err != nil {
		return err
	}
	side, err := state(pullSpec, Patch, signer, directory)
	if err != nil {
		return err
	}
	step("creating the objects of HyperShift in the management cluster, which has the keys")
	if err := openshift.Apply(ctx, management.Config, openshift.State{
		Version: From, Image: side.Image, Keys: side.Keys, Stores: side.Stores, Signatures: side.Signatures,
		Namespaces: []string{"clusters", "clusters-example", "hypershift"},
	}); err != nil {
		return err
	}
	if err := applyManagement(ctx, guest, management, root, strings.NewReplacer("PRESENT", side.Image, "TARGET", pullSpec)); err != nil {
		return err
	}
	step("creating the objects of the guest, which has no keys")
	if err := openshift.Apply(ctx, guest.Config, openshift.State{
		Version: From, Image: side.Image, Available: side.Available, Gates: map[string]string{}, Acks: map[string]string{},
		Namespaces: namespaces(), Topology: configv1.ExternalTopologyMode, Operators: operators(),
	}); err != nil {
		return err
	}
	return applyGuest(ctx, guest, root)
}

// applyManagement creates the objects of HyperShift, and the Secret with the kubeconfig of the guest.
func applyManagement(ctx context.Context, guest, management *cluster.Cluster, root string, images *strings.Replacer) error {
	definitions := filepath.Join(root, "collector", "hosted", "testdata")
	for _, name := range []string{"hostedclusters", "nodepools", "hcpetcdbackups"} {
		if err := kubectl(ctx, management, root, "apply", "--server-side", "-f", filepath.Join(definitions, name+".crd.yaml")); err != nil {
			return err
		}
	}
	if err := kubectl(ctx, management, root, "wait", "--for=condition=Established", "crd/hostedclusters.hypershift.openshift.io",
		"crd/nodepools.hypershift.openshift.io", "--timeout=1m"); err != nil {
		return err
	}
	objects, err := rewritten(filepath.Join(root, "test", "story", "hosted-management.yaml"), images)
	if err != nil {
		return err
	}
	defer os.Remove(objects) //nolint:errcheck // a temporary file
	kubeconfig, err := portable(guest.Kubeconfig)
	if err != nil {
		return err
	}
	defer os.Remove(kubeconfig) //nolint:errcheck // a temporary file
	return kubectlAll(ctx, management, root,
		[]string{"apply", "--server-side", "-f", objects},
		[]string{"apply", "--server-side", "--subresource=status", "-f", objects, "--selector=story=status"},
		[]string{"-n", "clusters-example", "rollout", "status", "deployment/kube-apiserver", "--timeout=1m"},
		[]string{"-n", "clusters-example", "rollout", "status", "statefulset/etcd", "--timeout=1m"},
		[]string{"-n", "clusters", "create", "secret", "generic", "example-admin-kubeconfig", "--from-file=kubeconfig=" + kubeconfig},
	)
}

// applyGuest creates the objects of the guest, whose nodes belong to the NodePool.
func applyGuest(ctx context.Context, guest *cluster.Cluster, root string) error {
	if err := kubectlAll(ctx, guest, root,
		[]string{"apply", "--server-side", "-f", filepath.Join(root, "test", "story", "hosted-guest.yaml")},
		[]string{
			"patch", "infrastructure", "cluster", "--subresource=status", "--type=merge", "-p",
			`{"status":{"platform":"AWS","platformStatus":{"type":"AWS"}}}`,
		},
		[]string{"label", "node", "--all", "--overwrite", "hypershift.openshift.io/nodePool=" + NodePool, "node-role.kubernetes.io/worker="},
	); err != nil {
		return err
	}
	return applyShop(ctx, guest, root, guest.Registry)
}

// applyShop creates a workload whose budget never allows an eviction.
func applyShop(ctx context.Context, c *cluster.Cluster, root, registry string) error {
	shop, err := rewritten(filepath.Join(root, "test", "story", "shop.yaml"), strings.NewReplacer("IMAGE", registry+"/pause:1"))
	if err != nil {
		return err
	}
	defer os.Remove(shop) //nolint:errcheck // a temporary file
	return kubectlAll(ctx, c, root,
		[]string{"apply", "--server-side", "-f", shop},
		[]string{"-n", "shop", "rollout", "status", "deployment/orders", "--timeout=2m"},
	)
}

// rewritten is the path of a temporary copy of a file.
func rewritten(path string, with *strings.Replacer) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the repository's own file
	if err != nil {
		return "", err
	}
	return temporary([]byte(with.Replace(string(text))))
}

// portable is the path of a temporary copy of a kubeconfig that names no files.
func portable(kubeconfig string) (string, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", err
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return "", err
	}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	return temporary(text)
}

func temporary(content []byte) (string, error) {
	file, err := os.CreateTemp("", "preflight-story-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return file.Name(), err
}

// HostedRemedies are the actions that make the update of the hosted cluster Ready, for kubectl with the
// kubeconfig of the management cluster. HyperShift does not run: what it would report is set by hand.
func HostedRemedies(guestKubeconfig string) []Remedy {
	const hosted = "hypershift.openshift.io/"
	return []Remedy{
		{
			Why:     "remove the annotation of the earlier update",
			Command: []string{"kubectl", "-n", "clusters", "annotate", "hostedcluster", "example", hosted + "force-upgrade-to-"},
		},
		{
			Why: "update the NodePool to the release of the control plane (here: the status that HyperShift reports then)",
			Command: []string{
				"kubectl", "-n", "clusters", "patch", "nodepool", NodePool, "--subresource=status", "--type=merge", "-p",
				`{"status":{"version":"` + From + `"}}`,
			},
		},
		{
			Why: "let the budget of the guest allow one eviction",
			Command: []string{
				"kubectl", "--kubeconfig", guestKubeconfig, "-n", "shop", "patch", "pdb", "orders", "--type=merge", "-p",
				`{"spec":{"maxUnavailable":1}}`,
			},
		},
	}
}
