package cvo_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

// TestReleasesDiffer has one row for each way in which the release that the
// cluster runs decides what its CVO does.
func TestReleasesDiffer(t *testing.T) {
	unknown := nobodyKnows
	check(t, map[string]judged{
		"RollbackIn4.15": {
			reason: "no rollback at all before pull request 996", request: ask(at("4.15.9", "4.15.3"), "4.15.3"),
			want: precondition, says: "4.15.3 is less than the current target 4.15.9, but rollbacks and downgrades are not recommended",
		},
		"RollbackIn4.16":     {reason: "it came, went and came back in 4.16", request: ask(at("4.16.9", "4.16.3"), "4.16.3"), want: unknown, says: "some releases"},
		"RollbackIn4.17":     {reason: "to the previous release within the minor version", request: ask(at("4.17.9", "4.17.3"), "4.17.3"), want: loaded},
		"GiantHopIn4.17":     {reason: "no such precondition before pull request 1112", request: ask(at("4.17.9"), "4.19.3"), want: loaded},
		"GiantHopIn4.18":     {reason: "backported, or not", request: ask(at("4.18.9"), "4.20.3"), want: unknown},
		"GiantHopIn4.19":     {reason: "two minor versions up", request: ask(at("4.19.9"), "4.21.3"), want: precondition, says: "(4.21 > 4.(19+1))"},
		"MajorIn4.21":        {reason: "no major version before pull request 1275", request: ask(at("4.21.9"), "5.0.0"), want: precondition, says: "MajorVersionUpdate"},
		"MajorIn4.22":        {reason: "to 5.0 only", request: ask(at("4.22.9"), "5.0.0"), want: loaded},
		"MajorIn4.22To5.1":   {reason: "not to 5.1", request: ask(at("4.22.9"), "5.1.0"), want: precondition, says: "or to 5.0 are supported"},
		"RetargetIn4.16":     {reason: "measured from the last completed release before pull request 1094", request: ask(shut(toward("4.16.2", "4.15.3")), "4.16.3"), want: precondition},
		"RetargetIn4.17":     {reason: "backported to some", request: ask(shut(toward("4.17.2", "4.16.3")), "4.17.3"), want: unknown, says: "last completed"},
		"NextMinorIn4.17":    {reason: "but either way the next minor version is blocked", request: ask(shut(toward("4.17.2", "4.16.3")), "4.18.3"), want: precondition},
		"RetargetIn4.18":     {reason: "within the minor version on the way, with a warning", request: ask(shut(toward("4.18.2", "4.17.3")), "4.18.3"), want: loaded, says: "Retarget to 4.18.3 while a minor version update from 4.17.3 to 4.18.2 is in progress"},
		"RetargetIn5.0":      {reason: "the major version too", request: ask(shut(toward("5.0.2", "4.22.3")), "5.0.3"), want: loaded, says: "MajorVersionClusterUpdateInProgress"},
		"PatchOverPatch":     {reason: "a patch update may be retargeted without a word", request: ask(shut(available(toward("4.18.6", "4.18.3"), "4.18.7")), "4.18.7"), want: loaded},
		"OverridesIn4.21":    {reason: "patch updates are refused before pull request 1314", request: ask(unmanaged(shut(at("4.21.3"))), "4.21.9"), want: precondition, says: "ClusterVersionOverridesSet"},
		"OverridesIn4.22":    {reason: "since they are a warning", request: ask(unmanaged(shut(at("4.22.3"))), "4.22.9"), want: loaded, says: "Retarget from 4.22.3 to 4.22.9 is not blocked by ClusterVersionOverridesSet"},
		"NextInProgress4.18": {reason: "4.6 to 4.7 to 4.8, of the EUS enhancement", request: ask(shut(toward("4.19.2", "4.18.3")), "4.20.1"), want: precondition},
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
		says    string
		weight  cvo.Weight
	}{
		"Forward":   {reason: "not before the current target", cluster: at("4.18.3"), target: "4.18.9"},
		"Same":      {reason: "nor is the same release", cluster: at("4.18.3"), target: "4.18.3"},
		"Previous":  {reason: "the release before it", cluster: at("4.18.9", "4.18.3"), target: "4.18.3"},
		"Older":     {reason: "one before that", cluster: at("4.18.9", "4.18.5", "4.18.3"), target: "4.18.3", says: "only supported rollback is to the cluster's previous version 4.18.5", weight: cvo.Blocking},
		"Minor":     {reason: "across a minor version", cluster: at("4.18.9", "4.17.3"), target: "4.17.3", says: "change major or minor versions are not recommended", weight: cvo.Blocking},
		"NoHistory": {reason: "nothing before it", cluster: at("4.18.9"), target: "4.18.3", says: "no previous Semantic Version", weight: cvo.Blocking},
		"NotSemVer": {reason: "what is before it cannot be compared", cluster: unreadable, target: "4.18.3", says: "no previous Semantic Version", weight: cvo.Blocking},
		"Image":     {reason: "the same version with another image is the previous release", cluster: reimaged, target: "4.18.8", says: "previous version 4.18.9", weight: cvo.Blocking},
		"Current":   {reason: "an update may be what puts the current version right", cluster: at("custom"), target: "4.18.3", says: "", weight: cvo.Warning},
		"Target":    {reason: "a target that is not SemVer", cluster: at("4.18.3"), target: "latest", says: "", weight: cvo.Blocking},
	} {
		t.Run(name, func(t *testing.T) {
			objection := cvo.Rollback(tc.cluster, tc.target)
			if objection == nil {
				if tc.weight != "" {
					t.Errorf("%s: no objection, want one that is %s", tc.reason, tc.weight)
				}
				return
			}
			if objection.Weight != tc.weight || !strings.Contains(objection.Message, tc.says) {
				t.Errorf("%s: %+v, want %s and %q", tc.reason, *objection, tc.weight, tc.says)
			}
		})
	}
}

func TestGiantHopIsARuleBeforeItIsAPrecondition(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, from, to string
		want             cvo.Weight
	}{
		"Before":    {reason: "CVO does not look", from: "4.16.3", to: "4.18.1", want: cvo.Unchecked},
		"Partly":    {reason: "some do", from: "4.18.3", to: "4.20.1", want: cvo.Uncertain},
		"Since":     {reason: "all do", from: "4.20.3", to: "4.22.1", want: cvo.Blocking},
		"In5":       {reason: "skip-level is blocked today", from: "5.0.3", to: "5.2.1", want: cvo.Blocking},
		"Two":       {reason: "two major versions", from: "4.22.3", to: "6.0.0", want: cvo.Blocking},
		"Next":      {reason: "one hop", from: "5.0.3", to: "5.1.1"},
		"Back":      {reason: "a lower major version is no hop forward", from: "5.0.3", to: "4.22.1"},
		"AnyTo5.0":  {reason: "any 4.y passes", from: "4.22.3", to: "5.0.9"},
		"Candidate": {reason: "a release candidate is of its minor version", from: "4.20.0-rc.1", to: "4.21.0-rc.0"},
	} {
		t.Run(name, func(t *testing.T) {
			objection := cvo.GiantHop(at(tc.from), tc.to)
			if got := weightOf(objection); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func weightOf(objection *cvo.Objection) cvo.Weight {
	if objection == nil {
		return ""
	}
	return objection.Weight
}

func TestCompletedVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status configv1.ClusterVersionStatus
		want   string
	}{
		"Completed": {reason: "the last that it completed", status: toward("4.7.3", "4.6.9", "4.6.1").Status, want: "4.6.9"},
		"Installing": {
			reason: "else the one that it was installed with",
			status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.7.3"}, {Version: "4.7.1"}}}, want: "4.7.1",
		},
		"Empty": {reason: "before CVO wrote anything"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cvo.CompletedVersion(tc.status); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// FuzzJudge holds Judge to what every answer has to be, whatever is in a
// ClusterVersion.
func FuzzJudge(f *testing.F) {
	f.Add("4.18.3", "4.19.0", "4.17.1", "repository@sha256:0", "False", true)
	f.Add("", "latest", "", "", "Unknown", false)
	f.Add("5.0.0-rc.1", "5.2.0", "4.22.1+multi", "tag", "", false)
	f.Fuzz(func(t *testing.T, current, target, before, image, upgradeable string, force bool) {
		cluster := with(toward(current, before), configv1.OperatorUpgradeable, configv1.ConditionStatus(upgradeable), "Reason", "message")
		answer := cvo.Judge(cvo.Request{ClusterVersion: cluster, Version: target, Image: image, Force: force})
		if answer.Reason == "" || answer.Message == "" {
			t.Errorf("%+v does not say why", answer)
		}
		if (answer.Accepts == nil) != (answer.Reason == cvo.NotEvaluated) {
			t.Errorf("%+v: only what is not evaluated is neither yes nor no", answer)
		}
		if answer.Accepts != nil && *answer.Accepts && !force && image != digest(current) && target != current {
			t.Errorf("%+v: accepted although nobody knows the signature", answer)
		}
	})
}
