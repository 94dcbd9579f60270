// Package machineconfig answers: does a release take the MachineConfigs of this cluster, and do nodes and pools have them?
//
// A MachineConfig configures the nodes of pools: the machine-config-controller merges those of a pool into a rendered
// one, and names that in an annotation of each node. The checks read the metadata and a few fields of each, in one list
// for all of them; of their files only the default runtime of CRI-O and the paths of network scripts are decoded (package
// nodeconfig).
package machineconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// The annotations by which the machine-config-controller configures a node, and the prefix of the names of MachineConfigs
// that it renders for pools (machine-config-operator pkg/daemon/constants and pkg/controller/common).
const (
	currentConfig  = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig  = "machineconfiguration.openshift.io/desiredConfig"
	renderedPrefix = "rendered-"
)

type configuration struct {
	pools   []machineconfigurationv1.MachineConfigPool
	configs map[string]*snapshot.MachineConfig
	// sorted are their names.
	sorted []string
	// whole is true where the list had all MachineConfigs, so that one which is not there does not exist.
	whole bool
}

// Checks are all checks of MachineConfigs. A new one is added here.
func Checks() []check.Check {
	return []check.Check{RenderedConfigs(), MachineConfigs(), GeneratedConfigs()}
}

// Reads are the requests of all of them: two lists, that of the MachineConfigs with a request for every five of them.
func Reads() []access.Request {
	group := machineconfigurationv1.GroupName
	return append(check.ReadsTopology(), check.List(group, "machineconfigpools"), check.List(group, "machineconfigs"))
}

// NotHosted is why a check of MachineConfigs does not apply to the update of a hosted cluster.
const NotHosted = "NodePools configure its nodes"

// withoutPools is the result on a cluster whose nodes no MachineConfigPool configures; nil for other clusters.
func withoutPools(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, err
	}
	switch topology {
	case snapshot.HyperShift:
		return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonHyperShift, "the control plane of this cluster is hosted; NodePools of the hosting cluster configure its nodes")}, nil
	case snapshot.Kubernetes:
		return []finding.Finding{check.PlainKubernetes("MachineConfigs")}, nil
	case snapshot.SelfManaged:
	}
	return nil, nil
}

// readPools reads the pools. It returns findings for a cluster without them.
func readPools(ctx context.Context, s check.Subject) (*configuration, []finding.Finding, error) {
	if skipped, err := withoutPools(ctx, s); skipped != nil || err != nil {
		return nil, skipped, err
	}
	pools, err := s.Cluster.MachineConfigPools(ctx)
	if apierrors.IsNotFound(err) {
		return nil, []finding.Finding{check.APIMissing("MachineConfigPools", machineconfigurationv1.GroupName)}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("could not list the MachineConfigPools: %w", err)
	}
	return &configuration{pools: pools}, nil, nil
}

// readConfigs reads the MachineConfigs. It returns findings for a cluster without them.
func (c *configuration) readConfigs(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
	watched, log := gap.Watch(ctx)
	all, err := s.Cluster.MachineConfigs(watched)
	if apierrors.IsNotFound(err) {
		return []finding.Finding{check.APIMissing("MachineConfigs", machineconfigurationv1.GroupName)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not list the MachineConfigs: %w", err)
	}
	c.configs, c.whole = make(map[string]*snapshot.MachineConfig, len(all)), len(log.All()) == 0
	for i := range all {
		c.configs[all[i].Name] = &all[i]
		c.sorted = append(c.sorted, all[i].Name)
	}
	slices.Sort(c.sorted)
	return nil, nil
}

func isRendered(name string) bool { return strings.HasPrefix(name, renderedPrefix) }

// renderedOf is the MachineConfig that the nodes of a pool are to have; nil where it is not there.
func (c *configuration) renderedOf(pool *machineconfigurationv1.MachineConfigPool) *snapshot.MachineConfig {
	if config := c.configs[pool.Spec.Configuration.Name]; config != nil {
		return config
	}
	return c.configs[pool.Status.Configuration.Name]
}

// sourcesOf are the MachineConfigs that the machine-config-controller merges for a pool, in its order: that of their names.
func (c *configuration) sourcesOf(pool *machineconfigurationv1.MachineConfigPool) []*snapshot.MachineConfig {
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.MachineConfigSelector)
	if err != nil || selector.Empty() { // which the controller refuses, or which selects nothing
		return nil
	}
	var sources []*snapshot.MachineConfig
	for _, name := range c.sorted {
		if config := c.configs[name]; !isRendered(name) && selector.Matches(labels.Set(config.Labels)) {
			sources = append(sources, config)
		}
	}
	return sources
}

// configsOf are the sources of a pool, and what was rendered from them.
func (c *configuration) configsOf(pool *machineconfigurationv1.MachineConfigPool) []*snapshot.MachineConfig {
	all := c.sourcesOf(pool)
	if rendered := c.renderedOf(pool); rendered != nil {
		all = append(all, rendered)
	}
	return all
}

// names reports whether a pool names a rendered MachineConfig.
func (c *configuration) names() bool {
	return slices.ContainsFunc(c.pools, func(pool machineconfigurationv1.MachineConfigPool) bool {
		return isRendered(pool.Spec.Configuration.Name) || isRendered(pool.Status.Configuration.Name)
	})
}

func poolObject(name string) finding.Object {
	return finding.Object{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: name}
}

func configObject(name string) finding.Object {
	return finding.Object{APIVersion: machineconfigurationv1.GroupVersion.String(), Kind: "MachineConfig", Name: name}
}

// isWindows reports whether the windows-machine-config-operator configures a node, and not the machine-config-operator.
func isWindows(node *corev1.Node) bool {
	return node.Labels[corev1.LabelOSStable] == string(corev1.Windows)
}
