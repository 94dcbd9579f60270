package schedule_test

import (
	"errors"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/trigger/schedule"
)

const (
	available   = "registry.example.com/release@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	conditional = "registry.example.com/release@sha256:2222222222222222222222222222222222222222222222222222222222222222"
	upgradeAt   = "2026-05-01T12:00:00Z"
)

// at is a time before upgradeAt.
func at(t *testing.T, before time.Duration) time.Time {
	t.Helper()
	opens, err := time.Parse(time.RFC3339, upgradeAt)
	if err != nil {
		t.Fatal(err)
	}
	return opens.Add(-before)
}

func clusterVersion() *configv1.ClusterVersion {
	return &configv1.ClusterVersion{
		Spec: configv1.ClusterVersionSpec{Channel: "stable-4.19"},
		Status: configv1.ClusterVersionStatus{
			Desired:            configv1.Release{Version: "4.18.9"},
			AvailableUpdates:   []configv1.Release{{Version: "4.19.1", Image: available}},
			ConditionalUpdates: []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.19.2", Image: conditional}}},
		},
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason                           string
		upgradeAt                        string
		version, channel, image, present string
		want                             update.Release
		invalid                          schedule.Cause
	}{
		"Available": {
			reason: "an available update of the channel", version: "4.19.1", channel: "stable-4.19",
			want: update.Release{Version: "4.19.1", Image: available},
		},
		"Conditional": {
			reason: "MUO ignores whether an update is recommended", version: "4.19.2", channel: "stable-4.19",
			want: update.Release{Version: "4.19.2", Image: conditional},
		},
		"Image": {reason: "an image needs no channel", image: conditional, want: update.Release{Image: conditional}},
		"ImageAndVersion": {
			reason: "MUO has added the version of the image", image: conditional, version: "4.19.2",
			want: update.Release{Version: "4.19.2", Image: conditional},
		},
		"NoTime": {reason: "the time comes first", upgradeAt: "tomorrow", invalid: schedule.InvalidUpgradeAt},
		"LocalTime": {
			reason: "RFC 3339 has a zone", upgradeAt: "2026-05-01T12:00:00", version: "4.19.1",
			invalid: schedule.InvalidUpgradeAt,
		},
		"Tag": {
			reason: "a tag may name another release later", image: "registry.example.com/release:4.19.1",
			invalid: schedule.InvalidImage,
		},
		"OlderImage": {
			reason: "the version of an image is compared too", image: conditional, version: "4.18.8",
			invalid: schedule.NotNewer,
		},
		"Nothing":     {reason: "neither is given", invalid: schedule.NoVersion},
		"ChannelOnly": {reason: "a channel is no version", channel: "stable-4.19", invalid: schedule.InvalidVersion},
		"NotSemantic": {reason: "versions are semantic", version: "4.19", channel: "stable-4.19", invalid: schedule.InvalidVersion},
		"Present":     {reason: "MUO has nothing to do", version: "4.18.9", channel: "stable-4.19", invalid: schedule.NotNewer},
		"Older":       {reason: "MUO refuses a downgrade", version: "4.18.8", channel: "stable-4.19", invalid: schedule.NotNewer},
		"PresentIsUnknown": {
			reason: "nothing can be compared", version: "4.19.1", channel: "stable-4.19", present: "unknown",
			invalid: schedule.InvalidVersion,
		},
		"OtherChannel": {
			reason: "only the other channel has the release", version: "4.19.3", channel: "fast-4.19",
			invalid: schedule.OtherChannel,
		},
		"ChannelAhead": {
			reason: "the cluster's channel has the release, too", version: "4.19.1", channel: "fast-4.19",
			want: update.Release{Version: "4.19.1", Image: available},
		},
		"VersionBeforeThat": {
			reason: "the version is validated before the channel", version: "4.18.1", channel: "fast-4.19",
			invalid: schedule.NotNewer,
		},
		"NotAvailable": {reason: "MUO waits until it is", version: "4.19.3", channel: "stable-4.19", invalid: schedule.NotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := schedule.Config{UpgradeAt: upgradeAt}
			if tc.upgradeAt != "" {
				config.UpgradeAt = tc.upgradeAt
			}
			config.Desired.Version, config.Desired.Channel, config.Desired.Image = tc.version, tc.channel, tc.image
			cluster := clusterVersion()
			if tc.present != "" {
				cluster.Status.Desired.Version = tc.present
			}
			got, err := schedule.Resolve(config, cluster)
			var violated schedule.Cause
			if found, ok := errors.AsType[*schedule.Invalid](err); ok {
				violated = found.Reason
			}
			if violated != tc.invalid || err == nil && (got.Release != tc.want || !got.At.Equal(at(t, 0))) {
				t.Errorf("%s: got %+v and %q (%v), want %+v and %q", tc.reason, got, violated, err, tc.want, tc.invalid)
			}
		})
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	never := time.Duration(-1)
	for name, tc := range map[string]struct {
		reason string
		// now, want and ended are times before the update; ended is zero for no run.
		now, ended, want time.Duration
		// valid is the time before the update at which the last verdict ends.
		valid time.Duration
	}{
		"Early":      {reason: "MUO checks the health two hours ahead", now: 5 * time.Hour, want: 2 * time.Hour},
		"EarlyAgain": {reason: "a verdict of yesterday does not count", now: 5 * time.Hour, ended: 20 * time.Hour, want: 2 * time.Hour},
		"First":      {reason: "the first run is due", now: 2 * time.Hour, want: 2 * time.Hour},
		"FirstLate":  {reason: "the controller was not running", now: time.Hour, ended: 3 * time.Hour, want: time.Hour},
		"Second": {
			reason: "the state of the cluster may have changed", now: time.Hour, ended: 110 * time.Minute,
			want: 30 * time.Minute,
		},
		"SecondNow": {reason: "the second run is due", now: 30 * time.Minute, ended: 110 * time.Minute, want: 30 * time.Minute},
		"Both":      {reason: "nothing more is due", now: 10 * time.Minute, ended: 20 * time.Minute, want: never},
		"Expired": {
			reason: "a verdict that has ended is replaced in the time that is left", now: 9 * time.Minute,
			ended: 20 * time.Minute, valid: 10 * time.Minute, want: 9 * time.Minute,
		},
		"ExpiredNow": {
			reason: "a verdict that ends at once is not repeated at once", now: 9 * time.Minute,
			ended: 9*time.Minute + 10*time.Second, valid: 10 * time.Minute, want: 8*time.Minute + 10*time.Second,
		},
		"ScheduledAtOnce": {reason: "the update was scheduled for the near future", now: time.Minute, want: time.Minute},
		"Over":            {reason: "MUO has started the update", now: -time.Minute, want: never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ended []time.Time
			if tc.ended != 0 {
				ended = []time.Time{at(t, 30*time.Hour), at(t, tc.ended)}
			}
			var want time.Time
			if tc.want != never {
				want = at(t, tc.want)
			}
			if got := (schedule.Scheduled{At: at(t, 0)}).Due(ended, schedule.Verdict{Decision: "Ready", ValidUntil: at(t, tc.valid)},
				at(t, tc.now)); !got.Equal(want) {
				t.Errorf("%s: due at %s, want %s", tc.reason, got, want)
			}
		})
	}
}

func TestOutlook(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		reason   string
		decision string
		// now, validUntil and start are times before the update.
		now, validUntil, start time.Duration
		noStart                bool
		want                   schedule.Outlook
	}{
		"Later": {reason: "nothing is due yet", now: 5 * time.Hour, start: 2 * time.Hour, want: schedule.Pending},
		"ReadyTooEarly": {
			reason: "the verdict ends before the update starts", decision: "Ready", now: 5 * time.Hour, validUntil: 4 * time.Hour,
			start: 2 * time.Hour, want: schedule.Pending,
		},
		"Running":        {reason: "it ends in time", now: time.Hour, start: 65 * time.Minute, want: schedule.Checking},
		"RunningTooLate": {reason: "a preflight takes ten minutes", now: 7 * time.Minute, start: 8 * time.Minute, want: schedule.NotInTime},
		"DueTooLate":     {reason: "a preflight takes ten minutes", now: time.Minute, start: time.Minute, want: schedule.NotInTime},
		"Ready": {
			reason: "the verdict is valid when the update starts", decision: "Ready", now: time.Hour, validUntil: -day,
			start: 30 * time.Minute, want: schedule.Ready,
		},
		"ReadyAndBegun": {
			reason: "the verdict is valid, and the update has begun", decision: "Ready", now: -time.Hour,
			validUntil: -2 * time.Hour, noStart: true, want: schedule.Ready,
		},
		"Expired": {
			reason: "there is no valid verdict", decision: "Ready", now: -time.Hour, validUntil: time.Hour, noStart: true,
			want: schedule.NotInTime,
		},
		"Blocked": {
			reason: "the administrator needs the remaining time", decision: "Blocked", now: time.Hour, validUntil: -day,
			start: 30 * time.Minute, want: schedule.Blocked,
		},
		"BlockedBefore": {
			reason: "the verdict is out of date", decision: "Blocked", now: time.Hour, validUntil: 2 * time.Hour, start: time.Hour,
			want: schedule.Checking,
		},
		"Undecided": {
			reason: "an inconclusive check is not a pass", decision: "Undecided", now: time.Hour, validUntil: -day,
			start: 30 * time.Minute, want: schedule.Undecided,
		},
		"UnknownWord": {
			reason: "a decision of a later version is not Ready", decision: "Later", now: time.Hour, validUntil: -day,
			want: schedule.Undecided,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var start time.Time
			if !tc.noStart {
				start = at(t, tc.start)
			}
			verdict := schedule.Verdict{Decision: tc.decision, ValidUntil: at(t, tc.validUntil)}
			got := schedule.Scheduled{At: at(t, 0)}.Outlook(verdict, start, 10*time.Minute, at(t, tc.now))
			if got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
