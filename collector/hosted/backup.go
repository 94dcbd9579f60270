package hosted

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

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
		"The age of the newest completed HCPEtcdBackup in the namespace of the control plane. A control plane cannot be taken back to an earlier release, so its etcd is backed up before an update.")

	reasonBackupRecent = finding.NewReason("BackupRecent", finding.Explanation{
		Meaning: "Reported when etcd was backed up in the last 24 hours.",
		Cause:   "An HCPEtcdBackup is completed.",
	})
	reasonBackupOld = finding.NewReason("BackupOld", finding.Explanation{
		Meaning: "Reported when the newest completed HCPEtcdBackup is older than 24 hours, or there is none.",
		Cause:   "Backups are not made, or fail.",
		Remedy:  "Back up etcd of the hosted cluster before the update.",
	})
	reasonBackupUnknown = finding.NewReason("BackupUnknown", finding.Explanation{
		Meaning: "Reported when the management cluster does not report backups of etcd, so that their age is unknown.",
		Cause:   "The API HCPEtcdBackup is not served, or may not be read. Backups by OADP or by snapshots of volumes have no such objects.",
		Remedy:  "Check that there is a recent backup of etcd of the hosted cluster.",
	})
)

// backupCheck is the check HostedEtcdBackup. It never blocks.
func backupCheck(c *ControlPlane) check.Check {
	return check.Check{
		Name: nameBackup, Kind: finding.SourceHealth, Side: check.Management,
		Run: func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
			if c.Cluster.Is("UnmanagedEtcdAvailable", metav1.ConditionTrue) {
				return []finding.Finding{c.about(finding.Warn(reasonBackupUnknown, "etcd of HostedCluster %s is not managed by HyperShift, so the age of its backups is unknown", c.name()))}, nil
			}
			return []finding.Finding{judgeBackups(c, s.Now)}, nil
		},
	}
}

func judgeBackups(c *ControlPlane, now time.Time) finding.Finding {
	switch {
	case apierrors.IsNotFound(c.backupsError):
		return c.about(finding.Warn(reasonBackupUnknown, "the management cluster does not serve HCPEtcdBackups, so the age of the backups of etcd is unknown"))
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
		return c.about(finding.Warn(reasonBackupOld, "namespace %s has no completed HCPEtcdBackup", c.Namespace()))
	case now.Sub(newest) > maxBackupAge:
		return finding.Warn(reasonBackupOld, "the newest completed backup of etcd is of %s", words.Time(newest)).About(object)
	}
	return finding.Pass(gap.Proven("the list of the HCPEtcdBackups"), reasonBackupRecent, "etcd was backed up at %s", words.Time(newest)).About(object)
}
