package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Kubelets are the nodes of one pool with the same version of the kubelet.
type Kubelets struct {
	// Version is the version that the nodes report; empty where they do not.
	Version string
	// Pool is the MachineConfigPool that updates the nodes; empty where none does, as
	// for Windows.
	Pool string
	// Paused is true when the pool is paused.
	Paused bool
	// Nodes are their names.
	Nodes []string
}

// Kubelets are those of all nodes, sorted by pool and version. Beside an error about
// the MachineConfigPools, the kubelets are returned without a pool.
func (c *Cluster) Kubelets(ctx context.Context) ([]Kubelets, error) {
	return once(ctx, c, "kubelets", func(ctx context.Context) ([]Kubelets, error) {
		nodes, err := c.Nodes(ctx)
		if err != nil {
			return nil, fmt.Errorf("could not list the nodes: %w", err)
		}
		found, err := c.MachineConfigPools(ctx)
		if apierrors.IsNotFound(err) {
			return groupKubelets(nodes, nil), nil
		}
		if err != nil {
			return groupKubelets(nodes, nil), fmt.Errorf("could not list the MachineConfigPools: %w", err)
		}
		pools, err := readPools(found)
		return groupKubelets(nodes, pools), err
	})
}

func groupKubelets(nodes []corev1.Node, pools []pool) []Kubelets {
	type key struct{ version, pool string }
	at := map[key]int{}
	var groups []Kubelets
	for i := range nodes {
		node := &nodes[i]
		of := poolOf(node, pools)
		key := key{node.Status.NodeInfo.KubeletVersion, of.name}
		if _, ok := at[key]; !ok {
			at[key] = len(groups)
			groups = append(groups, Kubelets{Version: key.version, Pool: of.name, Paused: of.paused})
		}
		group := &groups[at[key]]
		group.Nodes = append(group.Nodes, node.Name)
	}
	slices.SortFunc(groups, func(a, b Kubelets) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Version, b.Version))
	})
	return groups
}

// pool is the selection of nodes of a MachineConfigPool.
type pool struct {
	name     string
	paused   bool
	selector labels.Selector
}

// rank is the precedence of pools that select the same node: the control plane's,
// then custom pools, then worker, which selects their nodes too
// (machine-config-operator pkg/helpers, GetPrimaryPoolForNode).
func (p pool) rank() int {
	switch p.name {
	case "master", "arbiter":
		return 0
	case "worker":
		return 2
	}
	return 1
}

// readPools parses the pools, and sorts them by rank and name.
func readPools(found []machineconfigurationv1.MachineConfigPool) ([]pool, error) {
	var pools []pool
	for i := range found {
		selector, err := metav1.LabelSelectorAsSelector(found[i].Spec.NodeSelector)
		if err != nil {
			return nil, fmt.Errorf("the nodeSelector of MachineConfigPool %q is invalid: %w", found[i].Name, err)
		}
		pools = append(pools, pool{name: found[i].Name, paused: found[i].Spec.Paused, selector: selector})
	}
	slices.SortFunc(pools, func(a, b pool) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.name, b.name))
	})
	return pools, nil
}

// poolOf is the pool that updates a node, or the zero value. Where several custom
// pools select the node, none updates it; the result is the one whose configuration
// the node has.
func poolOf(node *corev1.Node, pools []pool) pool {
	if node.Labels[corev1.LabelOSStable] == string(corev1.Windows) {
		return pool{}
	}
	var best pool
	config := node.Annotations["machineconfiguration.openshift.io/currentConfig"]
	for _, candidate := range pools {
		if candidate.selector.Empty() || !candidate.selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		if best.name != "" && candidate.rank() > best.rank() {
			break
		}
		if best.name == "" || strings.HasPrefix(config, "rendered-"+candidate.name+"-") {
			best = candidate
		}
	}
	return best
}
