package cvo_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

// TestReleasesDiffer has one row for each difference between releases of CVO.
func TestReleasesDiffer(t *testing.T) {
	check(t, map[string]row{
		"RollbackIn4.13": {
			reason: "before 4.14 the CVO allows no rollback", request: byImage(at("4.13.9", "4.13.3"), "4.13.3"), want: undetermined, message: `the CVO of release "4.13.9"`,
		},
		"RollbackIn4.14.7":   {reason: "4.14 allows it since January 2024", request: byImage(at("4.14.7", "4.14.3"), "4.14.3"), want: undetermined, message: "some releases"},
		"RollbackIn4.14.12":  {reason: "4.14 allows it since January 2024", request: byImage(at("4.14.12", "4.14.3"), "4.14.3"), want: loaded},
		"RollbackIn4.14Past": {reason: "only to the previous release", request: byImage(at("4.14.12", "4.14.5", "4.14.3"), "4.14.3"), want: precondition, message: "only supported rollback"},
		"RollbackIn4.15":     {reason: "4.15 allows it since its first release", request: byImage(at("4.15.9", "4.15.3"), "4.15.3"), want: loaded},
		"RollbackIn4.16":     {reason: "allowed, reverted and restored in 4.16", request: byImage(at("4.16.9", "4.16.3"), "4.16.3"), want: undetermined, message: "some releases"},
		"RollbackIn4.16.10":  {reason: "restored in August 2024", request: byImage(at("4.16.10", "4.16.3"), "4.16.3"), want: loaded},
		"RollbackIn4.17":     {reason: "to the previous release within the minor version", request: byImage(at("4.17.9", "4.17.3"), "4.17.3"), want: loaded},
		"GiantHopIn4.17":     {reason: "no such precondition before pull request 1112", request: byImage(at("4.17.9"), "4.19.3"), want: loaded},
		"GiantHopIn4.18":     {reason: "backported to some releases", request: byImage(at("4.18.9"), "4.20.3"), want: undetermined},
		"GiantHopIn4.19":     {reason: "two minor versions are refused", request: byImage(at("4.19.9"), "4.21.3"), want: precondition, message: "(4.21 > 4.(19+1))"},
		"MajorIn4.21":        {reason: "no update of the major version before pull request 1275", request: byImage(at("4.21.9"), "5.0.0"), want: precondition, message: "MajorVersionUpdate"},
		"MajorIn4.22":        {reason: "4.22 can be updated to 5.0", request: byImage(at("4.22.9"), "5.0.0"), want: loaded},
		"MajorIn4.22To5.1":   {reason: "4.22 cannot be updated to 5.1", request: byImage(at("4.22.9"), "5.1.0"), want: precondition, message: "or to 5.0 are supported"},
		"RetargetIn4.16":     {reason: "measured from the last completed release before pull request 1094", request: byImage(notUpgradeable(toward("4.16.2", "4.15.3")), "4.16.3"), want: precondition},
		"RetargetIn4.17":     {reason: "backported to some releases", request: byImage(notUpgradeable(toward("4.17.2", "4.16.3")), "4.17.3"), want: undetermined, message: "last completed"},
		"RetargetIn4.17.5":   {reason: "in 4.17 since the end of October 2024", request: byImage(notUpgradeable(toward("4.17.5", "4.16.3")), "4.17.6"), want: loaded, message: "Retarget to 4.17.6"},
		"RetargetOverrides":  {reason: "by both measures a retarget with overrides is refused", request: byImage(unmanaged(notUpgradeable(toward("4.17.2", "4.16.3"))), "4.17.3"), want: precondition},
		"NextMinorIn4.17":    {reason: "by both measures the next minor version is blocked", request: byImage(notUpgradeable(toward("4.17.2", "4.16.3")), "4.18.3"), want: precondition},
		"RetargetIn4.18":     {reason: "a retarget within the minor version in progress is a warning", request: byImage(notUpgradeable(toward("4.18.2", "4.17.3")), "4.18.3"), want: loaded, message: "Retarget to 4.18.3 while a minor version update from 4.17.3 to 4.18.2 is in progress"},
		"RetargetIn5.0":      {reason: "a retarget within the major version in progress is a warning", request: byImage(notUpgradeable(toward("5.0.2", "4.22.3")), "5.0.3"), want: loaded, message: "MajorVersionClusterUpdateInProgress"},
		"PatchOverPatch":     {reason: "a retarget of a patch update has no warning", request: byImage(notUpgradeable(available(toward("4.18.6", "4.18.3"), "4.18.7")), "4.18.7"), want: loaded},
		"OverridesIn4.21":    {reason: "patch updates are refused before pull request 1314", request: byImage(unmanaged(notUpgradeable(at("4.21.3"))), "4.21.9"), want: precondition, message: "ClusterVersionOverridesSet"},
		"OverridesIn4.22":    {reason: "overrides are a warning", request: byImage(unmanaged(notUpgradeable(at("4.22.3"))), "4.22.9"), want: loaded, message: "Retarget from 4.22.3 to 4.22.9 is not blocked by ClusterVersionOverridesSet"},
		"NextInProgress4.18": {reason: "4.6 to 4.7 to 4.8 of the enhancement for EUS", request: byImage(notUpgradeable(toward("4.19.2", "4.18.3")), "4.20.1"), want: precondition},
	})
}

func TestRollback(t *testing.T) {
	unreadable := at("4.18.9", "4.18.3")
	unreadable.Status.History[1].Version = "broken"
	reimaged := at("1.0.1", "1.0.1", "1.0.0")
	reimaged.Status.Desired = configv1.Release{Version: "4.18.9", Image: digest("other")}
	reimaged.Status.History[0] = configv1.UpdateHistory{Version: "4.18.9", Image: digest("other")}
	reimaged.Status.History[1] = configv1.UpdateHistory{Version: "4.18.9", Image: digest("4.18.9")}
	for name, tc := range map[string]struct {
		reason  string
		cluster *configv1.ClusterVersion
		target  string
		message string // a part of it
		weight  cvo.Weight
	}{
		"Forward":   {reason: "a later release is no rollback", cluster: at("4.18.3"), target: "4.18.9"},
		"Same":      {reason: "the same release is no rollback", cluster: at("4.18.3"), target: "4.18.3"},
		"Previous":  {reason: "the previous release is allowed", cluster: at("4.18.9", "4.18.3"), target: "4.18.3"},
		"Older":     {reason: "an earlier release than the previous one", cluster: at("4.18.9", "4.18.5", "4.18.3"), target: "4.18.3", message: "only supported rollback is to the cluster's previous version 4.18.5", weight: cvo.Blocking},
		"Minor":     {reason: "the previous release in another minor version", cluster: at("4.18.9", "4.17.3"), target: "4.17.3", message: "change major or minor versions are not recommended", weight: cvo.Blocking},
		"NoHistory": {reason: "the history has no previous release", cluster: at("4.18.9"), target: "4.18.3", message: "no previous Semantic Version", weight: cvo.Blocking},
		"NotSemVer": {reason: "the previous release cannot be compared", cluster: unreadable, target: "4.18.3", message: "no previous Semantic Version", weight: cvo.Blocking},
		"Image":     {reason: "the same version with another image is the previous release", cluster: reimaged, target: "4.18.8", message: "previous version 4.18.9", weight: cvo.Blocking},
		"Current":   {reason: "an update may fix the current version", cluster: at("custom"), target: "4.18.3", message: "", weight: cvo.Warning},
		"Target":    {reason: "a target that is not SemVer", cluster: at("4.18.3"), target: "latest", message: "", weight: cvo.Blocking},
	} {
		t.Run(name, func(t *testing.T) {
			violation := cvo.Rollback(tc.cluster, tc.target)
			if got := weightOf(violation); got != tc.weight {
				t.Errorf("%s: weight %q, want %q", tc.reason, got, tc.weight)
			}
			if violation != nil && !strings.Contains(violation.Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, violation.Message, tc.message)
			}
		})
	}
}

func TestGiantHop(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, from, to string
		want             cvo.Weight
	}{
		"Before":    {reason: "CVO does not check it yet", from: "4.16.3", to: "4.18.1", want: cvo.Unchecked},
		"Partly":    {reason: "some releases check it", from: "4.18.3", to: "4.20.1", want: cvo.Uncertain},
		"Since":     {reason: "all releases check it", from: "4.20.3", to: "4.22.1", want: cvo.Blocking},
		"In5":       {reason: "CVO blocks skip-level updates", from: "5.0.3", to: "5.2.1", want: cvo.Blocking},
		"Two":       {reason: "6.0 cannot be reached from 4.y", from: "4.22.3", to: "6.0.0", want: cvo.Blocking},
		"Next":      {reason: "the next minor version is one hop", from: "5.0.3", to: "5.1.1"},
		"Back":      {reason: "an earlier major version is no hop", from: "5.0.3", to: "4.22.1"},
		"AnyTo5.0":  {reason: "5.0 can be reached from 4.22", from: "4.22.3", to: "5.0.9"},
		"Candidate": {reason: "a release candidate belongs to its minor version", from: "4.20.0-rc.1", to: "4.21.0-rc.0"},
	} {
		t.Run(name, func(t *testing.T) {
			violation := cvo.GiantHop(at(tc.from), tc.to)
			if got := weightOf(violation); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// weightOf is the weight of a violation, and empty for none.
func weightOf(violation *cvo.Violation) cvo.Weight {
	if violation == nil {
		return ""
	}
	return violation.Weight
}

func TestCompletedVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status configv1.ClusterVersionStatus
		want   string
	}{
		"Completed": {reason: "the last completed release", status: toward("4.7.3", "4.6.9", "4.6.1").Status, want: "4.6.9"},
		"Installing": {
			reason: "otherwise the first release in the history",
			status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.7.3"}, {Version: "4.7.1"}}}, want: "4.7.1",
		},
		"Empty": {reason: "an empty history"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cvo.CompletedVersion(tc.status); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// FuzzJudge checks the invariants of every Prediction, with any content of a
// ClusterVersion.
func FuzzJudge(f *testing.F) {
	f.Add("4.18.3", "4.19.0", "4.17.1", "repository@sha256:0", "False", true)
	f.Add("", "latest", "", "", "Unknown", false)
	f.Add("5.0.0-rc.1", "5.2.0", "4.22.1+multi", "tag", "", false)
	f.Fuzz(func(t *testing.T, current, target, before, image, upgradeable string, force bool) {
		cluster := with(toward(current, before), configv1.OperatorUpgradeable, configv1.ConditionStatus(upgradeable), "Reason", "message")
		prediction := cvo.Judge(cvo.Request{ClusterVersion: cluster, Version: target, Image: image, Force: force})
		if prediction.Reason == "" || prediction.Message == "" {
			t.Errorf("%+v has no reason or no message", prediction)
		}
		if (prediction.Accepts == nil) != (prediction.Reason == cvo.NotEvaluated) {
			t.Errorf("%+v: Accepts is nil exactly where the reason is NotEvaluated", prediction)
		}
		if prediction.Accepts != nil && *prediction.Accepts && !force && image != digest(current) && target != current {
			t.Errorf("%+v: accepted although the signature is unknown", prediction)
		}
	})
}

func TestMakesUpgradeable(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, release, gate string
		want                  bool
	}{
		"Updating4.18": {reason: "before pull request 1080", release: "4.18.30", gate: "ClusterVersionUpdating"},
		"Updating4.19": {reason: "since pull request 1080", release: "4.19.0", gate: "ClusterVersionUpdating", want: true},
		"Overrides":    {reason: "in every release", release: "4.14.2", gate: "ClusterVersionOverrides", want: true},
		"Ack":          {reason: "in every release with admin gates", release: "4.14.2", gate: "AdminAck-ack-4.14-x", want: true},
		"Operator":     {reason: "in every release", release: "4.14.2", gate: "ClusterOperatorUpgradeable-etcd", want: true},
		"Ours":         {reason: "no gate of CVO", release: "4.19.0", gate: "MachineConfigPools"},
		"NotSemVer":    {reason: "the CVO is unknown", release: "custom", gate: "ClusterVersionOverrides"},
	} {
		if got := cvo.MakesUpgradeable(tc.release, tc.gate); got != tc.want {
			t.Errorf("%s (%s): %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}
