package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/archive/objects"
)

const maxAlerts = 1000

// The types of errors of responses without data, in place of the types of Prometheus: data that was not
// gathered, and a cluster that has no monitoring.
const notInArchive, noMonitoring = "not_in_archive", "no_monitoring"

type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
	ActiveAt    string            `json:"activeAt,omitempty"`
	Value       string            `json:"value"`
}

type response struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// monitoring answers as the cluster's querier, for the alerts and the queries of the archive.
func (a *Archive) monitoring(path []string, query url.Values) (answer, error) {
	switch strings.Join(path, "/") {
	case "api/v1/alerts":
		return a.alerts(), nil
	case "api/v1/query":
		if data, ok := a.state.Collection().Queries[query.Get("query")]; ok {
			return encoded(response{Status: "success", Data: data}), nil
		}
		return a.notGathered("queries", "the archive has no result of the query"), nil
	}
	return a.notGathered("", "the archive has no data for /"+strings.Join(path, "/")), nil
}

// notGathered is the answer where the archive has no data of that name, with the cause where it is known.
func (a *Archive) notGathered(name, message string) answer {
	kind := notInArchive
	collection, routes := a.state.Collection(), resource{Group: "route.openshift.io", Name: "routes"}
	if _, text, err := a.state.Text(alertFiles()...); text == "" && err == nil && (a.state.Unserved(routes) || slices.Contains(collection.Nonexistent, routes.Object("openshift-monitoring", "thanos-querier"))) {
		kind = noMonitoring
	}
	for _, missing := range collection.Missing {
		if missing.Resource == name && missing.Cause != "" {
			message += ": " + missing.Cause
			break
		}
	}
	lacking := encoded(response{Status: "error", ErrorType: kind, Error: message})
	lacking.code = http.StatusNotImplemented
	return lacking
}

const insightsAlerts = "config/alerts.json"

func alertFiles() []string {
	return []string{"monitoring/prometheus/rules.json", "monitoring/alerts.json", insightsAlerts}
}

func (a *Archive) alerts() answer {
	name, text, err := a.state.Text(alertFiles()...)
	switch {
	case err != nil:
		return a.notGathered("", err.Error())
	case text == "":
		return a.notGathered("alerts", "the archive has no alerts")
	}
	alerts, err := parseAlerts([]byte(text))
	if err != nil {
		return a.notGathered("", fmt.Sprintf("the file %s of the archive cannot be read: %v", name, err))
	}
	found := response{Status: "success", Data: map[string]any{"alerts": alerts}}
	if name == insightsAlerts && len(alerts) >= maxAlerts {
		found.Warnings = []string{fmt.Sprintf("the archive has only %d alerts", maxAlerts)}
	}
	return encoded(found)
}

// parseAlerts reads a response of Prometheus with rules or alerts, as its content has it, since
// must-gather up to 4.8 names both "alerts", or the list of an Alertmanager.
func parseAlerts(text []byte) ([]alert, error) {
	if text[0] == '[' {
		return ofAlertmanager(text)
	}
	var body struct {
		Status string `json:"status"`
		Data   struct {
			Alerts *[]alert `json:"alerts"`
			Groups *[]struct {
				Rules []struct {
					Alerts []alert `json:"alerts"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	if err := objects.RefuseDuplicates(text, "data", "groups", "rules", "alerts"); err != nil {
		return nil, err
	}
	switch {
	case body.Status != "success":
		return nil, fmt.Errorf("its status is %q", body.Status)
	case body.Data.Alerts != nil:
		return *body.Data.Alerts, nil
	case body.Data.Groups == nil:
		return nil, errors.New("it has neither alerts nor rules")
	}
	alerts := []alert{}
	for _, group := range *body.Data.Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alerts...)
		}
	}
	return alerts, nil
}

// ofAlertmanager are the alerts that an Alertmanager has: all of them are firing.
func ofAlertmanager(text []byte) ([]alert, error) {
	var list []struct {
		alert

		StartsAt string `json:"startsAt"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if err := objects.RefuseDuplicates(text); err != nil {
		return nil, err
	}
	alerts := make([]alert, 0, len(list))
	for _, each := range list {
		each.State, each.ActiveAt = "firing", each.StartsAt
		alerts = append(alerts, each.alert)
	}
	return slices.Clip(alerts), nil
}
