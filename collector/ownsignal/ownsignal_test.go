package ownsignal_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

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
	always := configv1.ClusterCondition{Type: "Always"}
	query := configv1.ClusterCondition{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: "vector(1)"}}
	const target, build = "4.19.1", "4.19.1+1"
	risk := func(name, url string, rules ...configv1.ClusterCondition) configv1.ConditionalUpdateRisk {
		return configv1.ConditionalUpdateRisk{Name: name, URL: url, Message: "x", MatchingRules: rules}
	}
	for name, tc := range map[string]struct {
		reason, version string
		risk            configv1.ConditionalUpdateRisk
		want            bool
	}{
		"Own":         {"name, URL and rule are those of the source of risks", target, risk("Preflight-4.19.1", ownsignal.URL, always), true},
		"OtherTarget": {"the risk of another target is no risk of this one", target, risk("Preflight-4.19.2", ownsignal.URL, always), false},
		"OtherURL": {
			"a risk of the update service has a URL of its own", target, risk("Preflight-4.19.1", "https://example.com", always),
			false,
		},
		"NoURL":        {"the URL is required", target, risk("Preflight-4.19.1", "", always), false},
		"LongerURL":    {"a page of the same site is another URL", target, risk("Preflight-4.19.1", ownsignal.URL+"/issues/1", always), false},
		"Query":        {"the source of risks has no queries", target, risk("Preflight-4.19.1", ownsignal.URL, query), false},
		"AlwaysOrElse": {"the source of risks sets one rule", target, risk("Preflight-4.19.1", ownsignal.URL, always, query), false},
		"NoRules":      {"a risk that is only named may be the update service's", target, risk("Preflight-4.19.1", ownsignal.URL), false},
		"OtherName":    {"a name with the same beginning", target, risk("Preflight", ownsignal.URL, always), false},
		"NoVersion":    {"the target is a version", "", risk("Preflight-", ownsignal.URL, always), false},
		"NotAVersion":  {"the target is a semantic version", "4.19", risk("Preflight-4.19", ownsignal.URL, always), false},
		"Build": {
			"CVO drops the risk of a version with build metadata, so this is another one", build,
			risk("Preflight-"+build, ownsignal.URL, always), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownsignal.Risk(tc.risk, tc.version); got != tc.want {
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
		"LongerName": {
			"an operator whose name has the same beginning", ownsignal.NotReady,
			strings.Replace(major, "update-preflight", "update-preflight-x", 1) + own, false,
		},
		"OtherReason":  {"the reason is another one", "AdminAckRequired", own, false},
		"OtherMessage": {"another operator of 4.23 or later", since423, "vSphere 7 is not supported", false},
		"Within":       {"the text is only part of the message", since423, "Wait. " + own, false},
		"Unnamed":      {"until 4.22 the operator is always named", ownsignal.NotReady, own, false},
		"NoMessage":    {"a condition without a message has an unknown cause", since423, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownsignal.Upgradeable(tc.condition, tc.message); got != tc.want {
				t.Errorf("%s: %v for %s: %q", tc.reason, got, tc.condition, tc.message)
			}
		})
	}
}
