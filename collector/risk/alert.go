package risk

import (
	"fmt"
	"slices"
	"strings"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// alert is one instance of an alert that warns of updates.
type alert struct {
	prometheusv1.Alert
	name    string
	message string
}

// selectAlert says whether an alert warns of updates, and if so what of, by
// CVO's rules and in their order (pkg/risk/alert/alert.go). One without a name,
// which no Prometheus has, is told of too.
func selectAlert(active prometheusv1.Alert) (alert, bool) {
	one := alert{Alert: active, name: string(active.Labels[model.AlertNameLabel])}
	if active.State == prometheusv1.AlertStatePending {
		return one, false
	}
	impact := one.impact()
	if impact == "" {
		return one, false
	}
	if one.name == "" {
		one.name = "unnamed"
	}
	one.message = strings.TrimSpace(fmt.Sprintf("%s alert %s %s, %s. %s", one.label("severity"), one.name, one.State, impact, one.details()))
	return one, true
}

// impact is what an alert means for an update; empty for most.
func (a alert) impact() string {
	switch {
	case a.label("severity") == "critical":
		return "suggesting significant cluster issues worth investigating"
	case a.name == "PodDisruptionBudgetAtLimit":
		return "which might slow node drains"
	case slices.Contains([]string{
		"KubeContainerWaiting", "KubeletHealthState", "KubeNodeNotReady", "KubeNodeReadinessFlapping", "KubeNodeUnreachable",
		"VirtHandlerDaemonSetRolloutFailing", "VMCannotBeEvicted",
	}, a.name):
		return "which may slow workload redistribution during rolling node updates"
	case a.label("openShiftUpdatePrecheck") == "true":
		return "suggesting issues worth investigating before updating the cluster"
	}
	return ""
}

func (a alert) details() string {
	summary := a.annotation("summary")
	if summary == "" {
		summary = a.name
	}
	if !strings.HasSuffix(summary, ".") {
		summary += "."
	}
	runbook := a.annotation("runbook_url")
	if runbook == "" {
		runbook = "<alert does not have a runbook_url annotation>"
	}
	details := fmt.Sprintf("%s %s %s", summary, a.description(), runbook)
	if a.isBudget() {
		return fmt.Sprintf("Namespace=%s, PodDisruptionBudget=%s. %s", a.label("namespace"), a.label("poddisruptionbudget"), details)
	}
	return details
}

func (a alert) description() string {
	message, description := a.annotation("message"), a.annotation("description")
	switch {
	case message != "" && description != "":
		return "The alert description is: " + description + " | " + message
	case message+description != "":
		return "The alert description is: " + description + message
	}
	return "The alert has no description."
}

func (a alert) isBudget() bool {
	return a.name == "PodDisruptionBudgetAtLimit" || a.name == "PodDisruptionBudgetLimit"
}

func (a alert) runbook() string {
	if url := a.annotation("runbook_url"); url != "" {
		return url
	}
	return "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound"
}

// objects are what the labels of the alert name.
func (a alert) objects() []preflight.Object {
	namespace := a.label("namespace")
	switch {
	case a.label("poddisruptionbudget") != "":
		return []preflight.Object{{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: namespace, Name: a.label("poddisruptionbudget")}}
	case strings.HasPrefix(a.name, "KubeNode") && a.label("node") != "":
		return []preflight.Object{{APIVersion: "v1", Kind: "Node", Name: a.label("node")}}
	case namespace != "" && a.label("pod") != "":
		return []preflight.Object{{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: a.label("pod")}}
	}
	return nil
}

func (a alert) label(name model.LabelName) string { return string(a.Labels[name]) }

func (a alert) annotation(name model.LabelName) string { return string(a.Annotations[name]) }
