package hosted

import (
	"context"
	"fmt"
	"time"

	"github.com/blang/semver/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hosted/workload"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// Route is the order in which a control plane and its NodePools are updated along a path.
type Route struct {
	Steps []Step
	// Missing lists unknown parts of the order, and Notices releases that HyperShift would accept although they are
	// not on the path.
	Missing, Notices []string
}

// Step is the update of one object, in the order of the updates.
type Step struct {
	Object   finding.Object
	From, To string
	// Action requests it in the management cluster.
	Action finding.Action
}

// Route returns the route along a path that starts with the current release; empty if there is no hosted cluster.
// The error is about a version.
func (e Estate) Route(path []update.Release) (Route, error) {
	c := e.controlPlane
	if c == nil {
		return Route{}, nil
	}
	var versions []semver.Version
	images := map[string]string{}
	for _, each := range path {
		parsed, err := semver.Parse(each.Version)
		if err != nil {
			return Route{}, fmt.Errorf("version %q: %w", each.Version, err)
		}
		versions, images[parsed.String()] = append(versions, parsed), each.Image
	}
	var made Route
	if c.poolsError != nil {
		made.Missing = append(made.Missing, fmt.Sprintf("the updates of the NodePools: %v", c.poolsError))
	}
	pools, unknown := runningPools(c.pools)
	if len(unknown) > 0 {
		made.Missing = append(made.Missing, "the updates of NodePools that do not report their version: "+words.List(unknown, most))
	}
	for _, each := range hypershift.Order(versions, pools) {
		object := finding.Object{
			APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster", Namespace: c.Cluster.Namespace,
			Name: c.Cluster.Name,
		}
		if each.Pool != "" {
			object.Kind, object.Name = "NodePool", each.Pool
		}
		made.Steps = append(made.Steps, Step{
			Object: object, From: each.From.String(), To: each.To.String(),
			Action: request(object, images[each.To.String()]),
		})
	}
	if skipped := skips(c, versions); skipped != "" {
		made.Notices = append(made.Notices, skipped)
	}
	return made, nil
}

// runningPools are the versions of the oldest nodes of pools, and the pools whose version is unknown.
func runningPools(all []hypershift.NodePool) (pools []hypershift.Running, unknown []string) {
	for i := range all {
		oldest, ok := oldestOf(&all[i])
		if !ok {
			unknown = append(unknown, all[i].Name)
			continue
		}
		pools = append(pools, hypershift.Running{Pool: all[i].Name, Version: oldest})
	}
	return pools, unknown
}

// oldestOf is the version of the oldest nodes of a pool; false where it is unknown.
func oldestOf(pool *hypershift.NodePool) (semver.Version, bool) {
	var oldest semver.Version
	versions := pool.Versions()
	for i, each := range versions {
		parsed, err := semver.Parse(each)
		if err != nil {
			return semver.Version{}, false
		}
		if i == 0 || parsed.LT(oldest) {
			oldest = parsed
		}
	}
	return oldest, len(versions) > 0
}

// skips states that HyperShift would accept the request for the last release of a path at once; empty
// where the path has one update, or HyperShift would not.
func skips(c *ControlPlane, path []semver.Version) string {
	if len(path) < 3 {
		return ""
	}
	from, to := path[0], path[len(path)-1]
	if hypershift.Skipped(from, to) == 0 || refuses(c, from, to) != "" {
		return ""
	}
	return fmt.Sprintf("HyperShift accepts the request for %s from %s at once, which skips minor versions: request each release in turn",
		to, from)
}

// Estate contains the clusters that an update concerns besides the evaluated one: none, which is the zero value,
// or the management cluster of a hosted cluster, whose guest is then evaluated. It answers all questions that
// depend on whether a cluster is hosted.
type Estate struct{ controlPlane *ControlPlane }

// Estate returns the estate of the hosted cluster.
func (c *ControlPlane) Estate() Estate { return Estate{c} }

// ControlPlane returns the hosted cluster as its management cluster describes it; false if there is none.
func (e Estate) ControlPlane() (*ControlPlane, bool) { return e.controlPlane, e.controlPlane != nil }

// Management returns the cluster that runs the control plane of the evaluated one: its nodes pull the release, and
// its keys and image policies decide.
func (e Estate) Management(judged *cluster.Cluster) *cluster.Cluster {
	if e.controlPlane == nil {
		return judged
	}
	return e.controlPlane.Management
}

// Namespace is the namespace of the control plane in the management cluster, where a release's checks for the
// control plane run; empty if all run in the evaluated cluster.
func (e Estate) Namespace() string {
	if e.controlPlane == nil {
		return ""
	}
	return e.controlPlane.Namespace()
}

// Selected names the hosted cluster, NAMESPACE/NAME, and the pools that will be updated as well, sorted by name;
// empty for a cluster that is not hosted.
func (e Estate) Selected() (name string, pools []string) {
	if e.controlPlane == nil {
		return "", nil
	}
	return e.controlPlane.selected()
}

// GuestError says why the guest is unreachable; nil if the evaluated cluster is reachable.
func (e Estate) GuestError() error {
	if e.controlPlane == nil {
		return nil
	}
	return e.controlPlane.guestError
}

// Guest returns the checks that can run in the evaluated cluster: none for an unreachable guest.
func (e Estate) Guest(checks []check.Check) []check.Check {
	if e.GuestError() != nil {
		return nil
	}
	return checks
}

// Checks are the checks of the management cluster's side, with others of it.
func (e Estate) Checks(others ...func(*ControlPlane) check.Check) []check.Check {
	if e.controlPlane == nil {
		return nil
	}
	checks := e.controlPlane.Checks()
	for _, other := range others {
		checks = append(checks, other(e.controlPlane))
	}
	return checks
}

// Ahead are the checks of the management cluster's side that can be evaluated for each update of a path: whether
// HyperShift accepts its version, and for the first update, whether it accepts and carries out its request.
func (e Estate) Ahead() (first, later []check.Check) {
	c := e.controlPlane
	if c == nil {
		return nil, nil
	}
	return []check.Check{reconciliationCheck(c), requestCheck(c), versionCheck(c)}, []check.Check{versionCheck(c)}
}

// Subject adds to a subject what checks of the evaluated cluster depend on. The NodePools are the ones that are
// named for this update; empty if there are none, since the update of a control plane drains no node.
func (e Estate) Subject(s check.Subject) check.Subject {
	if e.controlPlane == nil {
		return s
	}
	s.Hosted, s.NodePools = true, []order.NodePool{}
	if e.controlPlane.named {
		s.NodePools = Drains(e.controlPlane.pools, s.Now)
	}
	return s
}

// Drains returns the selected NodePools with their drains when each of them is updated, at a time; nil if the
// machine-config-operator drains the nodes.
func (e Estate) Drains(now time.Time) ([]order.NodePool, error) {
	if e.controlPlane == nil {
		return nil, nil
	}
	return Drains(e.controlPlane.pools, now), e.controlPlane.poolsError
}

// HasMachineConfig reports whether a machine-config-operator configures and updates the nodes of the evaluated
// cluster. The nodes of a guest belong to NodePools: each pool is updated separately, and gets no image policies.
func (e Estate) HasMachineConfig() bool { return e.controlPlane == nil }

// Profile is the cluster profile of the release's manifests that apply, if HyperShift decides; empty if the
// evaluated cluster sets it.
func (e Estate) Profile() string {
	if e.controlPlane == nil {
		return ""
	}
	return hypershift.Profile
}

// Predict returns how HyperShift would handle the request for a version; false if the cluster-version operator of
// the evaluated cluster decides.
func (e Estate) Predict(version string) (report.CVO, bool) {
	if e.controlPlane == nil {
		return report.CVO{}, false
	}
	return e.controlPlane.Predict(version), true
}

// Start requests a release for the control plane; it has no command if there is none. It is false if the request
// goes to ClusterVersion.
func (e Estate) Start(image string) (start finding.Action, ok bool) {
	if e.controlPlane == nil {
		return finding.Action{}, false
	}
	return Start(e.controlPlane.Cluster, image), true
}

// Reread returns a function that has the estate as it is now: at the first call as it was opened, later as it is read
// again. Whether its guest can be reached is as before. After an error, the next call reads it again.
func Reread(e Estate) func(context.Context) (Estate, error) {
	opened := true
	return func(ctx context.Context) (Estate, error) {
		c := e.controlPlane
		if c == nil || opened {
			opened = false
			return e, nil
		}
		_, pools := c.selected()
		read, err := Open(ctx, c.Management, c.Cluster.Namespace, c.Cluster.Name, pools...)
		if err != nil {
			return Estate{}, err
		}
		read.guestError = c.guestError
		e = read.Estate()
		return e, nil
	}
}

// Checks are the checks of the management cluster's side, and of a guest that cannot be reached. A
// new one is added here.
func (c *ControlPlane) Checks() []check.Check {
	checks := []check.Check{
		backupCheck(c),
		controlPlaneCheck(c),
		podsCheck(c),
		poolsCheck(c),
		skewCheck(c),
		reconciliationCheck(c),
		requestCheck(c),
		versionCheck(c),
	}
	if c.named {
		checks = append(checks, poolTargetsCheck(c))
	}
	if c.guestError != nil {
		checks = append(checks, guestCheck(c))
	}
	return checks
}

// podsCheck is the check HostedControlPlanePods.
func podsCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: workload.Name, Kind: finding.SourceHealth, Side: check.Management,
		Run: func(context.Context, check.Subject) ([]finding.Finding, error) {
			return c.workload.Evaluate(workload.Said{
				Etcd:      c.Cluster.Is("EtcdAvailable", metav1.ConditionFalse),
				APIServer: c.Cluster.Is("KubeAPIServerAvailable", metav1.ConditionFalse),
				Unmanaged: meta.FindStatusCondition(c.Cluster.Status.Conditions, "UnmanagedEtcdAvailable") != nil,
			}), nil
		},
	}
}

// maxBackupAge is how old a backup of etcd may be: a day, as the documentation of OpenShift
// recommends a backup before every update.
const maxBackupAge = 24 * time.Hour

// backup has the fields of an HCPEtcdBackup that say whether there is a backup.
type backup struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

var (
	nameBackup = finding.NewName("HostedEtcdBackup",
		"The age of the newest completed HCPEtcdBackup in the namespace of the control plane. A control plane cannot be rolled back to "+
			"an earlier release, so back up its etcd before an update.")

	reasonBackupRecent = finding.NewReason("BackupRecent", finding.Explanation{
		Meaning: "etcd was backed up in the last 24 hours.",
		Cause:   "An HCPEtcdBackup is completed.",
	})
	reasonBackupOld = finding.NewReason("BackupOld", finding.Explanation{
		Meaning: "The newest completed HCPEtcdBackup is older than 24 hours, or there is none.",
		Cause:   "No backups are made, or they fail.",
		Remedy:  "Back up etcd of the hosted cluster before the update.",
	})
	reasonBackupUnknown = finding.NewReason("BackupUnknown", finding.Explanation{
		Meaning: "The management cluster does not report backups of etcd, so their age is unknown.",
		Cause:   "The API HCPEtcdBackup is not served, or may not be read. Backups by OADP or by snapshots of volumes have no such objects.",
		Remedy:  "Check that a recent backup of the hosted cluster's etcd exists.",
	})
)

// backupCheck is the check HostedEtcdBackup. It never blocks.
func backupCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameBackup, Kind: finding.SourceHealth, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			if c.Cluster.Is("UnmanagedEtcdAvailable", metav1.ConditionTrue) {
				return []finding.Finding{c.about(finding.Warn(reasonBackupUnknown,
					"etcd of HostedCluster %s is not managed by HyperShift, so the age of its backups is unknown", c.name()))}, nil
			}
			return []finding.Finding{judgeBackups(c, s.Now)}, nil
		},
	}
}

func judgeBackups(c *ControlPlane, now time.Time) finding.Finding {
	switch {
	case apierrors.IsNotFound(c.backupsError):
		return c.about(finding.Warn(reasonBackupUnknown,
			"the management cluster does not serve HCPEtcdBackups, so the age of the backups of etcd is unknown"))
	case c.backupsError != nil:
		return c.about(finding.Warn(reasonBackupUnknown, "the age of the backups of etcd is unknown: %s", c.backupsError))
	}
	var newest time.Time
	name := ""
	for i := range c.backups {
		condition := meta.FindStatusCondition(c.backups[i].Status.Conditions, "BackupCompleted")
		if condition != nil && condition.Status == metav1.ConditionTrue && condition.LastTransitionTime.After(newest) {
			newest, name = condition.LastTransitionTime.Time, c.backups[i].Name
		}
	}
	object := finding.Object{APIVersion: hypershift.GroupVersion().String(), Kind: "HCPEtcdBackup", Namespace: c.Namespace(), Name: name}
	switch {
	case newest.IsZero():
		return c.about(finding.Warn(reasonBackupOld, "namespace %s contains no completed HCPEtcdBackup", c.Namespace()))
	case now.Sub(newest) > maxBackupAge:
		return finding.Warn(reasonBackupOld, "the newest completed backup of etcd dates from %s", words.Time(newest)).About(object)
	}
	return finding.Pass(gap.Proven("the list of the HCPEtcdBackups"), reasonBackupRecent, "etcd was backed up at %s",
		words.Time(newest)).About(object)
}
