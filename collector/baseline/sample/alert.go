package sample

import (
	"cmp"
	"context"
	"errors"
	"slices"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = finding.Explain("An alert of severity warning or critical fires after the update, and did not before.", `
Firing | The alert was not firing before the update. | Follow the runbook that its annotations name. | oc get prometheusrules -A -o yaml`)

// watchdog always fires, so that its absence is noticed.
const watchdog = "Watchdog"

var errNoMonitoring = errors.New("the monitoring was not read")

// readAlerts reads those that fire, the instances of one name, severity and namespace as one object, since the first of them.
func readAlerts(ctx context.Context, s *sampler, client *monitoring.Client) {
	if client == nil {
		s.unread(errNoMonitoring, baseline.Alert)
		return
	}
	active, err := client.Alerts(ctx)
	if err != nil {
		s.unread(err, baseline.Alert)
		return
	}
	for _, each := range active {
		if !counts(each) {
			continue
		}
		severity, alertName := string(each.Labels["severity"]), string(each.Labels[model.AlertNameLabel])
		key := baseline.Key{Kind: baseline.Alert, Namespace: fact(string(each.Labels["namespace"])), Name: fact(alertName) + "/" + severity}
		firing := baseline.Problem{Reason: "Firing", Since: each.ActiveAt.UTC(), Message: message(each)}
		if known, exists := s.state.Objects[key]; exists && known.Problems[0].Since.Before(firing.Since) {
			continue
		}
		s.state.Objects[key] = baseline.Object{Problems: []baseline.Problem{firing}}
	}
}

// counts reports whether an alert is about the state of the cluster, and not one of the preflight itself.
func counts(alert prometheusv1.Alert) bool {
	named, namespace := string(alert.Labels[model.AlertNameLabel]), string(alert.Labels["namespace"])
	own := ownsignal.Alert(named, namespace) || alert.Labels["name"] == ownsignal.ClusterOperator
	serious := slices.Contains([]model.LabelValue{"warning", "critical"}, alert.Labels["severity"])
	return alert.State == prometheusv1.AlertStateFiring && serious && !own && named != "" && named != watchdog
}

func message(alert prometheusv1.Alert) string {
	text := cmp.Or(string(alert.Annotations["summary"]), string(alert.Annotations["message"]), string(alert.Annotations["description"]), "it is firing")
	return words.External(text)
}
