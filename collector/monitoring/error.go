package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/signature/outbound"
)

// The reasons for which the monitoring could not be read.
var (
	ReasonNoMonitoring = finding.NewReason("NoMonitoring", finding.Explanation{
		Meaning: "The cluster has no monitoring that can be read.",
		Cause:   "The Route openshift-monitoring/thanos-querier does not exist.",
		Remedy:  "Run the preflight again with the URL of a Prometheus that has the metrics of the cluster.",
	})
	ReasonNoToken = finding.NewReason("NoToken", finding.Explanation{
		Meaning: "The user has no token for the monitoring, which accepts nothing else.",
		Cause:   "The kubeconfig contains a client certificate.",
		Remedy:  "Log in with a token: `oc login`.",
	})
	reasonUnauthorized = finding.NewReason("Unauthorized", finding.Explanation{
		Meaning: "The monitoring rejects the credentials.",
		Cause:   "The token has expired or was revoked, or there is none.",
		Remedy:  "Log in with a token: `oc login`.",
	})
	reasonForbidden = finding.NewReason("Forbidden", finding.Explanation{
		Meaning: "The user has no permission to read the monitoring.",
		Cause:   "The user lacks the cluster role cluster-monitoring-view.",
		Remedy:  "Ask an administrator for the role: `oc adm policy add-cluster-role-to-user cluster-monitoring-view USER`.",
	})
	reasonTimeout = finding.NewReason("Timeout", finding.Explanation{
		Meaning: "The request to the monitoring times out.",
		Cause:   "The monitoring is overloaded, or a firewall drops the request.",
		Remedy:  "Check the monitoring: `oc get clusteroperator monitoring`.",
	})
	reasonUnreachable = finding.NewReason("Unreachable", finding.Explanation{
		Meaning: "The monitoring is unreachable, or responds with an error.",
		Cause:   "The monitoring or its Route is down, or its certificate is not trusted.",
		Remedy:  "Check the monitoring: `oc get clusteroperator monitoring`.",
	})
	reasonBadQuery = finding.NewReason("BadQuery", finding.Explanation{
		Meaning: "The monitoring rejects the query of a risk, so whether the risk applies is unknown.",
		Cause:   "The query, which the update service defines, is not valid PromQL, or fails.",
		Remedy:  "Report the query to the update service. Read the description of the risk, and accept the risk if it is acceptable.",
	})
	reasonBadResult = finding.NewReason("BadResult", finding.Explanation{
		Meaning: "The result of a risk's query is neither 0 nor 1, so whether the risk applies is unknown.",
		Cause:   "The query, which the update service defines, is not a condition, or the monitoring lacks the metric.",
		Remedy:  "Report the query to the update service. Read the description of the risk, and accept the risk if it is acceptable.",
	})
	reasonPartialAnswer = finding.NewReason("PartialAnswer", finding.Explanation{
		Meaning: "The monitoring responds with warnings, so data may be missing.",
		Cause:   "A Prometheus behind Thanos is down, or the query is doubtful.",
		Remedy:  "Check the monitoring: `oc -n openshift-monitoring get pods`.",
	})
	reasonNotInArchive = finding.NewReason("NotInArchive", finding.Explanation{
		Meaning: "The archive does not contain this data of the monitoring.",
		Cause:   "A must-gather contains alerts but no metrics, and an archive of another kind may contain neither.",
		Remedy:  "Run the preflight again with the URL of a Prometheus that has the metrics of the cluster, or on the cluster itself.",
	})
	reasonBadAnswer = finding.NewReason("BadAnswer", finding.Explanation{
		Meaning: "The response does not come from a Prometheus.",
		Cause:   "The URL belongs to another server, such as a login page.",
		Remedy:  "Run the preflight again with the URL of a Prometheus or a Thanos querier.",
	})
)

// Error is why a question to the monitoring was inconclusive.
type Error struct {
	// Reason is one of this package.
	Reason finding.Reason
	// Message is the cause, on one line.
	Message string
	// Remedy says what to do, in imperative sentences, and Actions are its steps that are commands or options.
	Remedy  string
	Actions []finding.Action
	Err     error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap is the error that caused this one.
func (e *Error) Unwrap() error { return e.Err }

// wrap prepends what was done. The errors of a context stay as they are.
func wrap(doing string, err error) error {
	known, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	wrapped := *known
	wrapped.Message = doing + ": " + known.Message
	return &wrapped
}

// ReportQuery is the remedy for a risk whose query or rule is wrong.
const ReportQuery = "Report the query to the update service, which defines it. Read the description of the risk, and accept the risk " +
	"if it is acceptable."

// checkHealth completes an error of a monitoring that does not respond properly.
func checkHealth(e Error) *Error {
	e.Remedy = "Check the monitoring, or use another Prometheus that has the metrics of the cluster."
	e.Actions = []finding.Action{
		finding.Read("oc get clusteroperator monitoring"), finding.Read("oc -n openshift-monitoring get pods"),
		finding.Retry(finding.OptionMonitoring),
	}
	return &e
}

// logIn completes an error of a user whose credentials the monitoring rejects.
func logIn(e Error) *Error {
	e.Remedy = "Log in with a token, or use another Prometheus that has the metrics of the cluster."
	e.Actions = []finding.Action{finding.OnThisMachine("oc login"), finding.Retry(finding.OptionMonitoring)}
	return &e
}

// grantView completes an error of a user without permission.
func grantView(e Error) *Error {
	e.Remedy = "Ask an administrator for the permission to read the monitoring, with `oc adm policy add-cluster-role-to-user " +
		"cluster-monitoring-view USER`, or use another Prometheus that has the metrics of the cluster."
	e.Actions = []finding.Action{finding.Retry(finding.OptionMonitoring)}
	return &e
}

// checkURL completes an error of a server that is no Prometheus.
func checkURL(e Error) *Error {
	e.Remedy = "Use the URL of a Prometheus or a Thanos querier, without a path such as /graph."
	e.Actions = []finding.Action{finding.Retry(finding.OptionMonitoring)}
	return &e
}

func timedOut(name string, after time.Duration) *Error {
	return checkHealth(Error{Reason: reasonTimeout, Message: fmt.Sprintf("%s did not respond within %s", name, after)})
}

func badResult(format string, args ...any) *Error {
	return &Error{Reason: reasonBadResult, Message: fmt.Sprintf(format, args...), Remedy: ReportQuery}
}

func badResponse(cause error) *Error {
	return checkURL(Error{Reason: reasonBadAnswer, Message: fmt.Sprintf("the response does not come "+
		"from a Prometheus: %v", cause), Err: cause})
}

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
	return checkHealth(Error{
		Reason:  reasonUnreachable,
		Message: fmt.Sprintf("the server responded with status %d: %s", status, words.Line(body, maxQuoted)),
	})
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

// maxResponse bounds a response, in bytes. The alerts of a cluster with 1 000 firing alerts are about one MiB.
const maxResponse = 16 << 20

// server is a Prometheus, or a Thanos querier.
type server struct {
	// name is its URL without passwords.
	name   string
	client prometheus.Client
}

// reach finds the server, and makes a client for it with the configuration of the Finder only.
func reach(ctx context.Context, find Finder) (*server, error) {
	config, err := find(ctx)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, logIn(Error{
			Reason: reasonUnreachable, Message: fmt.Sprintf("the credentials for the monitoring cannot be used: %v", err),
			Err: err,
		})
	}
	client, err := prometheus.NewClient(prometheus.Config{Address: config.Host, Client: &http.Client{
		Transport: boundedTransport{transport},
		// A redirect leads to a page for users, which must not receive the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, checkURL(Error{
			Reason: reasonUnreachable, Message: fmt.Sprintf("the URL of the monitoring cannot be used: %v", err),
			Err: err,
		})
	}
	return &server{name: client.URL("", nil).Redacted(), client: client}, nil
}

// get is one request. It is always a GET, which the cluster's proxies treat as reading.
func (s *server) get(ctx context.Context, path string, arguments url.Values) ([]byte, error) {
	target := s.client.URL(path, nil)
	target.RawQuery = arguments.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, badResponse(err)
	}
	response, body, err := s.client.Do(ctx, request) //nolint:bodyclose // Do reads and closes the body
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, badResponse(fmt.Errorf("it is larger than %d bytes", tooLarge.Limit))
	}
	if err != nil {
		err = withoutURL(err)
		return nil, checkHealth(Error{
			Reason:  reasonUnreachable,
			Message: fmt.Sprintf("could not reach %s: %s", s.name, words.Line(err.Error(), maxMessage)), Err: err,
		})
	}
	data, err := parse(response.StatusCode, body)
	if failed, ok := errors.AsType[*Error](err); ok && failed.Reason == ReasonNoMonitoring {
		return nil, err // there is no server to name
	}
	return data, wrap(s.name, err)
}

// boundedTransport bounds the body of responses.
type boundedTransport struct{ next http.RoundTripper }

func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := outbound.NoUpgrade(request, response); err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxResponse)
	return response, nil
}
