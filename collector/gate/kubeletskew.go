package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
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
func KubeletSkew(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: kubeletSkewTitle, Kind: preflight.SourceGate, Update: u, Concerns: update.Update.LeavesMinor,
		Look: func(ctx context.Context) ([]preflight.Finding, error) {
			if skipped, err := noPools(ctx, cluster); skipped != nil || err != nil {
				return skipped, err
			}
			version, err := cluster.ClusterVersion(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
			}
			skew, known := newKubeletSkew(u, version.Status.Desired.Version)
			if !known {
				return []preflight.Finding{unknownKubernetes(u)}, nil
			}
			kubelets, err := cluster.Kubelets(ctx)
			if err != nil && kubelets == nil {
				return nil, err
			}
			findings := skew.judge(kubelets)
			if err != nil {
				findings = slices.DeleteFunc(findings, func(f preflight.Finding) bool { return f.Outcome == preflight.Pass })
			}
			return findings, err
		},
	}
}

func unknownKubernetes(u update.Update) preflight.Finding {
	return preflight.Finding{
		Outcome: preflight.Unknown, Reason: "UnknownKubernetesVersion",
		Message: fmt.Sprintf("it is not known here which Kubernetes, or which limit of kubelets, OpenShift %s or %s has", update.Line(u.From), update.Line(u.To)),
		Remediation: fmt.Sprintf("Use an oc-preflight that is as new as the target. To compare by hand: oc get nodes; oc adm release info %s",
			u.To),
	}
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

func (k kubeletSkew) judge(groups []snapshot.Kubelets) []preflight.Finding {
	var unreadable, ahead []snapshot.Kubelets
	pools := map[string]*laggards{}
	for _, group := range groups {
		minor, ok := kubeletMinor(group.Version)
		switch {
		case !ok:
			unreadable = append(unreadable, group)
		case minor > k.newest:
			ahead = append(ahead, group)
		default:
			if pools[group.Pool] == nil {
				pools[group.Pool] = &laggards{pool: group.Pool, paused: group.Paused, oldest: minor, count: map[uint64]int{}}
			}
			pools[group.Pool].add(minor, group)
		}
	}
	findings := k.unclear(unreadable, ahead)
	total := map[uint64]int{}
	for _, pool := range sortedPools(pools) {
		if finding, told := k.judgePool(pool); told {
			findings = append(findings, finding)
		}
		for minor, count := range pool.count {
			total[minor] += count
		}
	}
	if len(findings) == 0 {
		return []preflight.Finding{k.pass(total)}
	}
	return bounded(findings)
}

// unclear are the findings about kubelets that cannot be compared.
func (k kubeletSkew) unclear(unreadable, ahead []snapshot.Kubelets) []preflight.Finding {
	var findings []preflight.Finding
	if len(unreadable) > 0 {
		findings = append(findings, preflight.Finding{
			Name: "KubeletVersionUnknown", Outcome: preflight.Unknown, Reason: "KubeletVersionUnknown",
			Message:     "the version of the kubelet cannot be read: " + listKubelets(unreadable) + "; CVO lets the update pass",
			Remediation: "See whether these kubelets run, and remove nodes that are gone: oc describe node " + unreadable[0].Nodes[0],
			Objects:     nodeObjects(unreadable),
		})
	}
	if len(ahead) > 0 {
		findings = append(findings, preflight.Finding{
			Name: "KubeletMinorVersionAhead", Outcome: preflight.Unknown, Reason: "KubeletMinorVersionAhead",
			Message: fmt.Sprintf("kubelets are newer than the API server of %s (Kubernetes 1.%d), which is supported at no skew: %s; CVO lets the update pass",
				update.Line(k.u.From), k.newest, listKubelets(ahead)),
			Remediation: "Find out whether a rollback or another update left them so: oc get clusterversion version -o yaml; oc get machineconfigpools",
			Objects:     nodeObjects(ahead),
		})
	}
	return findings
}

// laggards are the kubelets of one pool.
type laggards struct {
	pool   string
	paused bool
	oldest uint64
	count  map[uint64]int
	groups []snapshot.Kubelets
}

func (l *laggards) add(minor uint64, group snapshot.Kubelets) {
	l.oldest = min(l.oldest, minor)
	l.count[minor] += group.Count
	l.groups = append(l.groups, group)
}

func sortedPools(pools map[string]*laggards) []*laggards {
	var sorted []*laggards
	for _, pool := range pools {
		sorted = append(sorted, pool)
	}
	slices.SortFunc(sorted, func(a, b *laggards) int { return cmp.Compare(a.pool, b.pool) })
	return sorted
}

// judgePool says nothing of a pool that this update brings along.
func (k kubeletSkew) judgePool(pool *laggards) (preflight.Finding, bool) {
	finding := preflight.Finding{Name: kubeletSkewTitle, Objects: pool.objects(), Remediation: pool.remedy()}
	if pool.pool != "" {
		finding.Name += "-" + pool.pool
	}
	if pool.oldest < k.oldest {
		finding.Outcome, finding.Reason = preflight.Fail, "KubeletMinorVersionUnsupportedNextUpgrade"
		if pool.oldest < k.oldestNow {
			finding.Reason = "KubeletMinorVersionUnsupported"
		}
		finding.Message = fmt.Sprintf("%s, but the API server of %s supports kubelets from 1.%d on; this does not block updates within %s",
			pool, update.Line(k.u.To), k.oldest, update.Line(k.u.From))
		return finding, true
	}
	hop, oldest := k.hop(pool.oldest)
	next, _ := update.Next(k.u.To)
	atLimit := pool.oldest == k.oldest || hop == update.Line(next)
	if !pool.paused && (!atLimit || (pool.pool != "" && pool.oldest >= k.now)) {
		return preflight.Finding{}, false
	}
	finding.Outcome, finding.Reason = preflight.Warn, "KubeletMinorVersionSupportedNextUpgrade"
	if pool.paused {
		finding.Reason = "PoolPaused"
	}
	finding.Message = fmt.Sprintf("%s, which %s supports; %s", pool, update.Line(k.u.To), pool.deadline(hop, oldest))
	return finding, true
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

func (l *laggards) deadline(hop string, oldest uint64) string {
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
func (l *laggards) String() string {
	owner := "nodes that no MachineConfigPool updates"
	if l.pool != "" {
		owner = fmt.Sprintf("MachineConfigPool %q", l.pool)
	}
	if l.paused {
		owner += " (paused)"
	}
	return fmt.Sprintf("%s: %s", owner, listKubelets(l.groups))
}

func (l *laggards) remedy() string {
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

func (l *laggards) objects() []preflight.Object {
	nodes := nodeObjects(l.groups)
	if l.pool == "" {
		return nodes
	}
	pool := preflight.Object{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: l.pool}
	return append([]preflight.Object{pool}, nodes...)
}

func (k kubeletSkew) pass(count map[uint64]int) preflight.Finding {
	total, oldest := 0, k.newest
	for minor, nodes := range count {
		total += nodes
		oldest = min(oldest, minor)
	}
	if total == 0 {
		return preflight.Finding{Outcome: preflight.Pass, Reason: "NoNodes", Message: "the cluster has no nodes"}
	}
	finding := preflight.Finding{
		Outcome: preflight.Pass, Reason: "KubeletMinorVersionSupportedNextUpgrade",
		Message: fmt.Sprintf("the API server of %s supports all %d kubelets, the oldest of which is 1.%d: it supports them from 1.%d on",
			update.Line(k.u.To), total, oldest, k.oldest),
	}
	if hop, _ := k.hop(oldest); hop != "" {
		finding.Message += "; they have to follow before the update to " + hop
	}
	if oldest >= k.now {
		finding.Reason = "KubeletMinorVersionsSynced"
	}
	return finding
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
