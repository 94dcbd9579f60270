package ownsignal_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/ownsignal"
)

func TestAlert(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, alert, namespace string
		want                     bool
	}{
		"Own":            {"name and namespace are the preflight's", "UpdatePreflightBlocked", ownsignal.Namespace, true},
		"OtherNamespace": {"an alert of another namespace is not hidden by its name", "UpdatePreflightBlocked", "shop", false},
		"NoNamespace":    {"the namespace is required", "UpdatePreflightBlocked", "", false},
		"OtherName":      {"another alert of the namespace counts", "KubeContainerWaiting", ownsignal.Namespace, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownsignal.Alert(tc.alert, tc.namespace); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestRisk(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, risk, applies string
		want                  bool
	}{
		"Own":           {"name and reason are those of the source of risks", "Preflight-4.19.1", "PreflightBlocked", true},
		"OtherTarget":   {"the risk of another target is no risk of this one", "Preflight-4.19.2", "PreflightBlocked", false},
		"UpdateService": {"a risk of the update service has the reason of CVO's evaluation", "Preflight-4.19.1", "MatchesRule", false},
		"NotAssessed":   {"without an assessment the risk may be the update service's", "Preflight-4.19.1", "", false},
		"OtherName":     {"a name with the same beginning", "Preflight", "PreflightBlocked", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownsignal.Risk(tc.risk, "4.19.1", tc.applies); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestUpgradeable(t *testing.T) {
	const (
		since423 = "RiskNameNotCompatibleWithReasonProperty"
		minor    = "Cluster operator update-preflight should not be upgraded between minor versions: "
		major    = "Cluster operator update-preflight should not be upgraded between minor or major versions: "
		several  = "Cluster should not be upgraded between minor or major versions for multiple reasons:\n* "
	)
	own := ownsignal.Message("4.19.1 is Blocked.\nRun:\toc preflight status")
	if strings.ContainsAny(own, "\n\t") {
		t.Errorf("the message has several lines: %q", own)
	}
	for name, tc := range map[string]struct {
		reason, condition, message string
		want                       bool
	}{
		"Since4.23":      {"the message of a single cause is repeated", since423, own, true},
		"Until4.22":      {"the operator is named", ownsignal.NotReady, major + own, true},
		"Until4.20":      {"only minor versions are named", ownsignal.NotReady, minor + own, true},
		"Several":        {"another cause is listed", "MultipleReasons", several + own + "\n* Acknowledge the removal.", false},
		"SeveralLines":   {"a second line may be another cause", since423, own + "\n* Acknowledge the removal.", false},
		"CarriageReturn": {"so may one after a carriage return", since423, own + "\r* Acknowledge the removal.", false},
		"OtherOperator":  {"another operator is named", ownsignal.NotReady, strings.Replace(major, "update-preflight", "etcd", 1) + own, false},
		"LongerName":     {"an operator whose name has the same beginning", ownsignal.NotReady, strings.Replace(major, "update-preflight", "update-preflight-x", 1) + own, false},
		"OtherReason":    {"the reason is another one", "AdminAckRequired", own, false},
		"OtherMessage":   {"another operator of 4.23 or later", since423, "vSphere 7 is not supported", false},
		"Within":         {"the text is only part of the message", since423, "Wait. " + own, false},
		"Unnamed":        {"until 4.22 the operator is always named", ownsignal.NotReady, own, false},
		"NoMessage":      {"a condition without a message has an unknown cause", since423, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownsignal.Upgradeable(tc.condition, tc.message); got != tc.want {
				t.Errorf("%s: %v for %s: %q", tc.reason, got, tc.condition, tc.message)
			}
		})
	}
}
