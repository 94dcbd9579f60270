package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	kubeletSkewName = finding.NewName("KubeletMinorVersionUpgradeable",
		"Blocks updates to another minor or major version whose API server does not support the cluster's kubelets; patch updates keep "+
			"the minor version of the API server. Each MachineConfigPool with kubelets that the target or a later release does not "+
			"support has a finding KubeletMinorVersionUpgradeable-<pool>. The rules are KASO's "+
			"(pkg/operator/kubeletversionskewcontroller), applied to the API server of the target. Where KASO reports Unknown, CVO "+
			"accepts the update; this check is inconclusive.")

	kubeletVersionUnknownName = finding.NewName("KubeletVersionUnknown", "Kubelets whose version cannot be read.")

	kubeletVersionAheadName = finding.NewName("KubeletMinorVersionAhead",
		"Kubelets that are newer than the API server.")

	reasonKubeletMinorVersionsSynced = finding.NewReason("KubeletMinorVersionsSynced", finding.Explanation{
		Meaning: "All kubelets have the minor version of the API server.",
		Cause:   "All nodes are up to date.",
	})
	reasonKubeletMinorVersionSupportedNextUpgrade = finding.NewReason("KubeletMinorVersionSupportedNextUpgrade", finding.Explanation{
		Meaning: "Kubelets are older than the API server, but the API server of the target supports them.",
		Cause: "The last update did not include these nodes, or no MachineConfigPool updates them. A warning means that a later update " +
			"is blocked until they are updated.",
		Remedy: "Update the nodes before the update to the release in the message: `oc describe machineconfigpool NAME`.",
	})
	reasonKubeletMinorVersionUnsupportedNextUpgrade = finding.NewReason("KubeletMinorVersionUnsupportedNextUpgrade", finding.Explanation{
		Meaning: "The API server of the target does not support the version of some kubelets. This blocks updates to another minor " +
			"version.",
		Cause:  "The pool of these nodes is paused, degraded or still updating, or no MachineConfigPool updates them.",
		Remedy: "Update the nodes first: `oc describe machineconfigpool NAME`.",
	})
	reasonKubeletMinorVersionUnsupported = finding.NewReason("KubeletMinorVersionUnsupported", finding.Explanation{
		Meaning: "Even the current API server does not support the version of some kubelets.",
		Cause:   "The nodes missed several updates.",
		Remedy:  "Update the nodes first: `oc describe machineconfigpool NAME`.",
	})
	reasonKubeletMinorVersionAhead = finding.NewReason("KubeletMinorVersionAhead", finding.Explanation{
		Meaning: "Kubelets are newer than the API server, which no release supports.",
		Cause:   "A rollback or a failed update left the nodes at a newer version.",
		Remedy:  "Check whether a rollback or another update left the nodes at a newer version.",
		Command: "oc get clusterversion version -o yaml",
	})
	reasonKubeletVersionUnknown = finding.NewReason("KubeletVersionUnknown", finding.Explanation{
		Meaning: "The version of a kubelet is not of the form v1.31.4, so the check is inconclusive.",
		Cause:   "The kubelet has never run, or is a custom build.",
		Remedy:  "Check the node, and remove it if it no longer exists: `oc describe node NAME`.",
	})
	reasonNoNodes = finding.NewReason("NoNodes", finding.Explanation{
		Meaning: "The cluster has no nodes.",
		Cause:   "A hosted cluster can be scaled to zero.",
	})
)

const (
	// maxKubeletVersion bounds a kubelet's version in a message, in bytes.
	maxKubeletVersion = 40
)

// KubeletSkew is the check KubeletMinorVersionUpgradeable.
func KubeletSkew() check.Check {
	return check.Check{
		Name: kubeletSkewName, Kind: finding.SourceGate,
		Reads: append(check.ReadsClusterVersion(), check.List("", "nodes"), check.List(machineconfigurationv1.GroupName, "machineconfigpools")),
		Run: measure.Run(measure.ByUpgradeable, func(ctx context.Context, s check.Subject, m measure.Measure) ([]finding.Finding, error) {
			if skipped, err := withoutPools(ctx, s); skipped != nil || err != nil {
				return skipped, err
			}
			skew, known := newKubeletSkew(m)
			if !known {
				return []finding.Finding{unknownKubernetes(m.Update)}, nil
			}
			kubelets, err := s.Cluster.Kubelets(ctx)
			if err != nil && kubelets == nil {
				return nil, err
			}
			skew.read = gap.ExtentOf(ctx)
			findings := skew.evaluate(kubelets)
			if err != nil {
				findings = finding.WithoutPasses(findings)
			}
			return findings, err
		}),
	}
}

func unknownKubernetes(u update.Update) finding.Finding {
	return finding.Unknown(check.ReasonUnknownKubernetesVersion,
		"this version of the preflight does not know the Kubernetes version of OpenShift %s or %s, or its oldest supported kubelet",
		update.Line(u.From),
		update.Line(u.To)).
		Remedy("Use a version of the preflight that is at least as new as the target, or compare the kubelet versions with the target "+
			"yourself.").
		Do(finding.Read("oc get nodes"), finding.OnThisMachine("oc adm release info %s", u.To))
}

// kubeletSkew evaluates kubelets by the limits of one update. All minors are minor versions of Kubernetes.
type kubeletSkew struct {
	measure.Measure

	read gap.Extent
	// now is the minor of the API server; newest is the one that it may have
	// already while an update is in progress.
	now, newest uint64
	// oldest is the oldest kubelet that the target supports, oldestNow the oldest that the cluster supports.
	oldest, oldestNow uint64
}

func newKubeletSkew(m measure.Measure) (kubeletSkew, bool) {
	now, known := update.Kubernetes(m.Update.From)
	oldestNow, limitNow := update.OldestKubelet(m.Update.From)
	oldest, limit := update.OldestKubelet(m.Update.To)
	completed, _ := update.Kubernetes(m.Completed)
	desired, _ := update.Kubernetes(m.Desired)
	return kubeletSkew{Measure: m, now: now, newest: max(completed, desired), oldest: oldest, oldestNow: oldestNow}, known && limitNow && limit
}

func (k kubeletSkew) evaluate(groups []snapshot.Kubelets) []finding.Finding {
	var unreadable, ahead []snapshot.Kubelets
	pools := map[string]*poolKubelets{}
	for _, group := range groups {
		minor, ok := kubeletMinor(group.Version)
		switch {
		case !ok:
			unreadable = append(unreadable, group)
		case minor > k.newest:
			ahead = append(ahead, group)
		default:
			if pools[group.Pool] == nil {
				pools[group.Pool] = &poolKubelets{
					pool: group.Pool, unknown: group.PoolUnknown, paused: group.Paused, pausedBy: group.PausedBy,
					oldest: minor, count: map[uint64]int{},
				}
			}
			pools[group.Pool].add(minor, group)
		}
	}
	findings := k.incomparable(unreadable, ahead)
	total := map[uint64]int{}
	for _, pool := range sortedPools(pools) {
		if f, ok := k.judgePool(pool); ok {
			findings = append(findings, f)
		}
		for minor, count := range pool.count {
			total[minor] += count
		}
	}
	if len(findings) == 0 {
		return []finding.Finding{k.pass(total)}
	}
	return finding.Bounded(finding.Drafts(findings...))
}

// incomparable are the findings about kubelets that cannot be compared.
func (k kubeletSkew) incomparable(unreadable, ahead []snapshot.Kubelets) []finding.Finding {
	var findings []finding.Finding
	if len(unreadable) > 0 {
		findings = append(findings, finding.Unknown(reasonKubeletVersionUnknown,
			"cannot parse the kubelet version: %s; CVO accepts the update", listKubelets(unreadable)).
			Named(kubeletVersionUnknownName).
			Remedy("Check that these kubelets are running, and remove nodes that no longer exist.").
			Do(finding.Read("oc describe node %s", unreadable[0].Nodes[:min(len(unreadable[0].Nodes), maxNamedNodes)])).
			About(nodeObjects(unreadable)...))
	}
	if len(ahead) > 0 {
		findings = append(findings, finding.Unknown(reasonKubeletMinorVersionAhead,
			"kubelets are newer than the API server of %s (Kubernetes 1.%d), which no release supports: %s; CVO accepts the update",
			update.Line(k.Update.From), k.newest, listKubelets(ahead)).
			Named(kubeletVersionAheadName).
			Do(finding.Read("oc get clusterversion version -o yaml"), finding.Read("oc get machineconfigpools")).
			About(nodeObjects(ahead)...))
	}
	return findings
}

type poolKubelets struct {
	pool string
	// unknown is true where it is not known whether a pool updates them.
	unknown  bool
	paused   bool
	pausedBy string
	oldest   uint64
	count    map[uint64]int
	groups   []snapshot.Kubelets
}

func (p *poolKubelets) add(minor uint64, group snapshot.Kubelets) {
	p.oldest = min(p.oldest, minor)
	p.count[minor] += len(group.Nodes)
	p.groups = append(p.groups, group)
}

func sortedPools(pools map[string]*poolKubelets) []*poolKubelets {
	var sorted []*poolKubelets
	for _, pool := range pools {
		sorted = append(sorted, pool)
	}
	slices.SortFunc(sorted, func(a, b *poolKubelets) int { return cmp.Compare(a.pool, b.pool) })
	return sorted
}

// judgePool returns the finding of a pool; false for a pool that this update brings up to date.
func (k kubeletSkew) judgePool(pool *poolKubelets) (finding.Finding, bool) {
	f, ok := k.skewOf(pool)
	if !ok {
		return finding.Finding{}, false
	}
	name := kubeletSkewName
	if pool.pool != "" {
		name += "-" + pool.pool
	}
	return pool.remedy(f).Named(name).About(pool.objects()...), true
}

func (k kubeletSkew) skewOf(pool *poolKubelets) (finding.Finding, bool) {
	if pool.oldest < k.oldest {
		reason := reasonKubeletMinorVersionUnsupportedNextUpgrade
		if pool.oldest < k.oldestNow {
			reason = reasonKubeletMinorVersionUnsupported
		}
		return finding.Fail(reason, "%s, but the API server of %s supports kubelets from 1.%d on; this does not block updates within %s",
			pool, update.Line(k.Update.To), k.oldest, k.Within), true
	}
	hop, oldest := k.hop(pool.oldest)
	next, _ := update.Next(k.Update.To)
	atLimit := pool.oldest == k.oldest || hop == update.Line(next)
	if !pool.paused && (!atLimit || (pool.pool != "" && pool.oldest >= k.now)) {
		return finding.Finding{}, false
	}
	reason := reasonKubeletMinorVersionSupportedNextUpgrade
	if pool.paused {
		reason = reasonPoolPaused
	}
	return finding.Warn(reason, "%s, which %s supports; %s", pool, update.Line(k.Update.To), pool.deadline(hop, oldest)), true
}

// hop is the first known release after the target that does not support a kubelet, with the oldest that it supports.
func (k kubeletSkew) hop(minor uint64) (release string, oldest uint64) {
	for hop, known := update.Next(k.Update.To); known; hop, known = update.Next(hop) {
		if oldest, limit := update.OldestKubelet(hop); limit && minor < oldest {
			return update.Line(hop), oldest
		}
	}
	return "", 0
}

func (p *poolKubelets) deadline(hop string, oldest uint64) string {
	task := "they must be updated"
	if p.paused {
		task = "the pool must be unpaused, and its nodes updated,"
	}
	if hop == "" {
		return task + " later; the first release that does not support them is unknown"
	}
	return fmt.Sprintf("%s before the update to %s, which supports kubelets from 1.%d on", task, hop, oldest)
}

func (p *poolKubelets) String() string {
	owner := "nodes that no MachineConfigPool updates"
	switch {
	case p.unknown:
		owner = "nodes whose MachineConfigPool is unknown"
	case p.pool != "":
		owner = fmt.Sprintf("MachineConfigPool %q", p.pool)
	}
	if p.paused {
		owner += " (paused)"
	}
	return fmt.Sprintf("%s: %s", owner, listKubelets(p.groups))
}

func (p *poolKubelets) remedy(f finding.Finding) finding.Finding {
	switch {
	case p.unknown:
		return f.Remedy("Read the MachineConfigPools, then check why these nodes are not updated.").Do(
			finding.Read("oc get machineconfigpools"), finding.Read("oc get nodes -o wide"))
	case p.pool == "":
		return f.Remedy("Update these nodes with the tool that installed them, or remove them.").Do(finding.Read("oc get nodes -o wide"))
	case p.paused:
		return check.Unpause(f, p.pool, p.pausedBy,
			"Unpause the pool, and wait until its nodes are updated.").Do(finding.Read(waitForPool, p.pool))
	}
	return f.Remedy("Check why the nodes are not updated, and wait until they are.").
		Do(finding.Read("oc describe machineconfigpool %s", p.pool), finding.Read(waitForPool, p.pool))
}

func (p *poolKubelets) objects() []finding.Object {
	nodes := nodeObjects(p.groups)
	if p.pool == "" {
		return nodes
	}
	return append([]finding.Object{poolObject(p.pool)}, nodes...)
}

func (k kubeletSkew) pass(count map[uint64]int) finding.Finding {
	total, oldest := 0, k.newest
	for minor, nodes := range count {
		total += nodes
		oldest = min(oldest, minor)
	}
	if total == 0 {
		return finding.Pass(k.read, reasonNoNodes, "the cluster has no nodes")
	}
	deadline := ""
	if hop, _ := k.hop(oldest); hop != "" {
		deadline = "; they must be updated before the update to " + hop
	}
	reason := reasonKubeletMinorVersionSupportedNextUpgrade
	if oldest >= k.now {
		reason = reasonKubeletMinorVersionsSynced
	}
	return finding.Pass(k.read, reason, "the API server of %s supports %s: the oldest is 1.%d, and it supports kubelets from 1.%d on%s",
		update.Line(k.Update.To), words.Count(total, "kubelet"), oldest, k.oldest, deadline)
}

// kubeletMinor parses the y of v1.y.z.
func kubeletMinor(version string) (uint64, bool) {
	parsed, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return parsed.Minor, err == nil && parsed.Major == 1
}

// listKubelets names a few versions, and at most maxNamedNodes nodes of each.
const maxNamedNodes = 5

func listKubelets(groups []snapshot.Kubelets) string {
	const most = 5
	var texts []string
	for _, group := range groups {
		version := fmt.Sprintf("%q", words.Line(group.Version, maxKubeletVersion))
		if minor, ok := kubeletMinor(group.Version); ok {
			version = fmt.Sprintf("1.%d (%s)", minor, words.Line(group.Version, maxKubeletVersion))
		}
		texts = append(texts, fmt.Sprintf("kubelet %s on %s", version, words.List(group.Nodes, maxNamedNodes)))
	}
	return words.Clauses(texts, most)
}

func nodeObjects(groups []snapshot.Kubelets) []finding.Object {
	var objects []finding.Object
	for _, group := range groups {
		for _, node := range group.Nodes {
			objects = append(objects, finding.Object{APIVersion: "v1", Kind: "Node", Name: node})
		}
	}
	return objects
}
