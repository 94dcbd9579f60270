package risk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonNoAlerts        finding.Reason = "NoAlerts"
	ReasonPlainKubernetes finding.Reason = "PlainKubernetes"
)

// maxInstances bounds how many instances of one alert are spelled out.
const maxInstances = 10

// Alerts asks which alerts warn of an update now, of whatever kind it is: the
// critical ones, and those that CVO knows to bear on updates (pkg/risk/alert).
// There is one finding for each name, by which it is accepted.
func Alerts(client *monitoring.Client, options Options) check.Check {
	return check.Check{
		Name: "Alerts", Kind: finding.SourceRisk,
		Reads: append(monitoring.Reads(), check.Get("config.openshift.io", "infrastructures", "", "cluster")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			return alerts{cluster: s.Cluster, client: client, options: options}.findings(ctx)
		},
	}
}

type alerts struct {
	cluster *snapshot.Cluster
	client  *monitoring.Client
	options Options
}

func (a alerts) findings(ctx context.Context) ([]finding.Finding, error) {
	active, err := a.client.Alerts(ctx)
	if known, ok := errors.AsType[*monitoring.Error](err); ok {
		return a.unread(ctx, known)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read the alerts: %w", err)
	}
	findings := a.judge(active)
	if len(findings) == 0 {
		return []finding.Finding{finding.Pass(ReasonNoAlerts, "of %d active alerts none is firing that is critical or bears on updates", len(active))}, nil
	}
	return findings, nil
}

// unread says why nobody knows. A Kubernetes that is not OpenShift has no
// monitoring that everybody knows where to find, and needs none.
func (a alerts) unread(ctx context.Context, cause *monitoring.Error) ([]finding.Finding, error) {
	if cause.Reason == "NoMonitoring" {
		topology, err := a.cluster.Topology(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w, and could not read the Infrastructure \"cluster\": %w", cause, err)
		}
		if topology == snapshot.Kubernetes {
			return []finding.Finding{finding.Skipped(ReasonPlainKubernetes,
				"this cluster is not OpenShift, and no Prometheus was named (--prometheus URL), so there are no alerts to read")}, nil
		}
	}
	return []finding.Finding{finding.Unknown(finding.Reason(cause.Reason), "could not tell which alerts are firing: %s", cause.Message).
		Remedy("%s. To go on without knowing: --accept Alerts", strings.TrimSuffix(cause.Remediation, "."))}, nil
}

// judge has one finding for each name: of what counts, and of what is ignored.
func (a alerts) judge(active []prometheusv1.Alert) []finding.Finding {
	counted, passed := map[string][]alert{}, map[string][]alert{}
	for _, one := range active {
		selected, ok := selectAlert(one)
		switch {
		case !ok:
		case a.ignores(selected) != "":
			passed[selected.name] = append(passed[selected.name], selected)
		default:
			counted[selected.name] = append(counted[selected.name], selected)
		}
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		findings = append(findings, fire(counted[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		findings = append(findings, ignored(fire(passed[name]), a.ignores(passed[name][0])))
	}
	return findings
}

// ignores says by what an alert is ignored, if it is.
func (a alerts) ignores(one alert) string {
	namespace := one.label("namespace")
	switch {
	case slices.Contains(a.options.IgnoredAlerts, one.name):
		return fmt.Sprintf("the alert %q is ignored by name", one.name)
	case namespace != "" && slices.Contains(a.options.IgnoredNamespaces, namespace):
		return fmt.Sprintf("the alerts of namespace %q are ignored", namespace)
	}
	return ""
}

// fire makes one finding of the instances of one alert.
func fire(instances []alert) finding.Finding {
	slices.SortFunc(instances, func(a, b alert) int { return strings.Compare(a.message, b.message) })
	first := instances[0]
	since := first.ActiveAt
	var messages []string
	f := finding.Finding{Finding: preflight.Finding{
		Name:    accepted("Alert", first.name),
		Outcome: preflight.Fail,
		Reason:  "AlertFiring",
		URL:     first.runbook(),
	}}
	for i, instance := range instances {
		if instance.ActiveAt.Before(since) {
			since = instance.ActiveAt
		}
		if i < maxInstances {
			messages = append(messages, instance.message)
			f.Objects = append(f.Objects, instance.objects()...)
		}
	}
	f.Message = quote(strings.Join(messages, "; "))
	if more := len(instances) - maxInstances; more > 0 {
		f.Message += fmt.Sprintf("; and %d more", more)
	}
	f.Evidence = map[string]string{
		"activeAt": since.UTC().Format(time.RFC3339), "instances": fmt.Sprint(len(instances)), "severity": first.label("severity"),
	}
	f.Remediation = fmt.Sprintf("Follow %s until it no longer fires, or accept it by name: --accept %s", f.URL, f.Name)
	return f
}
