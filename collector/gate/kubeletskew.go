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
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonKubeletMinorVersionUnsupportedNextUpgrade finding.Reason = "KubeletMinorVersionUnsupportedNextUpgrade"
	ReasonKubeletMinorVersionUnsupported            finding.Reason = "KubeletMinorVersionUnsupported"
	ReasonKubeletMinorVersionsSynced                finding.Reason = "KubeletMinorVersionsSynced"
)

const (
	ReasonUnknownKubernetesVersion                finding.Reason = "UnknownKubernetesVersion"
	ReasonKubeletVersionUnknown                   finding.Reason = "KubeletVersionUnknown"
	ReasonKubeletMinorVersionAhead                finding.Reason = "KubeletMinorVersionAhead"
	ReasonNoNodes                                 finding.Reason = "NoNodes"
	ReasonKubeletMinorVersionSupportedNextUpgrade finding.Reason = "KubeletMinorVersionSupportedNextUpgrade"
)

// kubeletSkewTitle is the condition of the cluster-kube-apiserver-operator
// (KASO) that it adds to Upgradeable. A pool's findings have its name appended.
const kubeletSkewTitle = "KubeletMinorVersionUpgradeable"

// KubeletSkew is the gate that keeps the API server from leaving kubelets
// behind that it does not support any longer: a finding for each
// MachineConfigPool that does, or will at a later hop. It concerns updates that
// leave the current minor version; patch updates keep the API server's.
//
// The rules are those of KASO (pkg/operator/kubeletversionskewcontroller), but
// for the API server of the target. Where KASO cannot tell, CVO lets the update
// pass; here that is Unknown.
func KubeletSkew() check.Check {
	return check.Check{
		Name: kubeletSkewTitle, Kind: finding.SourceGate, Concerns: update.Update.LeavesMinor,
		Reads: append(clusterVersionReads(), check.List("", "nodes"), check.List(machineconfigurationv1.GroupName, "machineconfigpools")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if skipped, err := noPools(ctx, s.Cluster); skipped != nil || err != nil {
				return skipped, err
			}
			version, err := s.Cluster.ClusterVersion(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
			}
			skew, known := newKubeletSkew(s.Update, version.Status.Desired.Version)
			if !known {
				return []finding.Finding{unknownKubernetes(s.Update)}, nil
			}
			kubelets, err := s.Cluster.Kubelets(ctx)
			if err != nil && kubelets == nil {
				return nil, err
			}
			findings := skew.judge(kubelets)
			if err != nil {
				findings = slices.DeleteFunc(findings, func(f finding.Finding) bool { return f.Outcome == preflight.Pass })
			}
			return findings, err
		},
	}
}

func unknownKubernetes(u update.Update) finding.Finding {
	return finding.Unknown(ReasonUnknownKubernetesVersion,
		"it is not known here which Kubernetes, or which limit of kubelets, OpenShift %s or %s has", update.Line(u.From), update.Line(u.To)).
		Remedy("Use an oc-preflight that is as new as the target. To compare by hand: oc get nodes; oc adm release info %s", u.To)
}

// supportedSkew is how many minor versions a kubelet may be behind the API
// server of an OpenShift release: what lets every second release of 4, and two
// of three of 5, go by without a reboot.
func supportedSkew(release semver.Version) (minors uint64, known bool) {
	switch release.Major {
	case 4:
		return 2 - release.Minor%2, true
	case 5:
		return 1 + release.Minor%3, true
	}
	return 0, false
}

// oldestKubelet is the oldest kubelet, 1.minor, that a release supports.
func oldestKubelet(release semver.Version) (minor uint64, known bool) {
	kubernetes, known := update.Kubernetes(release)
	skew, policy := supportedSkew(release)
	return kubernetes - skew, known && policy
}

// kubeletSkew judges kubelets by the limits of one update. All minors are those
// of Kubernetes.
type kubeletSkew struct {
	u update.Update
	// now is the API server's, and newest is what it may be already where an
	// update is in progress.
	now, newest uint64
	// oldest is what the target supports, oldestNow what the cluster does.
	oldest, oldestNow uint64
}

func newKubeletSkew(u update.Update, desired string) (kubeletSkew, bool) {
	now, known := update.Kubernetes(u.From)
	oldestNow, limitNow := oldestKubelet(u.From)
	oldest, limit := oldestKubelet(u.To)
	newest := now
	if release, err := semver.Parse(desired); err == nil {
		underway, _ := update.Kubernetes(release)
		newest = max(newest, underway)
	}
	return kubeletSkew{u: u, now: now, newest: newest, oldest: oldest, oldestNow: oldestNow}, known && limitNow && limit
}

func (k kubeletSkew) judge(groups []snapshot.Kubelets) []finding.Finding {
	var unreadable, ahead []snapshot.Kubelets
	pools := map[string]*staleKubelets{}
	for _, group := range groups {
		minor, ok := kubeletMinor(group.Version)
		switch {
		case !ok:
			unreadable = append(unreadable, group)
		case minor > k.newest:
			ahead = append(ahead, group)
		default:
			if pools[group.Pool] == nil {
				pools[group.Pool] = &staleKubelets{pool: group.Pool, paused: group.Paused, oldest: minor, count: map[uint64]int{}}
			}
			pools[group.Pool].add(minor, group)
		}
	}
	findings := k.unclear(unreadable, ahead)
	total := map[uint64]int{}
	for _, pool := range sortedPools(pools) {
		if f, told := k.judgePool(pool); told {
			findings = append(findings, f)
		}
		for minor, count := range pool.count {
			total[minor] += count
		}
	}
	if len(findings) == 0 {
		return []finding.Finding{k.pass(total)}
	}
	return bounded(findings)
}

// unclear are the findings about kubelets that cannot be compared.
func (k kubeletSkew) unclear(unreadable, ahead []snapshot.Kubelets) []finding.Finding {
	var findings []finding.Finding
	if len(unreadable) > 0 {
		findings = append(findings, finding.Unknown(ReasonKubeletVersionUnknown,
			"the version of the kubelet cannot be read: %s; CVO lets the update pass", listKubelets(unreadable)).
			Named("KubeletVersionUnknown").
			Remedy("See whether these kubelets run, and remove nodes that are gone: oc describe node %s", unreadable[0].Nodes[0]).
			About(nodeObjects(unreadable)...))
	}
	if len(ahead) > 0 {
		findings = append(findings, finding.Unknown(ReasonKubeletMinorVersionAhead,
			"kubelets are newer than the API server of %s (Kubernetes 1.%d), which is supported at no skew: %s; CVO lets the update pass", update.Line(k.u.From), k.newest, listKubelets(ahead)).
			Named("KubeletMinorVersionAhead").
			Remedy("Find out whether a rollback or another update left them so: oc get clusterversion version -o yaml; oc get machineconfigpools").
			About(nodeObjects(ahead)...))
	}
	return findings
}

// staleKubelets are the kubelets of one pool.
type staleKubelets struct {
	pool   string
	paused bool
	oldest uint64
	count  map[uint64]int
	groups []snapshot.Kubelets
}

func (l *staleKubelets) add(minor uint64, group snapshot.Kubelets) {
	l.oldest = min(l.oldest, minor)
	l.count[minor] += group.Count
	l.groups = append(l.groups, group)
}

func sortedPools(pools map[string]*staleKubelets) []*staleKubelets {
	var sorted []*staleKubelets
	for _, pool := range pools {
		sorted = append(sorted, pool)
	}
	slices.SortFunc(sorted, func(a, b *staleKubelets) int { return cmp.Compare(a.pool, b.pool) })
	return sorted
}

// judgePool returns the finding of a pool; false for one that this update brings
// up to date.
func (k kubeletSkew) judgePool(pool *staleKubelets) (finding.Finding, bool) {
	f, ok := k.skewOf(pool)
	if !ok {
		return finding.Finding{}, false
	}
	name := kubeletSkewTitle
	if pool.pool != "" {
		name += "-" + pool.pool
	}
	return f.Named(name).About(pool.objects()...).Remedy("%s", pool.remedy()), true
}

func (k kubeletSkew) skewOf(pool *staleKubelets) (finding.Finding, bool) {
	if pool.oldest < k.oldest {
		reason := ReasonKubeletMinorVersionUnsupportedNextUpgrade
		if pool.oldest < k.oldestNow {
			reason = ReasonKubeletMinorVersionUnsupported
		}
		return finding.Fail(reason, "%s, but the API server of %s supports kubelets from 1.%d on; this does not block updates within %s",
			pool, update.Line(k.u.To), k.oldest, update.Line(k.u.From)), true
	}
	hop, oldest := k.hop(pool.oldest)
	next, _ := update.Next(k.u.To)
	atLimit := pool.oldest == k.oldest || hop == update.Line(next)
	if !pool.paused && (!atLimit || (pool.pool != "" && pool.oldest >= k.now)) {
		return finding.Finding{}, false
	}
	reason := ReasonKubeletMinorVersionSupportedNextUpgrade
	if pool.paused {
		reason = ReasonPoolPaused
	}
	return finding.Warn(reason, "%s, which %s supports; %s", pool, update.Line(k.u.To), pool.deadline(hop, oldest)), true
}

// hop is the first release after the target that does not support a kubelet,
// and the oldest one that it does; empty where none that is known does not.
func (k kubeletSkew) hop(minor uint64) (release string, oldest uint64) {
	for hop, known := update.Next(k.u.To); known; hop, known = update.Next(hop) {
		if oldest, limit := oldestKubelet(hop); limit && minor < oldest {
			return update.Line(hop), oldest
		}
	}
	return "", 0
}

func (l *staleKubelets) deadline(hop string, oldest uint64) string {
	what := "they have to be updated"
	if l.paused {
		what = "the pool has to be unpaused, and its nodes updated,"
	}
	if hop == "" {
		return what + " some time: which later release does not support them is not known yet"
	}
	return fmt.Sprintf("%s before the update to %s, which supports kubelets from 1.%d on", what, hop, oldest)
}

// String says what the kubelets are and whose.
func (l *staleKubelets) String() string {
	owner := "nodes that no MachineConfigPool updates"
	if l.pool != "" {
		owner = fmt.Sprintf("MachineConfigPool %q", l.pool)
	}
	if l.paused {
		owner += " (paused)"
	}
	return fmt.Sprintf("%s: %s", owner, listKubelets(l.groups))
}

func (l *staleKubelets) remedy() string {
	switch {
	case l.pool == "":
		return "Update these nodes by the means that installed them, or remove them: oc get nodes -o wide"
	case l.paused:
		return fmt.Sprintf("Unpause the pool, and wait until its nodes are updated:\n"+
			"oc patch machineconfigpool %s --type merge --patch '{\"spec\":{\"paused\":false}}'\n"+
			"oc wait machineconfigpool %s --for condition=Updated --timeout=-1s", l.pool, l.pool)
	}
	return fmt.Sprintf("See what keeps the nodes from being updated, and wait until they are: oc describe machineconfigpool %s", l.pool)
}

func (l *staleKubelets) objects() []preflight.Object {
	nodes := nodeObjects(l.groups)
	if l.pool == "" {
		return nodes
	}
	pool := preflight.Object{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: l.pool}
	return append([]preflight.Object{pool}, nodes...)
}

func (k kubeletSkew) pass(count map[uint64]int) finding.Finding {
	total, oldest := 0, k.newest
	for minor, nodes := range count {
		total += nodes
		oldest = min(oldest, minor)
	}
	if total == 0 {
		return finding.Pass(ReasonNoNodes, "the cluster has no nodes")
	}
	f := finding.Pass(ReasonKubeletMinorVersionSupportedNextUpgrade,
		"the API server of %s supports all %d kubelets, the oldest of which is 1.%d: it supports them from 1.%d on", update.Line(k.u.To), total, oldest, k.oldest)
	if hop, _ := k.hop(oldest); hop != "" {
		f.Message += "; they have to follow before the update to " + hop
	}
	if oldest >= k.now {
		f.Reason = string(ReasonKubeletMinorVersionsSynced)
	}
	return f
}

// kubeletMinor reads the y of v1.y.z.
func kubeletMinor(version string) (uint64, bool) {
	parsed, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return parsed.Minor, err == nil && parsed.Major == 1
}

// listKubelets names a few versions, and a few nodes of each.
func listKubelets(groups []snapshot.Kubelets) string {
	const most = 5
	var texts []string
	for _, group := range groups {
		version := fmt.Sprintf("%q", short(group.Version, 40))
		if minor, ok := kubeletMinor(group.Version); ok {
			version = fmt.Sprintf("1.%d (%s)", minor, short(group.Version, 40))
		}
		nodes := strings.Join(group.Nodes, ", ")
		if more := group.Count - len(group.Nodes); more > 0 {
			nodes += fmt.Sprintf(" and %d more", more)
		}
		texts = append(texts, fmt.Sprintf("kubelet %s on %s", version, nodes))
	}
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d other versions", strings.Join(texts[:most], "; "), len(texts)-most)
}

// nodeObjects are the first nodes of the first groups.
func nodeObjects(groups []snapshot.Kubelets) []preflight.Object {
	const most = 10
	var objects []preflight.Object
	for _, group := range groups {
		for _, node := range group.Nodes {
			if len(objects) < most {
				objects = append(objects, preflight.Object{APIVersion: "v1", Kind: "Node", Name: node})
			}
		}
	}
	return objects
}
