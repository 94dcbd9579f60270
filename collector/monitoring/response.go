package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxQuoted bounds the part of a response in a message, in bytes.
	maxQuoted = 500
	// maxMessage bounds an error of a client in a message, in bytes.
	maxMessage = 2 << 10
)

type envelope struct {
	Status    string                 `json:"status"`
	Data      json.RawMessage        `json:"data"`
	ErrorType prometheusv1.ErrorType `json:"errorType"`
	Error     string                 `json:"error"`
	Warnings  []string               `json:"warnings"`
}

// errorNotInArchive is the type of the error of an archive that stands for the cluster and does not have the data.
const errorNotInArchive prometheusv1.ErrorType = "not_in_archive"

// errorNoMonitoring is the type of the error of an archive of a cluster without a monitoring.
const errorNoMonitoring prometheusv1.ErrorType = "no_monitoring"

// parse returns the data of a response. The parser of client_golang drops the
// warnings of alerts, and returns no alerts for a response without data.
func parse(status int, body []byte) (json.RawMessage, error) {
	if err := checkAccess(status); err != nil {
		return nil, err
	}
	var response envelope
	if err := json.Unmarshal(body, &response); err != nil {
		if status != http.StatusOK {
			return nil, unavailable(status, string(body))
		}
		return nil, badResponse(err)
	}
	switch {
	case response.Status == "error":
		return nil, response.failure(status)
	case status != http.StatusOK:
		return nil, unavailable(status, string(body))
	case response.Status != "success":
		return nil, badResponse(fmt.Errorf("its status is %q", words.Line(response.Status, maxQuoted)))
	case len(response.Warnings) > 0:
		return nil, checkHealth(Error{
			Reason:  reasonPartialAnswer,
			Message: "data may be missing, since the response has warnings: " + words.Line(strings.Join(response.Warnings, "; "), maxQuoted),
		})
	}
	return response.Data, nil
}

// checkAccess returns an error for a status that rejects the user. A redirect leads to a page to log in at.
func checkAccess(status int) error {
	switch {
	case status == http.StatusUnauthorized, status/100 == 3:
		return logIn(Error{Reason: reasonUnauthorized, Message: fmt.Sprintf("the token is missing or not accepted: status %d", status)})
	case status == http.StatusForbidden:
		return grantView(Error{Reason: reasonForbidden, Message: fmt.Sprintf("no permission to read the monitoring: status %d", status)})
	}
	return nil
}

func (e envelope) failure(status int) error {
	message := words.Line(fmt.Sprintf("%s: %s", e.ErrorType, e.Error), maxQuoted)
	switch e.ErrorType {
	case prometheusv1.ErrTimeout:
		return checkHealth(Error{Reason: reasonTimeout, Message: message})
	case prometheusv1.ErrBadData, prometheusv1.ErrExec:
		return &Error{Reason: reasonBadQuery, Message: message, Remedy: ReportQuery}
	case errorNoMonitoring:
		return noMonitoring()
	case errorNotInArchive:
		return &Error{
			Reason: reasonNotInArchive, Message: e.Error,
			Remedy:  "Use a Prometheus that has the metrics of the cluster, or run the preflight on the cluster.",
			Actions: []finding.Action{finding.Retry(finding.OptionMonitoring)},
		}
	case prometheusv1.ErrCanceled, prometheusv1.ErrBadResponse, prometheusv1.ErrServer, prometheusv1.ErrClient:
	}
	return unavailable(status, message)
}

func unavailable(status int, body string) error {
	return checkHealth(Error{Reason: reasonUnreachable, Message: fmt.Sprintf("the server responded with status %d: %s", status, words.Line(body, maxQuoted))})
}

// parseAlerts requires a list, which may be empty or, from Thanos, null.
func parseAlerts(data []byte) ([]prometheusv1.Alert, error) {
	var list struct {
		Alerts json.RawMessage `json:"alerts"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, badResponse(err)
	}
	if list.Alerts == nil {
		return nil, badResponse(errors.New("it has no list of alerts"))
	}
	var alerts []prometheusv1.Alert
	if err := json.Unmarshal(list.Alerts, &alerts); err != nil {
		return nil, badResponse(err)
	}
	return alerts, nil
}

// parseMatch parses the result of a query, which is 1 or 0.
func parseMatch(data []byte) (bool, error) {
	var result struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return false, badResponse(err)
	}
	if result.Type != "vector" {
		return false, badResult("invalid PromQL result type is %s, not vector", words.Line(result.Type, maxQuoted))
	}
	var samples []struct {
		// Value is a time and, as a string, a number; a histogram has none.
		Value []any `json:"value"`
	}
	if err := json.Unmarshal(result.Result, &samples); err != nil {
		return false, badResponse(err)
	}
	if len(samples) != 1 {
		return false, badResult("invalid PromQL result length must be one, but is %d", len(samples))
	}
	return parseValue(samples[0].Value)
}

func parseValue(pair []any) (bool, error) {
	if len(pair) != 2 {
		return false, badResult("invalid PromQL result (must be 0 or 1): not a number")
	}
	text, ok := pair[1].(string)
	if !ok {
		return false, badResponse(errors.New("its sample has no value"))
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false, badResponse(err)
	}
	switch value {
	case 0:
		return false, nil
	case 1:
		return true, nil
	}
	return false, badResult("invalid PromQL result (must be 0 or 1): %v", value)
}
