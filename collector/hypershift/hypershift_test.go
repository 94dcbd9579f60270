package hypershift_test

import (
	"testing"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/hypershift"
)

const (
	present = "quay.io/release@sha256:aa"
	other   = "quay.io/release@sha256:bb"
)

// hostedCluster runs 4.18.5, and is Upgradeable by that condition; none without a status.
func hostedCluster(upgradeable metav1.ConditionStatus, change func(*hypershift.HostedCluster)) *hypershift.HostedCluster {
	h := &hypershift.HostedCluster{}
	h.Status.Version = &hypershift.VersionStatus{Desired: configv1.Release{Version: "4.18.5", Image: present}}
	if upgradeable != "" {
		h.Status.Conditions = []metav1.Condition{{Type: "ClusterVersionUpgradeable", Status: upgradeable}}
	}
	change(h)
	return h
}

func unchanged(*hypershift.HostedCluster) {}

func forced(image string) func(*hypershift.HostedCluster) {
	return func(h *hypershift.HostedCluster) {
		h.Annotations = map[string]string{hypershift.AnnotationForce: image}
	}
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		upgradeable metav1.ConditionStatus
		change      func(*hypershift.HostedCluster)
		request     hypershift.Request
		want        hypershift.Rule
		accepts     bool
	}{
		"Installing": {
			reason: "a cluster without a version is not updated", change: func(h *hypershift.HostedCluster) { h.Status.Version = nil },
			request: hypershift.Request{Image: other, Version: "4.19.0"}, want: hypershift.RuleCurrent, accepts: true,
		},
		"Current": {
			reason: "the release that runs is no update", upgradeable: metav1.ConditionFalse, change: forced(other),
			request: hypershift.Request{Image: present, Version: "4.18.5"}, want: hypershift.RuleCurrent, accepts: true,
		},
		"Tag": {
			reason: "the tag of the release that runs is another text than its digest", upgradeable: metav1.ConditionFalse, change: forced(other),
			request: hypershift.Request{Image: "quay.io/release:4.18.5", Version: "4.18.5"}, want: hypershift.RuleOtherForced,
		},
		"Missing": {
			reason: "a missing condition permits a minor update", change: forced(present),
			request: hypershift.Request{Image: other, Version: "4.19.0"}, want: hypershift.RuleUpgradeable, accepts: true,
		},
		"StaleForce": {
			reason: "the annotation of an earlier update refuses a patch", upgradeable: metav1.ConditionFalse, change: forced(present),
			request: hypershift.Request{Image: other, Version: "4.18.6"}, want: hypershift.RuleOtherForced,
		},
		"Forced": {
			reason: "the annotation names the release", upgradeable: metav1.ConditionFalse, change: forced(other),
			request: hypershift.Request{Image: other, Version: "4.19.0"}, want: hypershift.RuleForced, accepts: true,
		},
		"ControlPlaneRelease": {
			reason: "the field counts as a decision", upgradeable: metav1.ConditionFalse,
			change:  func(h *hypershift.HostedCluster) { h.Spec.ControlPlaneRelease = &hypershift.Release{Image: other} },
			request: hypershift.Request{Image: other, Version: "4.19.0"}, want: hypershift.RuleOverridden, accepts: true,
		},
		"UnknownVersion": {
			reason: "the present version must be a semantic one", upgradeable: metav1.ConditionFalse,
			change:  func(h *hypershift.HostedCluster) { h.Status.Version.Desired.Version = "nightly" },
			request: hypershift.Request{Image: other, Version: "4.18.6"}, want: hypershift.RuleUnknownVersion,
		},
		"Patch": {
			reason: "a patch is accepted", upgradeable: metav1.ConditionFalse, change: unchanged,
			request: hypershift.Request{Image: other, Version: "4.18.6"}, want: hypershift.RulePatch, accepts: true,
		},
		"Minor": {
			reason: "a minor update is refused", upgradeable: metav1.ConditionFalse, change: unchanged,
			request: hypershift.Request{Image: other, Version: "4.19.0"}, want: hypershift.RuleNotUpgradeable,
		},
		"Unknown": {
			reason: "Unknown refuses as False does", upgradeable: metav1.ConditionUnknown, change: unchanged,
			request: hypershift.Request{Image: other, Version: "4.19.0"}, want: hypershift.RuleNotUpgradeable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hypershift.Evaluate(hostedCluster(tc.upgradeable, tc.change), tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if got.Rule != tc.want || got.Accepts != tc.accepts || (got.Message == "") != tc.accepts {
				t.Errorf("%s: %+v, want rule %s, accepts %t", tc.reason, got, tc.want, tc.accepts)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	supported := hypershift.Supported{"4.20", "4.19", "4.18"}
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		change   func(*hypershift.HostedCluster)
		want     hypershift.Refusal
		skipped  uint64
	}{
		"Minor":            {reason: "the next minor version is accepted", from: "4.18.5", to: "4.19.0"},
		"Skip":             {reason: "HyperShift accepts an update that skips a minor version", from: "4.18.5", to: "4.20.0", skipped: 1},
		"PatchDowngrade":   {reason: "an earlier patch is accepted", from: "4.18.5", to: "4.18.1"},
		"MinorDowngrade":   {reason: "an earlier minor version is not", from: "4.19.0", to: "4.18.9", want: hypershift.RefusalDowngrade},
		"TooNew":           {reason: "the operator is older than the release", from: "4.20.0", to: "4.21.0", want: hypershift.RefusalTooNew},
		"Major":            {reason: "5.0 follows 4.22", from: "4.22.0", to: "5.0.0", want: hypershift.RefusalTooNew},
		"MajorSkip":        {reason: "5.1 counts as 4.24", from: "4.22.0", to: "5.1.0", want: hypershift.RefusalTooNew, skipped: 1},
		"UnsupportedMajor": {reason: "HyperShift knows 4 and 5", from: "5.0.0", to: "6.0.0", want: hypershift.RefusalMajor},
		"Minimum":          {reason: "4.14 is the oldest", from: "4.12.0", to: "4.13.0", want: hypershift.RefusalMinimum},
		"TooOld":           {reason: "4.8 was the first", from: "4.6.0", to: "4.7.0", want: hypershift.RefusalTooOld},
		"SDN": {
			reason: "OpenShiftSDN has no later minor version", from: "4.18.5", to: "4.19.0", want: hypershift.RefusalSDN,
			change: func(h *hypershift.HostedCluster) { h.Spec.Networking.NetworkType = "OpenShiftSDN" },
		},
		"Unvalidated": {
			reason: "the annotation accepts every release", from: "4.19.0", to: "4.7.0",
			change: func(h *hypershift.HostedCluster) {
				h.Annotations = map[string]string{hypershift.AnnotationUnvalidated: ""}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := unchanged
			if tc.change != nil {
				change = tc.change
			}
			from, to := semver.MustParse(tc.from), semver.MustParse(tc.to)
			if got := hypershift.Refuses(hostedCluster("", change), from, to, supported); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
			if got := hypershift.Skipped(from, to); got != tc.skipped {
				t.Errorf("%s: %d minor versions are left out, want %d", tc.reason, got, tc.skipped)
			}
		})
	}
}

func TestSkewed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		pool, controlPlane string
		want               hypershift.Skew
	}{
		"Same":    {reason: "the same version", pool: "4.18.5", controlPlane: "4.18.5", want: hypershift.SkewNone},
		"Two":     {reason: "two minor versions are supported", pool: "4.16.9", controlPlane: "4.18.5", want: hypershift.SkewNone},
		"Three":   {reason: "three are the limit", pool: "4.15.0", controlPlane: "4.18.5", want: hypershift.SkewAtLimit},
		"Four":    {reason: "four are too many", pool: "4.14.9", controlPlane: "4.18.5", want: hypershift.SkewTooOld},
		"Patch":   {reason: "a later patch is not supported", pool: "4.18.6", controlPlane: "4.18.5", want: hypershift.SkewNewer},
		"Major":   {reason: "5.0 is 4.23", pool: "4.20.0", controlPlane: "5.0.0", want: hypershift.SkewAtLimit},
		"Unknown": {reason: "another major version cannot be compared", pool: "3.11.0", controlPlane: "4.18.5", want: hypershift.SkewUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hypershift.Skewed(semver.MustParse(tc.pool), semver.MustParse(tc.controlPlane)); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, stream, runs, to string
		configured               bool
		refuses, mayHaveRunc     bool
	}{
		"Default":  {reason: "the release decides", to: "5.0.0", configured: true},
		"RHEL9":    {reason: "every release has it", stream: "rhel-9", to: "5.1.0", configured: true},
		"Early":    {reason: "releases have it from 5.0 on", stream: "rhel-10", to: "4.23.4", refuses: true},
		"RHEL10":   {reason: "the release has it, and nothing else configures the nodes", stream: "rhel-10", to: "5.0.0"},
		"Runc":     {reason: "a ConfigMap may configure runc", stream: "rhel-10", to: "5.0.0", configured: true, mayHaveRunc: true},
		"Running":  {reason: "nodes with the stream have no runc", stream: "rhel-10", runs: "rhel-10", to: "5.1.0", configured: true},
		"Unlisted": {reason: "HyperShift refuses every other one", stream: "rhel-11", to: "5.0.0", refuses: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &hypershift.NodePool{}
			p.Spec.OSImageStream.Name, p.Status.OSImageStream.Name = tc.stream, tc.runs
			if tc.configured {
				p.Spec.Config = []corev1.LocalObjectReference{{Name: "tuning"}}
			}
			if got := p.RefusesStream(semver.MustParse(tc.to)); (got != "") != tc.refuses || p.MayHaveRunc() != tc.mayHaveRunc {
				t.Errorf("%s: %q, may have runc %t", tc.reason, got, p.MayHaveRunc())
			}
		})
	}
}

func FuzzParseSupported(f *testing.F) {
	f.Add(`{"versions":["4.19","4.18"]}`)
	f.Add(`{"versions":[]}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		if supported, err := hypershift.ParseSupported(text); err == nil && len(supported) == 0 {
			t.Errorf("no error for no versions: %q", text)
		}
	})
}
