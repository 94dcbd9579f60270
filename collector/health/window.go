package health

import (
	"context"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameUpgradeWindow = finding.NewName("UpgradeWindow",
		"Compares the present time with the window of each UpgradeConfig: the 30 minutes after spec.upgradeAt, by "+
			"MUO's document. (MUO itself also starts an update later, until it gives the update up.) It concerns "+
			"every update, and warns at most: the check CapacityReservation blocks where UpgradeConfigs cannot be read.")

	reasonInWindow = finding.NewReason("InWindow", finding.Explanation{
		Meaning: "Reported when the window of an UpgradeConfig is open.",
		Cause:   "The present time is within 30 minutes after spec.upgradeAt.",
	})
	reasonBeforeWindow = finding.NewReason("BeforeWindow", finding.Explanation{
		Meaning: "Reported when the window of an UpgradeConfig opens later.",
		Cause:   "spec.upgradeAt is in the future.",
		Remedy:  "Start the update when the window opens, or set spec.upgradeAt to an earlier time.",
		Command: "oc -n NAMESPACE edit upgradeconfig NAME",
	})
	reasonAfterWindow = finding.NewReason("AfterWindow", finding.Explanation{
		Meaning: "Reported when the window of an UpgradeConfig is over.",
		Cause:   "spec.upgradeAt is more than 30 minutes ago.",
		Remedy:  "Set spec.upgradeAt to the time at which the update is to start: `oc -n NAMESPACE edit upgradeconfig NAME`.",
	})
	reasonOtherVersion = finding.NewReason("OtherVersion", finding.Explanation{
		Meaning: "Reported when the window of an UpgradeConfig is open, but for another target.",
		Cause:   "spec.desired.version is another version.",
		Remedy:  "Choose one target for both.",
		Command: "oc -n NAMESPACE edit upgradeconfig NAME",
	})
	reasonInvalidUpgradeAt = finding.NewReason("InvalidUpgradeAt", finding.Explanation{
		Meaning: "Reported when the window of an UpgradeConfig is unknown.",
		Cause:   "spec.upgradeAt is not an RFC 3339 time.",
		Remedy:  "Set spec.upgradeAt to the time at which the update is to start: `oc -n NAMESPACE edit upgradeconfig NAME`.",
	})
	reasonUnreadable = finding.NewReason("Unreadable", finding.Explanation{
		Meaning: "Reported when the UpgradeConfigs could not be read, so that the window is unknown.",
		Cause:   "The message has the error.",
		Remedy:  "Fix what the message names, then run the preflight again.",
	})
	reasonForbidden = finding.NewReason("Forbidden", finding.Explanation{
		Meaning: "Reported when the user has no permission to read the UpgradeConfigs, so that the window is unknown.",
		Cause:   "The user or ServiceAccount that runs the preflight lacks a role.",
		Remedy:  "Bind the roles that `oc preflight auth` prints.",
	})
	reasonNoUpgradeConfig = finding.NewReason("NoUpgradeConfig", finding.Explanation{
		Meaning: "Reported when the cluster has no UpgradeConfig.",
		Cause:   "The managed-upgrade-operator is not installed, or no update is scheduled.",
	})
)

// windowLength is the time after upgradeAt in which an update may start, by MUO's
// document (docs/design.md, "Ready to upgrade criteria").
const windowLength = 30 * time.Minute

// UpgradeWindow is the check UpgradeWindow.
func UpgradeWindow() check.Check {
	return check.Check{
		Name: nameUpgradeWindow, Kind: finding.SourceHealth,
		Reads: readsUpgradeConfigs(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			configs, err := s.Cluster.UpgradeConfigs(ctx)
			if apierrors.IsNotFound(err) || (err == nil && len(configs) == 0) {
				return noUpgradeConfig(gap.ExtentOf(ctx)), nil
			}
			if err != nil {
				return []finding.Finding{unreadable(err)}, nil
			}
			target := ""
			if s.Update.Known() {
				target = s.Update.To.String()
			}
			var findings []finding.Finding
			for i := range configs {
				findings = append(findings, judgeWindow(gap.ExtentOf(ctx), &configs[i], target, s.Now))
			}
			return finding.Bounded(finding.Drafts(findings...)), nil
		},
	}
}

func unreadable(err error) finding.Finding {
	const message = "could not list the UpgradeConfigs, so the window for the update is unknown: %v"
	if apierrors.IsForbidden(err) {
		return finding.Warn(reasonForbidden, message, err).
			Remedy("Run the preflight as a user with permission to list UpgradeConfigs.").
			Do(finding.Roles())
	}
	return finding.Warn(reasonUnreadable, message, err)
}

// judgeWindow judges whether the window is open at a time, and whether it is for the
// target, unless its version is empty.
func judgeWindow(read gap.Extent, config *snapshot.UpgradeConfig, target string, now time.Time) finding.Finding {
	object := upgradeConfigObject(config)
	edit := finding.Change("oc -n %s edit upgradeconfig %s", config.Namespace, config.Name)
	const reschedule = "Set spec.upgradeAt to the time at which the update is to start."
	opens, err := time.Parse(time.RFC3339, config.Spec.UpgradeAt)
	if err != nil {
		return finding.Warn(reasonInvalidUpgradeAt,
			"%s has the upgradeAt %q, which is not an RFC 3339 time such as 2020-05-01T12:00:00Z, so its window is unknown",
			check.Describe(object), words.Line(config.Spec.UpgradeAt, maxQuoted)).Remedy(reschedule).Do(edit).About(object)
	}
	closes := opens.Add(windowLength)
	window := fmt.Sprintf("the window of %s is the %d minutes from %s on", check.Describe(object), int(windowLength.Minutes()), words.Time(opens))
	mismatch := ""
	if wanted := config.Spec.Desired.Version; wanted != "" && target != "" && wanted != target {
		mismatch = fmt.Sprintf("; it is for the update to %q, and not to %s", words.Line(wanted, maxQuoted), target)
	}
	var f finding.Finding
	switch {
	case !now.After(opens):
		f = finding.Warn(reasonBeforeWindow, "%s, and opens in %s%s", window, minutes(opens.Sub(now)), mismatch).Do(edit)
	case !now.Before(closes):
		f = finding.Warn(reasonAfterWindow, "%s, and closed %s ago%s", window, minutes(now.Sub(closes)), mismatch).Remedy(reschedule).Do(edit)
	case mismatch != "":
		f = finding.Warn(reasonOtherVersion, "%s, and is open for %s more%s", window, minutes(closes.Sub(now)), mismatch).Do(edit)
	default:
		f = finding.Pass(read, reasonInWindow, "%s, and is open for %s more", window, minutes(closes.Sub(now)))
	}
	return f.About(object)
}

// minutes rounds up, so that seconds are not 0 minutes.
func minutes(duration time.Duration) string {
	if whole := int64(math.Ceil(duration.Minutes())); whole != 1 {
		return fmt.Sprintf("%d minutes", whole)
	}
	return "1 minute"
}

func readsUpgradeConfigs() []access.Request {
	return []access.Request{check.List("upgrade.managed.openshift.io", "upgradeconfigs")}
}

func noUpgradeConfig(read gap.Extent) []finding.Finding {
	return []finding.Finding{finding.Skipped(read, reasonNoUpgradeConfig, "the cluster has no UpgradeConfig, so no managed-upgrade-operator schedules an update")}
}

func upgradeConfigObject(config *snapshot.UpgradeConfig) finding.Object {
	return finding.Object{APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Namespace: config.Namespace, Name: config.Name}
}
