package scene_test

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/update"
)

func TestInstalled(t *testing.T) {
	at := func(digit string) string { return "registry/release@sha256:" + strings.Repeat(digit, 64) }
	past := func(state configv1.UpdateState, version, image string) configv1.UpdateHistory {
		return configv1.UpdateHistory{State: state, Version: version, Image: image}
	}
	running := []configv1.UpdateHistory{past(configv1.CompletedUpdate, "4.19.1", at("1")), past(configv1.CompletedUpdate, "4.18.3", at("3"))}
	for name, tc := range map[string]struct {
		reason  string
		history []configv1.UpdateHistory
		desired string
		release update.Release
		want    bool
	}{
		"Version": {reason: "it runs that version", history: running, release: update.Release{Version: "4.19.1"}, want: true},
		"Image":   {reason: "it runs that image", history: running, release: update.Release{Image: at("1")}, want: true},
		"Mirror": {
			reason: "a digest is the same in every repository", history: running,
			release: update.Release{Version: "4.19.1", Image: "mirror/x@sha256:" + strings.Repeat("1", 64)}, want: true,
		},
		"OtherImage": {
			reason: "another architecture of the version is an update", history: running,
			release: update.Release{Version: "4.19.1", Image: at("2")},
		},
		"Other": {reason: "it is another version", history: running, release: update.Release{Version: "4.19.2"}},
		"Earlier": {
			reason: "back to an earlier release is an update", history: running,
			release: update.Release{Version: "4.18.3", Image: at("3")},
		},
		"Partial": {reason: "it is still being installed", history: append(
			[]configv1.UpdateHistory{past(configv1.PartialUpdate, "4.19.1", at("1"))}, running[1]), release: update.Release{Version: "4.19.1"}},
		"Selected": {
			reason: "another release is selected, and its update has not begun", history: running, desired: "4.19.2",
			release: update.Release{Version: "4.19.1"},
		},
		"NoHistory": {reason: "what it runs is unknown", release: update.Release{Version: "4.19.1"}},
		"NoVersion": {reason: "a release without version and digest is not known to be the same", history: []configv1.UpdateHistory{past(
			configv1.CompletedUpdate, "4.19.1", "registry/release:4.19.1")}, release: update.Release{Image: "registry/release:4.19.1"}},
		"TaggedImage": {reason: "without a digest of what runs, an image is another one", history: []configv1.UpdateHistory{past(
			configv1.CompletedUpdate, "4.19.1", "registry/release:4.19.1")}, release: update.Release{Version: "4.19.1", Image: at("1")}},
	} {
		t.Run(name, func(t *testing.T) {
			version := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
				History: tc.history,
				Desired: configv1.Release{Version: "4.19.1"},
			}}
			if tc.desired != "" {
				version.Status.Desired.Version = tc.desired
			}
			err := scene.Installed(version, tc.release)
			_, is := errors.AsType[*scene.InstalledError](err)
			if is != tc.want || (err != nil) != tc.want || tc.want && !errors.As(err, new(*input.Error)) {
				t.Errorf("%s: %v, want an error: %t", tc.reason, err, tc.want)
			}
		})
	}
}
