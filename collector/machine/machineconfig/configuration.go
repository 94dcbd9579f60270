// Package machineconfig answers: does a release accept the MachineConfigs of this cluster, and do nodes and pools
// have them?
//
// A MachineConfig configures the nodes of pools: the machine-config-controller merges the MachineConfigs of a pool
// into a rendered one, and names it in an annotation of each node. The checks read the metadata and a few fields
// of each, in one list for all of them; of their files only the default runtime of CRI-O and the paths of network
// scripts are decoded (package nodeconfig).
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
	"github.com/openshift/update-preflight/collector/words"
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

// Reads returns the requests of all these checks: two lists; the list of MachineConfigs needs one request for
// every five of them.
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
		return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonHyperShift,
			"the control plane of this cluster is hosted; NodePools of the management cluster configure its nodes")}, nil
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

// sourcesOf returns the MachineConfigs that the machine-config-controller merges for a pool, in its order: by
// name.
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

var (
	nameRenderedConfigs = finding.NewName("RenderedConfigs",
		"Checks for rendered MachineConfigs that a node or a MachineConfigPool names but that do not exist, or that would be deleted "+
			"with an object other than their pool (machine-config-operator#2010 and #2635). It concerns every update. Releases do not "+
			"remove rendered MachineConfigs; people do, and restored backups lack them.")

	reasonNodeConfigMissing = finding.NewReason("NodeConfigMissing", finding.Explanation{
		Meaning: "The current or desired configuration of some nodes is a MachineConfig that does not exist, so these nodes are not " +
			"updated.",
		Cause: "It was deleted, or its pool was. The machine-config-daemon of such a node reads both before it does anything " +
			"(pkg/daemon/daemon.go, getStateAndConfigs, of all releases): it marks the node Degraded, and stops updating it.",
		Remedy: "Restore the MachineConfig from a backup. Without one, make an existing MachineConfig the current and the desired one " +
			"of the node, with its annotations and its file /etc/machine-config-daemon/currentconfig.",
		Command: "oc get machineconfigs",
	})
	reasonPoolConfigMissing = finding.NewReason("PoolConfigMissing", finding.Explanation{
		Meaning: "The configuration of a MachineConfigPool is a MachineConfig that does not exist.",
		Cause: "It was deleted. The machine-config-controller renders the MachineConfig in spec again; until the pool has the one in " +
			"status, the machine-config-server has no configuration for a new machine (pkg/server/cluster_server.go).",
		Remedy:  "Check that the machine-config-controller renders the MachineConfig again; otherwise restore it from a backup.",
		Command: "oc get machineconfigs",
	})
	reasonConfigOwner = finding.NewReason("ConfigOwner", finding.Explanation{
		Meaning: "The MachineConfig that was rendered for a pool belongs to another object, with which Kubernetes deletes it.",
		Cause: "The pool was deleted and recreated, for example from a backup, so its UID differs, or the owner was edited. The " +
			"garbage collector of Kubernetes deletes an object whose owners do not exist. The machine-config-controller sets the pool " +
			"as the owner only when it creates the MachineConfig (pkg/controller/render).",
		Remedy:  "Replace the owner of the MachineConfig with the pool that uses it.",
		Command: "oc get machineconfig NAME -o yaml",
	})
	reasonNoConfigs = finding.NewReason("NoMachineConfigs", finding.Explanation{
		Meaning: "The cluster has no MachineConfig at all, although nodes or pools name some.",
		Cause:   "The machine-config-operator, which creates several for each pool, has never run, or all were deleted.",
		Remedy:  "Check that the machine-config-operator is running.",
		Command: "oc -n openshift-machine-config-operator get pods",
	})

	namePoolConfigMissing = reasonPoolConfigMissing.Names("PoolConfigMissing")
	nameNodeConfigMissing = reasonNodeConfigMissing.Names("NodeConfigMissing")
	nameConfigOwner       = reasonConfigOwner.Names("ConfigOwner")
)

const (
	// maxConfigsNamed bounds the nodes, pools and MachineConfigs of a message.
	maxConfigsNamed = 10
	// maxName is the length of the longest name of an object, in bytes. An annotation may have more.
	maxName = 253
)

// RenderedConfigs is the check RenderedConfigs.
func RenderedConfigs() check.Check {
	return check.Check{
		Name: nameRenderedConfigs, Kind: finding.SourceHealth, NotHosted: NotHosted,
		Reads: append(Reads(), check.List("", "nodes")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			configuration, without, err := readPools(ctx, s)
			if without != nil || err != nil {
				return without, err
			}
			nodes, err := s.Cluster.Nodes(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the nodes: %w", err)
			}
			if !configuration.names() && !slices.ContainsFunc(nodes, func(node corev1.Node) bool { return len(namedBy(&node)) > 0 }) {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected,
					"no node and no MachineConfigPool names a rendered MachineConfig")}, nil
			}
			if without, err := configuration.readConfigs(ctx, s); without != nil || err != nil {
				return without, err
			}
			found := configuration.judgeReferences(nodes)
			if len(found) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "the MachineConfigs that %s and %s name exist",
					words.Count(len(nodes), "node"), words.Count(len(configuration.pools), "MachineConfigPool"))}, nil
			}
			return found, nil
		},
	}
}

// judgeReferences is about what does not exist, or will not; nothing where all is as expected. Where the list of
// MachineConfigs is a part, it states nothing about those that it lacks.
func (c *configuration) judgeReferences(nodes []corev1.Node) []finding.Finding {
	if len(c.configs) == 0 && c.whole {
		return []finding.Finding{finding.Warn(reasonNoConfigs,
			"the cluster has no MachineConfig at all, although its nodes or MachineConfigPools name some").
			Do(finding.Read("oc -n openshift-machine-config-operator get pods"), finding.Read("oc get machineconfigs,machineconfigpools"))}
	}
	var found []finding.Finding
	add := func(f finding.Finding, ok bool) {
		if ok {
			found = append(found, f)
		}
	}
	if c.whole {
		add(c.missingOfNodes(nodes))
		add(c.missingOfPools())
	}
	add(c.foreign())
	return found
}

// namedBy are the rendered MachineConfigs that a node names, by the annotation.
func namedBy(node *corev1.Node) map[string]string {
	named := map[string]string{}
	if isWindows(node) {
		return named
	}
	for _, annotation := range []string{currentConfig, desiredConfig} {
		if name := node.Annotations[annotation]; isRendered(name) {
			named[annotation] = words.Line(name, maxName)
		}
	}
	return named
}

type subjects struct {
	clauses []string
	objects []finding.Object
	configs []string
}

func (s *subjects) add(of finding.Object, config, format string, args ...any) {
	s.clauses = append(s.clauses, fmt.Sprintf(format, args...))
	if !slices.Contains(s.objects, of) {
		s.objects = append(s.objects, of)
	}
	if !slices.Contains(s.configs, config) {
		s.configs = append(s.configs, config)
	}
}

func (s *subjects) all() []finding.Object {
	all := slices.Clone(s.objects)
	for _, name := range s.configs {
		all = append(all, configObject(name))
	}
	return all
}

func (c *configuration) missingOfNodes(nodes []corev1.Node) (finding.Finding, bool) {
	var missing subjects
	for i := range nodes {
		named := namedBy(&nodes[i])
		for _, annotation := range []string{desiredConfig, currentConfig} {
			if name := named[annotation]; name != "" && c.configs[name] == nil {
				missing.add(finding.Object{APIVersion: "v1", Kind: "Node", Name: nodes[i].Name}, name, "%s of node %s is %s", annotation, nodes[i].Name,
					name)
			}
		}
	}
	if len(missing.clauses) == 0 {
		return finding.Finding{}, false
	}
	count := len(missing.objects)
	return finding.Fail(reasonNodeConfigMissing,
		"MachineConfigs of %d of %s do not exist, so the machine-config-daemon does not update these: %s",
		count, words.Count(len(nodes), "node"), words.Clauses(missing.clauses, maxConfigsNamed)).
		Named(nameNodeConfigMissing).
		Do(finding.Read("oc get machineconfigs"), finding.Read("oc get node %s -o yaml", missing.objects[0].Name),
			finding.Read("oc -n openshift-machine-config-operator logs -l k8s-app=machine-config-daemon -c machine-config-daemon")).
		About(missing.all()...), true
}

func (c *configuration) missingOfPools() (finding.Finding, bool) {
	var missing subjects
	for i := range c.pools {
		pool := &c.pools[i]
		for _, field := range []struct{ path, name string }{
			{"spec.configuration", pool.Spec.Configuration.Name}, {"status.configuration", pool.Status.Configuration.Name},
		} {
			if isRendered(field.name) && c.configs[field.name] == nil {
				missing.add(poolObject(pool.Name), field.name, "%s of MachineConfigPool %q is %s", field.path, pool.Name, field.name)
			}
		}
	}
	if len(missing.clauses) == 0 {
		return finding.Finding{}, false
	}
	return finding.Warn(reasonPoolConfigMissing,
		"MachineConfigPools name MachineConfigs that do not exist, so new machines get no configuration: %s",
		words.Clauses(missing.clauses, maxConfigsNamed)).
		Named(namePoolConfigMissing).
		Do(finding.Read("oc get machineconfigs"), finding.Read("oc describe machineconfigpool %s", missing.objects[0].Name),
			finding.Read("oc -n openshift-machine-config-operator logs -l k8s-app=machine-config-controller -c machine-config-controller")).
		About(missing.all()...), true
}

// foreign is about rendered MachineConfigs whose owner is not the pool that uses them.
func (c *configuration) foreign() (finding.Finding, bool) {
	var foreign subjects
	for i := range c.pools {
		pool := &c.pools[i]
		names := []string{pool.Spec.Configuration.Name, pool.Status.Configuration.Name}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			config := c.configs[name]
			if config == nil || !isRendered(name) || len(config.OwnerReferences) == 0 || slices.ContainsFunc(config.OwnerReferences, ownedBy(pool)) {
				continue
			}
			owner := config.OwnerReferences[0]
			foreign.add(configObject(name), name, "MachineConfig %s of MachineConfigPool %q belongs to %s %q with the UID %s", name, pool.Name,
				owner.Kind, owner.Name, owner.UID)
		}
	}
	if len(foreign.clauses) == 0 {
		return finding.Finding{}, false
	}
	return finding.Warn(reasonConfigOwner, "rendered MachineConfigs are deleted with an object other than the MachineConfigPool that "+
		"uses them, and immediately if that object does not exist: %s",
		words.Clauses(foreign.clauses, maxConfigsNamed)).
		Named(nameConfigOwner).
		Do(finding.Read("oc get machineconfig %s -o yaml", foreign.configs[0]), finding.Read("oc get machineconfigpools -o yaml")).
		About(foreign.objects...), true
}

// ownedBy reports whether an owner is a pool. Without a UID, as in a manifest, the name decides.
func ownedBy(pool *machineconfigurationv1.MachineConfigPool) func(metav1.OwnerReference) bool {
	return func(owner metav1.OwnerReference) bool {
		return owner.Kind == "MachineConfigPool" && owner.Name == pool.Name && (owner.UID == "" || pool.UID == "" || owner.UID == pool.UID)
	}
}
