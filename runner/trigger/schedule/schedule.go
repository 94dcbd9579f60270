// Package schedule answers: which update does the managed-upgrade-operator (MUO) start,
// when, and is the verdict of its preflight there in time?
//
// MUO starts the update of the UpgradeConfig named [Name] at its spec.upgradeAt. Its
// preflight runs two hours before, when MUO checks the health of the cluster for the first
// time, and again thirty minutes before. The package is pure: it reads and writes nothing.
//
// Source of the rules: openshift/managed-upgrade-operator, pkg/validation/validation.go
// and pkg/scheduler/scheduler.go.
package schedule

import (
	"fmt"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// Name is the name of the UpgradeConfig that MUO processes; it ignores others.
const Name = "managed-upgrade-config"

// The times before the update at which its preflight runs.
const (
	firstLead  = 2 * time.Hour
	secondLead = 30 * time.Minute
)

// Config is the spec of an UpgradeConfig.
type Config struct {
	// UpgradeAt is an RFC 3339 time for MUO; the API accepts any text.
	UpgradeAt string `json:"upgradeAt"`
	Desired   struct {
		Version string `json:"version"`
		Channel string `json:"channel"`
		Image   string `json:"image"`
	} `json:"desired"`
}

// Scheduled is an update that MUO would start.
type Scheduled struct {
	Release update.Release
	At      time.Time
}

// Cause is why MUO, or a preflight, cannot process an UpgradeConfig.
type Cause string

// The reasons of an Invalid, in the order of validation.
const (
	InvalidUpgradeAt Cause = "InvalidUpgradeAt"
	InvalidImage     Cause = "InvalidImage"
	NoVersion        Cause = "NoVersion"
	InvalidVersion   Cause = "InvalidVersion"
	// NotNewer is the present version, or an older one.
	NotNewer Cause = "NotNewer"
	// OtherChannel is an update that only a channel other than the cluster's contains: its image is known once the
	// channel is changed, as MUO does when the update starts.
	OtherChannel Cause = "OtherChannel"
	NotAvailable Cause = "NotAvailable"
)

// Invalid is the error of an UpgradeConfig that schedules no update, or none that can be
// checked before.
type Invalid struct {
	Reason  Cause
	message string
}

// Error implements error.
func (i *Invalid) Error() string { return i.message }

func invalid(reason Cause, format string, args ...any) error {
	return &Invalid{Reason: reason, message: fmt.Sprintf(format, args...)}
}

// Resolve is the update that MUO starts for a configuration. The error is an *Invalid with
// the first rule that is violated.
func Resolve(config Config, clusterVersion *configv1.ClusterVersion) (Scheduled, error) {
	at, err := time.Parse(time.RFC3339, config.UpgradeAt)
	if err != nil {
		return Scheduled{}, invalid(InvalidUpgradeAt, "spec.upgradeAt is %s, which is not an RFC 3339 time such as 2026-05-01T12:00:00Z",
			quoted(config.UpgradeAt))
	}
	desired := config.Desired
	if desired.Image != "" {
		release := update.Release{Version: desired.Version, Image: desired.Image}
		if release.Digest() == "" {
			return Scheduled{}, invalid(InvalidImage, "spec.desired.image is %s, which has no digest", quoted(desired.Image))
		}
		if desired.Version == "" { // MUO adds it from a label of the image
			return Scheduled{Release: release, At: at}, nil
		}
		return Scheduled{Release: release, At: at}, newer(desired.Version, clusterVersion)
	}
	if desired.Version == "" && desired.Channel == "" {
		return Scheduled{}, invalid(NoVersion, "spec.desired has neither an image nor a version with its channel")
	}
	if err := newer(desired.Version, clusterVersion); err != nil {
		return Scheduled{}, err
	}
	for _, offered := range offers(clusterVersion) {
		if offered.Version == desired.Version {
			return Scheduled{Release: update.Release{Version: offered.Version, Image: offered.Image}, At: at}, nil
		}
	}
	if present := clusterVersion.Spec.Channel; desired.Channel != present {
		return Scheduled{}, invalid(OtherChannel, "spec.desired.channel is %s, but the channel of the cluster, which "+
			"does not contain %s, is %s: change the channel in advance: oc adm upgrade channel %s",
			quoted(desired.Channel), desired.Version, quoted(present), words.Line(desired.Channel, 64))
	}
	return Scheduled{}, invalid(NotAvailable, "spec.desired.version is %s, which is neither an available nor a conditional update",
		desired.Version)
}

// newer is an error unless the version is newer than the present one.
func newer(text string, clusterVersion *configv1.ClusterVersion) error {
	desired, err := semver.Parse(text)
	if err != nil {
		return invalid(InvalidVersion, "spec.desired.version is %s, which is not a semantic version", quoted(text))
	}
	present, err := semver.Parse(clusterVersion.Status.Desired.Version)
	if err != nil {
		return invalid(InvalidVersion, "status.desired.version of ClusterVersion is %s, which is not a semantic version",
			quoted(clusterVersion.Status.Desired.Version))
	}
	if desired.LTE(present) {
		return invalid(NotNewer, "spec.desired.version is %s, which is not newer than the current version %s", desired, present)
	}
	return nil
}

// offers are the updates that MUO accepts: it ignores whether one is recommended.
func offers(clusterVersion *configv1.ClusterVersion) []configv1.Release {
	all := append([]configv1.Release{}, clusterVersion.Status.AvailableUpdates...)
	for _, conditional := range clusterVersion.Status.ConditionalUpdates {
		all = append(all, conditional.Release)
	}
	return all
}

func quoted(text string) string { return fmt.Sprintf("%q", words.Line(text, 256)) }

// minPause is the least time between two runs of the scheduled update.
const minPause = time.Minute

// Due is when the preflight of the update runs next, after runs that ended at these
// times, the last of them with a verdict; zero if none is due before the update any more. A
// verdict that does not hold is replaced until the update starts.
func (s Scheduled) Due(ended []time.Time, verdict Verdict, now time.Time) time.Time {
	var last time.Time
	for _, end := range ended {
		if end.After(last) {
			last = end
		}
	}
	first, second := s.At.Add(-firstLead), s.At.Add(-secondLead)
	switch {
	case now.Before(first):
		return first
	case now.Before(second) && last.Before(first):
		return now
	case now.Before(second):
		return second
	case now.Before(s.At) && last.Before(second):
		return now
	case now.Before(s.At) && !verdict.valid(now):
		if next := last.Add(minPause); next.After(now) {
			return next
		}
		return now
	}
	return time.Time{}
}

// Outlook is whether the verdict is there in time.
type Outlook string

// The outlooks of an update.
const (
	// Pending: the preflight runs later, and in time.
	Pending Outlook = "Pending"
	// Checking: the preflight runs, or is about to, and is expected to end in time.
	Checking Outlook = "Checking"
	Ready    Outlook = "Ready"
	Blocked  Outlook = "Blocked"
	// Undecided: the verdict is inconclusive.
	Undecided Outlook = "Undecided"
	// NotInTime: the preflight is not expected to end before the update starts.
	NotInTime Outlook = "NotInTime"
)

// Verdict is the newest one on the release of the update.
type Verdict struct {
	// Decision is empty while there is none.
	Decision   string
	ValidUntil time.Time
}

func (v Verdict) valid(now time.Time) bool { return v.Decision != "" && now.Before(v.ValidUntil) }

// Outlook returns the outlook of the update. start is when the next preflight starts, or when the one in progress
// started; zero if none will run. expected is how long a preflight takes on this cluster.
func (s Scheduled) Outlook(verdict Verdict, start time.Time, expected time.Duration, now time.Time) Outlook {
	valid := verdict.valid(now)
	switch {
	case valid && verdict.Decision == "Blocked":
		return Blocked
	case valid && verdict.Decision != "Ready":
		return Undecided
	case valid && (!verdict.ValidUntil.Before(s.At) || !now.Before(s.At)):
		return Ready
	case start.IsZero() || start.Add(expected).After(s.At):
		return NotInTime
	case start.After(now):
		return Pending
	}
	return Checking
}
