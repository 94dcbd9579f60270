package risk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// The name of the check of alerts, and the reasons of its findings.
var (
	NameAlerts = finding.NewName("Alerts",
		"Checks for alerts that are a risk of updates: the critical ones, and those that CVO knows to affect updates (pkg/risk/alert). "+
			"Each alert name has a finding, by which it is accepted. The preflight's own alerts do not count. It concerns every "+
			"update.")

	reasonNoAlerts = finding.NewReason("NoAlerts", finding.Explanation{
		Meaning: "No alert that is a risk of updates is firing.",
		Cause:   "The active alerts are neither critical nor known to affect updates.",
	})
	reasonAlertFiring = finding.NewReason("AlertFiring", finding.Explanation{
		Meaning: "An alert is firing that is critical or known to affect updates.",
		Cause:   "The message contains the description of the alert.",
		Remedy:  "Follow the runbook until the alert no longer fires, or accept the alert: `oc preflight accept NAME`.",
	})
)

// maxInstances bounds the instances of one alert in a message.
const maxInstances = 10

// Alerts is the check Alerts.
func Alerts(client *monitoring.Client, options Options) check.Check {
	return check.Check{
		Name: NameAlerts, Kind: finding.SourceRisk,
		Reads: append(check.ReadsTopology(), monitoring.Reads()...),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			return alerts{subject: s, client: client, options: options}.findings(ctx)
		},
	}
}

type alerts struct {
	subject check.Subject
	client  *monitoring.Client
	options Options
	// controlPlane is the namespace of the control plane of a hosted cluster, whose alerts alone count;
	// empty for the alerts of the cluster itself.
	controlPlane string
}

func (a alerts) name(alert string) string {
	if a.controlPlane != "" {
		return NameControlPlaneAlerts + "-" + riskName("Alert", alert)
	}
	return riskName("Alert", alert)
}

func (a alerts) check() string {
	if a.controlPlane != "" {
		return NameControlPlaneAlerts
	}
	return NameAlerts
}

func (a alerts) findings(ctx context.Context) ([]finding.Finding, error) {
	active, err := a.client.Alerts(ctx)
	if known, ok := errors.AsType[*monitoring.Error](err); ok {
		return a.unread(ctx, known)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read the alerts: %w", err)
	}
	findings := a.evaluate(active)
	if len(findings) == 0 {
		return []finding.Finding{finding.Pass(gap.Proven("the response of the alerts API").And(gap.ExtentOf(ctx)), reasonNoAlerts,
			"of %d active alerts none is firing that is critical or affects updates", len(active))}, nil
	}
	return findings, nil
}

// unread is the result where the alerts could not be read. A Kubernetes cluster
// that is not OpenShift need not have monitoring.
func (a alerts) unread(ctx context.Context, cause *monitoring.Error) ([]finding.Finding, error) {
	if cause.Reason == monitoring.ReasonNoMonitoring {
		topology, err := a.subject.Topology(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w, and %w", cause, err)
		}
		if topology == snapshot.Kubernetes {
			return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), check.ReasonPlainKubernetes,
				"this cluster is not OpenShift, and no Prometheus is configured, so there are no alerts to read")}, nil
		}
	}
	return []finding.Finding{finding.Unknown(cause.Reason, "the firing alerts are unknown: %s", cause.Message).
		Remedy("%s To continue without the alerts, accept the risk.", cause.Remedy).
		Do(cause.Actions...).
		Do(finding.Accept(a.check()))}, nil
}

// evaluate returns one finding for each name: of the alerts that count, then of the ignored ones, then of the
// preflight's own.
func (a alerts) evaluate(active []prometheusv1.Alert) []finding.Finding {
	counted, passed, own := map[string][]alert{}, map[string][]alert{}, map[string][]alert{}
	for _, each := range active {
		selected, ok := selectAlert(each)
		switch {
		case !ok, a.controlPlane != "" && selected.label("namespace") != a.controlPlane:
		case selected.isOwn():
			own[selected.name] = append(own[selected.name], selected)
		case a.ignores(selected) != "":
			passed[selected.name] = append(passed[selected.name], selected)
		default:
			counted[selected.name] = append(counted[selected.name], selected)
		}
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		findings = append(findings, a.firing(counted[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		findings = append(findings, ignored(a.firing(passed[name]), a.ignores(passed[name][0])))
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		f := a.firing(own[name])
		findings = append(findings, finding.Skipped(gap.Proven("the response of the alerts API"), check.ReasonOwnSignal,
			"the alert repeats the last verdict of the preflight, so it does not count: %s", f.Message).Named(f.Name).Documented(f.URL))
	}
	return findings
}

// ignores is the cause for which an alert is ignored; empty where it is not.
func (a alerts) ignores(selected alert) string {
	namespace := selected.label("namespace")
	switch {
	case slices.Contains(a.options.IgnoredAlerts, selected.name):
		return ignoredByName(selected.name)
	case namespace != "" && slices.Contains(a.options.IgnoredNamespaces, namespace):
		return fmt.Sprintf("the alerts of namespace %q are ignored", namespace)
	}
	return ""
}

func (a alerts) firing(instances []alert) finding.Finding {
	slices.SortFunc(instances, func(a, b alert) int { return strings.Compare(a.message, b.message) })
	first := instances[0]
	since := first.ActiveAt
	var messages []string
	var objects []finding.Object
	for _, instance := range instances {
		if instance.ActiveAt.Before(since) {
			since = instance.ActiveAt
		}
		messages, objects = append(messages, instance.message), append(objects, instance.objects()...)
	}
	name, runbook := a.name(first.name), runbookOf(instances)
	remedy := "Resolve the cause of the alert until it no longer fires, or accept the alert."
	if runbook != "" {
		remedy = "Follow the runbook until the alert no longer fires, or accept the alert."
	}
	return finding.Fail(reasonAlertFiring, "%s", words.Clauses(messages, maxInstances)).
		Named(name).
		Documented(cmp.Or(runbook, noRunbook)).
		About(objects...).
		Observed(map[string]string{
			"activeAt": words.Time(since), "instances": fmt.Sprint(len(instances)), "severity": first.label("severity"),
		}).
		Remedy("%s", remedy).
		Do(finding.Accept(name))
}

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
		return []finding.Object{{
			APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: namespace,
			Name: a.label("poddisruptionbudget"),
		}}
	case strings.HasPrefix(a.name, "KubeNode") && a.label("node") != "":
		return []finding.Object{{APIVersion: "v1", Kind: "Node", Name: a.label("node")}}
	case namespace != "" && a.label("pod") != "":
		return []finding.Object{{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: a.label("pod")}}
	}
	return nil
}

func (a alert) label(name model.LabelName) string { return string(a.Labels[name]) }

func (a alert) annotation(name model.LabelName) string { return string(a.Annotations[name]) }
