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
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonUnreadable finding.Reason = "Unreadable"

// windowLength is how long after upgradeAt an update may start, by MUO's
// document (docs/design.md, "Ready to upgrade criteria").
const windowLength = 30 * time.Minute

// UpgradeWindow compares the present time with the window of each
// UpgradeConfig: later than upgradeAt, and within 30 minutes of it, as MUO's
// document has it. MUO itself now starts an update also after that, for as long
// as it did not give it up. The check is for information: whatever it finds is
// a warning at most, also what it could not read. That an UpgradeConfig could
// not be read stands in the way by the check CapacityReservation.
func UpgradeWindow() check.Check {
	return check.Check{
		Name: "UpgradeWindow", Kind: finding.SourceHealth,
		Reads: []access.Request{check.List("upgrade.managed.openshift.io", "upgradeconfigs")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			configs, err := s.Cluster.UpgradeConfigs(ctx)
			if apierrors.IsNotFound(err) || (err == nil && len(configs) == 0) {
				return noUpgradeConfig(), nil
			}
			if err != nil {
				return []finding.Finding{unreadable(err)}, nil
			}
			var problems []problem
			for i := range configs {
				f := judgeWindow(&configs[i], s.Update.To.String(), s.Now)
				problems = append(problems, problem{f.Outcome, func() finding.Finding { return f }})
			}
			return told(problems), nil
		},
	}
}

func unreadable(err error) finding.Finding {
	f := finding.Warn(ReasonUnreadable,
		"could not list the UpgradeConfigs, so nobody can tell when the window for the update is: %v", err).
		Remedy("Put right what the message names, then run the preflight again.")
	if apierrors.IsForbidden(err) {
		f.Reason = "Forbidden"
		f.Remediation = "Run the preflight as a user who may read them: oc auth can-i list upgradeconfigs.upgrade.managed.openshift.io --all-namespaces"
	}
	return f
}

// judgeWindow says whether the window is open at that time, and whether it is
// one for the target.
func judgeWindow(config *snapshot.UpgradeConfig, target string, now time.Time) finding.Finding {
	subject := fmt.Sprintf("UpgradeConfig %s/%s", config.Namespace, config.Name)
	change := fmt.Sprintf("Set spec.upgradeAt to when the update is to start: oc -n %s edit upgradeconfig %s", config.Namespace, config.Name)
	f := finding.Finding{Finding: preflight.Finding{
		Outcome:     preflight.Warn,
		Remediation: change,
		Objects:     []preflight.Object{upgradeConfigObject(config)},
	}}
	opens, err := time.Parse(time.RFC3339, config.Spec.UpgradeAt)
	if err != nil {
		f.Reason = "InvalidUpgradeAt"
		f.Message = fmt.Sprintf("%s has the upgradeAt %q, which is not an RFC 3339 time such as 2020-05-01T12:00:00Z, so nobody can tell when its window is",
			subject, short(config.Spec.UpgradeAt))
		return f
	}
	closes := opens.Add(windowLength)
	at := fmt.Sprintf("the window of %s is the %d minutes from %s on", subject, int(windowLength.Minutes()), opens.UTC().Format(time.RFC3339))
	switch {
	case !now.After(opens):
		f.Reason = "BeforeWindow"
		f.Message = fmt.Sprintf("%s, and opens in %s", at, minutes(opens.Sub(now)))
		f.Remediation = "Start the update then. Or set spec.upgradeAt to an earlier time: " + fmt.Sprintf("oc -n %s edit upgradeconfig %s", config.Namespace, config.Name)
	case !now.Before(closes):
		f.Reason = "AfterWindow"
		f.Message = fmt.Sprintf("%s, and closed %s ago", at, minutes(now.Sub(closes)))
	default:
		f.Outcome, f.Reason, f.Remediation = preflight.Pass, "InWindow", ""
		f.Message = fmt.Sprintf("%s, and is open for %s more", at, minutes(closes.Sub(now)))
	}
	if wanted := config.Spec.Desired.Version; wanted != "" && wanted != target {
		f.Message += fmt.Sprintf("; it is for the update to %q, and not to %s", short(wanted), target)
		if f.Outcome == preflight.Pass {
			f.Outcome, f.Reason = preflight.Warn, "OtherVersion"
			f.Remediation = fmt.Sprintf("Agree on one target: oc -n %s edit upgradeconfig %s", config.Namespace, config.Name)
		}
	}
	return f
}

// minutes rounds up: what lasts seconds has not passed.
func minutes(duration time.Duration) string {
	if whole := int64(math.Ceil(duration.Minutes())); whole != 1 {
		return fmt.Sprintf("%d minutes", whole)
	}
	return "1 minute"
}

func upgradeConfigObject(config *snapshot.UpgradeConfig) preflight.Object {
	return preflight.Object{APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Namespace: config.Namespace, Name: config.Name}
}
