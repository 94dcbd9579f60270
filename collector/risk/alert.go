package risk

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
)

// maxAlert bounds the message of one instance of an alert, in bytes.
const maxAlert = 2 << 10

// alert is one instance of an alert that is a risk of updates.
type alert struct {
	prometheusv1.Alert

	name    string
	message string
}

// selectAlert reports whether an active alert is a risk of updates, by CVO's rules
// in CVO's order (pkg/risk/alert/alert.go).
func selectAlert(active prometheusv1.Alert) (alert, bool) {
	selected := alert{Alert: active, name: string(active.Labels[model.AlertNameLabel])}
	if active.State == prometheusv1.AlertStatePending {
		return selected, false
	}
	impact := selected.impact()
	if impact == "" {
		return selected, false
	}
	selected.name = cmp.Or(selected.name, "unnamed")
	selected.message = words.Lines(fmt.Sprintf("%s alert %s %s, %s. %s",
		selected.label("severity"), selected.name, selected.State, impact, selected.details()), maxAlert)
	return selected, true
}

func (a alert) isOwn() bool { return ownsignal.Alert(a.name, a.label("namespace")) }

// impact is the effect of an alert on an update, in CVO's words; empty for most.
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
	summary := cmp.Or(a.annotation("summary"), a.name)
	if !strings.HasSuffix(summary, ".") {
		summary += "."
	}
	runbook := cmp.Or(a.annotation("runbook_url"), "<alert does not have a runbook_url annotation>")
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

// noRunbook is CVO's URL for an alert without a runbook (pkg/risk/alert).
const noRunbook = "https://github.com/openshift/runbooks/tree/master/alerts?runbook=notfound"

// runbookOf is the URL of the first instance that has one; empty for none.
func runbookOf(instances []alert) string {
	for _, instance := range instances {
		if url := instance.annotation("runbook_url"); url != "" {
			return url
		}
	}
	return ""
}

func (a alert) objects() []finding.Object {
	namespace := a.label("namespace")
	switch {
	case a.label("poddisruptionbudget") != "":
		return []finding.Object{{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: namespace, Name: a.label("poddisruptionbudget")}}
	case strings.HasPrefix(a.name, "KubeNode") && a.label("node") != "":
		return []finding.Object{{APIVersion: "v1", Kind: "Node", Name: a.label("node")}}
	case namespace != "" && a.label("pod") != "":
		return []finding.Object{{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: a.label("pod")}}
	}
	return nil
}

func (a alert) label(name model.LabelName) string { return string(a.Labels[name]) }

func (a alert) annotation(name model.LabelName) string { return string(a.Annotations[name]) }
