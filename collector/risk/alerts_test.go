package risk_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/risk"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/prometheus"
)

var fires = checktest.Result{Outcome: preflight.Fail, Reason: "AlertFiring"}

// alarm is a rule whose alert fires, with labels as pairs of name and value.
func alarm(name string, labels ...string) prometheus.Rule {
	rule := prometheus.Rule{Alert: name, Expr: "vector(1)", Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		rule.Labels[labels[i]] = labels[i+1]
	}
	return rule
}

func annotated(rule prometheus.Rule, annotations ...string) prometheus.Rule {
	rule.Annotations = map[string]string{}
	for i := 0; i+1 < len(annotations); i += 2 {
		rule.Annotations[annotations[i]] = annotations[i+1]
	}
	return rule
}

func TestAlertsThatAffectUpdates(t *testing.T) {
	pending := alarm("NotYet", "severity", "critical")
	pending.For = "1h"
	p := shared.Load(t,
		alarm("ClusterDown", "severity", "critical"), alarm("etcdMembersDown", "severity", "critical"), alarm("Odd_name", "severity", "critical"),
		alarm("PodDisruptionBudgetAtLimit", "severity", "warning"), alarm("KubeContainerWaiting"), alarm("KubeletHealthState"),
		alarm("KubeNodeNotReady"), alarm("KubeNodeReadinessFlapping"), alarm("KubeNodeUnreachable"),
		alarm("VirtHandlerDaemonSetRolloutFailing"), alarm("VMCannotBeEvicted"),
		alarm("Precheck", "severity", "info", "openShiftUpdatePrecheck", "true"),
		alarm("NoPrecheck", "openShiftUpdatePrecheck", "false"), alarm("Watchdog", "severity", "none"), alarm("Warning", "severity", "warning"),
		alarm("OtherCase", "severity", "Critical"), pending,
	)
	want := results{
		"ClusterDown": fires, "Alert-etcdMembersDown": fires, "Alert-Odd-name-bc27d392": fires,
		"PodDisruptionBudgetAtLimit": fires, "KubeContainerWaiting": fires, "KubeletHealthState": fires,
		"KubeNodeNotReady": fires, "KubeNodeReadinessFlapping": fires, "KubeNodeUnreachable": fires,
		"VirtHandlerDaemonSetRolloutFailing": fires, "VMCannotBeEvicted": fires, "Precheck": fires,
	}
	for _, target := range []string{"4.18.4", "4.19.0"} { // they concern patch updates too
		findings := run(t, server, clientOf(p.URL), "Alerts", target)
		if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
			t.Errorf("alerts that fire before %s (-want +got):\n%s", target, diff)
		}
		for _, f := range findings {
			if len(f.BlockedTargets) != 1 || f.BlockedTargets[0] != target ||
				!slices.ContainsFunc(f.Actions, func(a finding.Action) bool { return a.Type == finding.ActionAccept && a.Value == f.Name }) {
				t.Errorf("%s: %+v", target, f)
			}
		}
	}
}

func TestNoAlertAffectsUpdates(t *testing.T) {
	p := shared.Load(t, alarm("Watchdog", "severity", "none"))
	findings := run(t, server, clientOf(p.URL), "Alerts", "4.19.0")
	if diff := cmp.Diff(results{"Alerts": {Outcome: preflight.Pass, Reason: "NoAlerts"}}, checktest.Results(findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := checktest.Messages(findings); !strings.Contains(got, "of 1 active alerts") {
		t.Errorf("the pass does not count the alerts: %s", got)
	}
}

// The messages are CVO's.
func TestMessagesOfAlerts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, name string
		rules        []prometheus.Rule
		want, url    string
		object       preflight.Object
	}{
		"Bare": {
			reason: "an alert without annotations is described by its name", name: "ClusterDown",
			rules: []prometheus.Rule{alarm("ClusterDown", "severity", "critical")},
			want: "critical alert ClusterDown firing, suggesting significant cluster issues worth investigating. " +
				"ClusterDown. The alert has no description. <alert does not have a runbook_url annotation>",
			url: "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound",
		},
		"Described": {
			reason: "summary, description, message and runbook", name: "KubeNodeNotReady",
			rules: []prometheus.Rule{annotated(alarm("KubeNodeNotReady", "severity", "warning", "node", "worker-1"),
				"summary", "Node is not ready", "description", "It is down", "message", "since long", "runbook_url", "https://example.com/run")},
			want: "warning alert KubeNodeNotReady firing, which may slow workload redistribution during rolling node updates. " +
				"Node is not ready. The alert description is: It is down | since long https://example.com/run",
			url:    "https://example.com/run",
			object: preflight.Object{APIVersion: "v1", Kind: "Node", Name: "worker-1"},
		},
		"Budget": {
			reason: "a PodDisruptionBudget is named", name: "PodDisruptionBudgetAtLimit",
			rules: []prometheus.Rule{annotated(alarm("PodDisruptionBudgetAtLimit", "severity", "warning", "namespace", "shop", "poddisruptionbudget",
				"cart"),
				"summary", "At limit.", "message", "no room")},
			want: "warning alert PodDisruptionBudgetAtLimit firing, which might slow node drains. " +
				"Namespace=shop, PodDisruptionBudget=cart. At limit. The alert description is: no room <alert does not have a runbook_url annotation>",
			url:    "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound",
			object: preflight.Object{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "cart"},
		},
		"Instances": {
			reason: "the instances of one alert are one finding", name: "Precheck",
			rules: []prometheus.Rule{
				annotated(alarm("Precheck", "severity", "b", "openShiftUpdatePrecheck", "true"), "description", "two"),
				annotated(alarm("Precheck", "severity", "a", "openShiftUpdatePrecheck", "true"), "description", "one"),
			},
			want: "a alert Precheck firing, suggesting issues worth investigating before updating the cluster. " +
				"Precheck. The alert description is: one <alert does not have a runbook_url annotation>; " +
				"b alert Precheck firing, suggesting issues worth investigating before updating the cluster. " +
				"Precheck. The alert description is: two <alert does not have a runbook_url annotation>",
			url: "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			findings := run(t, server, clientOf(shared.Load(t, tc.rules...).URL), "Alerts", "4.18.4")
			if len(findings) != 1 || findings[0].Name != tc.name {
				t.Fatalf("%s: want one finding, got %+v", tc.reason, findings)
			}
			got := findings[0]
			if diff := cmp.Diff(tc.want, got.Message); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got.URL != tc.url || got.Evidence["activeAt"] == "" || got.Evidence["instances"] != fmt.Sprint(len(tc.rules)) {
				t.Errorf("%s: URL %q, evidence %v", tc.reason, got.URL, got.Evidence)
			}
			if tc.object.Kind != "" && (len(got.Objects) != 1 || got.Objects[0] != tc.object) {
				t.Errorf("%s: objects %v", tc.reason, got.Objects)
			}
		})
	}
}

func TestManyInstancesAreCounted(t *testing.T) {
	var rules []prometheus.Rule
	for i := range 40 {
		rules = append(rules, alarm("ClusterDown", "severity", "critical", "instance", fmt.Sprint(i)))
	}
	findings := run(t, server, clientOf(shared.Load(t, rules...).URL), "Alerts", "4.18.4")
	if len(findings) != 1 || !strings.HasSuffix(findings[0].Message, "; and 30 more") || findings[0].Evidence["instances"] != "40" {
		t.Errorf("want one finding that counts 40 instances, got %+v", findings)
	}
}

func TestIgnoredAlerts(t *testing.T) {
	p := shared.Load(t,
		alarm("ByName", "severity", "critical"), alarm("ByNamespace", "severity", "critical", "namespace", "openshift-logging"),
		alarm("Both", "severity", "critical", "namespace", "openshift-logging"),
		alarm("Both", "severity", "critical", "namespace", "openshift-etcd"),
		alarm("Neither", "severity", "critical", "namespace", "openshift-etcd"),
	)
	options := risk.Options{IgnoredAlerts: []string{"ByName"}, IgnoredNamespaces: []string{"openshift-logging", ""}}
	got := map[string][]string{}
	for _, f := range runWith(t, server, clientOf(p.URL), query{check: "Alerts", to: "4.18.4", options: options}) {
		got[f.Name] = append(got[f.Name], string(f.Outcome)+" "+f.Message[:20])
	}
	want := map[string][]string{
		"ByName":      {`Warn the alert "ByName" i`},
		"ByNamespace": {`Warn the alerts of namesp`},
		"Both":        {"Fail critical alert Both ", "Warn the alerts of namesp"},
		"Neither":     {"Fail critical alert Neith"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ignored alerts are warnings with the cause (-want +got):\n%s", diff)
	}
}
