package cvo_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

// The command is the one that oc and CVO accept for a release, in each of the ways in which a cluster knows it.
func TestStart(t *testing.T) {
	image := func(digit string) string { return "quay.io/release@sha256:" + strings.Repeat(digit, 64) }
	release := func(version, digit string) configv1.Release {
		return configv1.Release{Version: version, Image: image(digit)}
	}
	conditional := func(version, digit string, recommended ...metav1.ConditionStatus) configv1.ConditionalUpdate {
		update := configv1.ConditionalUpdate{Release: release(version, digit)}
		for _, status := range recommended {
			update.Conditions = append(update.Conditions, metav1.Condition{Type: "Recommended", Status: status})
		}
		return update
	}
	condition := func(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: name, Status: status}
	}
	available := configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{release("4.18.9", "9")}}
	with := func(status configv1.ClusterVersionStatus, conditions ...configv1.ClusterOperatorStatusCondition) configv1.ClusterVersionStatus {
		status.Conditions = conditions
		return status
	}
	for name, tc := range map[string]struct {
		reason  string
		status  configv1.ClusterVersionStatus
		version string // by default 4.18.9
		image   string // by default that of 4.18.9
		want    string
	}{
		"Available": {reason: "oc finds it by its version", status: available, want: "adm upgrade --to 4.18.9"},
		"Mirrored": {
			reason: "a copy has the same digest", status: available, image: "mirror:5000/copy@sha256:" + strings.Repeat("9", 64),
			want: "adm upgrade --to 4.18.9",
		},
		"OtherImage": {
			reason: "the version would select another image than was judged", status: available, image: image("8"),
			want: "adm upgrade --allow-explicit-upgrade --to-image " + image("8"),
		},
		"Unlisted": {reason: "oc requests it only by image", want: "adm upgrade --allow-explicit-upgrade --to-image " + image("9")},
		"NoVersion": {
			reason: "it was selected by image, and its version is not known", status: available, version: "-",
			want: "adm upgrade --to-image " + image("9"),
		},
		"Hostile": {
			reason: "a version is one word of a command", status: available, version: "4.18.9; id",
			want: "adm upgrade --to-image " + image("9"),
		},
		"HostileToo": {reason: "so is an image", status: available, image: image("9") + "$(id)"},
		"ByTag":      {reason: "CVO cannot verify it", status: available, image: "quay.io/release:4.18.9"},
		"Conditional": {
			reason: "oc requires the acceptance of its risks",
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{conditional("4.18.9", "9", "False")}},
			want:   "adm upgrade --allow-not-recommended --to 4.18.9",
		},
		"NotEvaluated": {
			reason: "a risk that could not be evaluated is one",
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{conditional("4.18.9", "9", "Unknown")}},
			want:   "adm upgrade --allow-not-recommended --to 4.18.9",
		},
		"Recommended": {
			reason: "CVO lists a conditional update that it recommends as an available one too", want: "adm upgrade --to 4.18.9",
			status: configv1.ClusterVersionStatus{
				AvailableUpdates:   available.AvailableUpdates,
				ConditionalUpdates: []configv1.ConditionalUpdate{conditional("4.18.9", "9", "True")},
			},
		},
		"WithoutCondition": {
			reason: "oc does not find a conditional update without the condition",
			want:   "adm upgrade --allow-explicit-upgrade --to-image " + image("9"),
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{conditional("4.18.9", "9")}},
		},
		"Twice": {
			reason: "oc would take the first image of the version", want: "adm upgrade --to-image " + image("9"),
			status: configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{release("4.18.9", "8"), release("4.18.9", "9")}},
		},
		"TwiceConditional": {
			reason: "oc would take the available image of the version", want: "adm upgrade --allow-not-recommended --to-image " + image("9"),
			status: configv1.ClusterVersionStatus{
				AvailableUpdates:   []configv1.Release{release("4.18.9", "8")},
				ConditionalUpdates: []configv1.ConditionalUpdate{conditional("4.18.9", "9", "False")},
			},
		},
		"History": {
			reason: "the update service does not list it any more",
			status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.18.9", Image: image("9")}}},
			want:   "adm upgrade --allow-explicit-upgrade --to-image " + image("9"),
		},
		"Failing": {
			reason: "the administrator has accepted it, and oc refuses without the flag",
			status: with(available, condition("Failing", "True")), want: "adm upgrade --allow-upgrade-with-warnings --to 4.18.9",
		},
		"Progressing": {
			reason: "the update in progress is retargeted", status: with(available, condition("Progressing", "True")),
			want: "adm upgrade --allow-upgrade-with-warnings --to 4.18.9",
		},
		"AsExpected": {
			reason: "nothing is to be bypassed",
			status: with(available, condition("Failing", "False"), condition("Progressing", "Unknown")), want: "adm upgrade --to 4.18.9",
		},
		"Running": {reason: "the cluster runs it already", status: configv1.ClusterVersionStatus{Desired: release("4.18.9", "9")}},
		"SameVersion": {reason: "oc does nothing for the version that the cluster runs", status: configv1.ClusterVersionStatus{Desired: release(
			"4.18.9", "8"), AvailableUpdates: available.AvailableUpdates}, want: "adm upgrade --to-image " + image("9")},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.version == "" {
				tc.version = "4.18.9"
			}
			if tc.image == "" {
				tc.image = image("9")
			}
			if got := strings.Join(cvo.Start(&configv1.ClusterVersion{Status: tc.status}, strings.TrimPrefix(tc.version, "-"), tc.image),
				" "); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
