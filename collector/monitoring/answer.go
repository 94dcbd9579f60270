package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// maxQuoted bounds what is quoted of somebody's answer, in bytes.
const maxQuoted = 500

// answer is what every answer of Prometheus' API is in.
type answer struct {
	Status    string                 `json:"status"`
	Data      json.RawMessage        `json:"data"`
	ErrorType prometheusv1.ErrorType `json:"errorType"`
	Error     string                 `json:"error"`
	Warnings  []string               `json:"warnings"`
}

// parse takes the data out of an answer. client_golang's own parser loses the
// warnings of alerts, and takes an answer without data for one without alerts.
func parse(status int, body []byte) (json.RawMessage, error) {
	if err := refused(status); err != nil {
		return nil, err
	}
	var answer answer
	if err := json.Unmarshal(body, &answer); err != nil {
		if status != http.StatusOK {
			return nil, unavailable(status, string(body))
		}
		return nil, badAnswer(err)
	}
	switch {
	case answer.Status == "error":
		return nil, answer.failure(status)
	case status != http.StatusOK:
		return nil, unavailable(status, string(body))
	case answer.Status != "success":
		return nil, badAnswer(fmt.Errorf("its status is %q", quote(answer.Status)))
	case len(answer.Warnings) > 0:
		return nil, &Error{
			Reason: "PartialAnswer", Message: "the answer comes with warnings: " + quote(strings.Join(answer.Warnings, "; ")),
			Remediation: "A part of the data may be missing. " + seeHealth,
		}
	}
	return answer.Data, nil
}

// refused says who may not ask. A redirect leads to a page to log in at.
func refused(status int) error {
	switch {
	case status == http.StatusUnauthorized, status/100 == 3:
		return &Error{
			Reason: "Unauthorized", Message: fmt.Sprintf("the token, or its absence, is not accepted: status %d", status), Remediation: logIn,
		}
	case status == http.StatusForbidden:
		return &Error{
			Reason: "Forbidden", Message: fmt.Sprintf("the user may not read the monitoring: status %d", status), Remediation: mayView,
		}
	}
	return nil
}

// failure is what the server says went wrong.
func (a answer) failure(status int) error {
	message := fmt.Sprintf("%s: %s", a.ErrorType, quote(a.Error))
	switch a.ErrorType {
	case prometheusv1.ErrTimeout:
		return &Error{Reason: "Timeout", Message: message, Remediation: seeHealth}
	case prometheusv1.ErrBadData, prometheusv1.ErrExec:
		return &Error{Reason: "BadQuery", Message: message, Remediation: reportQuery}
	case prometheusv1.ErrCanceled, prometheusv1.ErrBadResponse, prometheusv1.ErrServer, prometheusv1.ErrClient:
	}
	return unavailable(status, message)
}

func unavailable(status int, said string) error {
	return &Error{
		Reason: "Unreachable", Message: fmt.Sprintf("it answers with status %d: %s", status, quote(said)), Remediation: seeHealth,
	}
}

// quote is the beginning of what somebody said, on one line.
func quote(said string) string {
	said = strings.Join(strings.Fields(said), " ")
	if len(said) > maxQuoted {
		return strings.ToValidUTF8(said[:maxQuoted], "") + " [...]"
	}
	return said
}

// parseAlerts wants a list, if only an empty one or, from Thanos, null.
func parseAlerts(data []byte) ([]prometheusv1.Alert, error) {
	var list struct {
		Alerts json.RawMessage `json:"alerts"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, badAnswer(err)
	}
	if list.Alerts == nil {
		return nil, badAnswer(errors.New("it has no list of alerts"))
	}
	var alerts []prometheusv1.Alert
	if err := json.Unmarshal(list.Alerts, &alerts); err != nil {
		return nil, badAnswer(err)
	}
	return alerts, nil
}

// parseMatch reads yes or no out of the result of a query.
func parseMatch(data []byte) (bool, error) {
	var result struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return false, badAnswer(err)
	}
	if result.Type != "vector" {
		return false, badResult("invalid PromQL result type is %s, not vector", quote(result.Type))
	}
	var samples []struct {
		// Value is a time and, as a string, a number; a histogram has none.
		Value []any `json:"value"`
	}
	if err := json.Unmarshal(result.Result, &samples); err != nil {
		return false, badAnswer(err)
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
		return false, badAnswer(errors.New("its sample has no value"))
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false, badAnswer(err)
	}
	switch value {
	case 0:
		return false, nil
	case 1:
		return true, nil
	}
	return false, badResult("invalid PromQL result (must be 0 or 1): %v", value)
}
