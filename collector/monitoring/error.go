package monitoring

import (
	"errors"
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
)

// The reasons for which the monitoring could not be read.
var (
	ReasonNoMonitoring = finding.NewReason("NoMonitoring", finding.Explanation{
		Meaning: "Reported when the cluster has no monitoring that can be read.",
		Cause:   "The Route openshift-monitoring/thanos-querier does not exist.",
		Remedy:  "Run the preflight again with the URL of a Prometheus that has the metrics of the cluster.",
	})
	ReasonNoToken = finding.NewReason("NoToken", finding.Explanation{
		Meaning: "Reported when the user has no token for the monitoring, which accepts nothing else.",
		Cause:   "The kubeconfig has a client certificate.",
		Remedy:  "Log in with a token: `oc login`.",
	})
	reasonUnauthorized = finding.NewReason("Unauthorized", finding.Explanation{
		Meaning: "Reported when the monitoring rejects the credentials.",
		Cause:   "The token has expired or was revoked, or there is none.",
		Remedy:  "Log in with a token: `oc login`.",
	})
	reasonForbidden = finding.NewReason("Forbidden", finding.Explanation{
		Meaning: "Reported when the user has no permission to read the monitoring.",
		Cause:   "The user lacks the cluster role cluster-monitoring-view.",
		Remedy:  "Ask an administrator for the role: `oc adm policy add-cluster-role-to-user cluster-monitoring-view USER`.",
	})
	reasonTimeout = finding.NewReason("Timeout", finding.Explanation{
		Meaning: "Reported when the monitoring does not respond in time.",
		Cause:   "The monitoring is overloaded, or a firewall drops the request.",
		Remedy:  "Check the monitoring: `oc get clusteroperator monitoring`.",
	})
	reasonUnreachable = finding.NewReason("Unreachable", finding.Explanation{
		Meaning: "Reported when the monitoring cannot be reached, or responds with an error.",
		Cause:   "The monitoring or its Route is down, or its certificate is not trusted.",
		Remedy:  "Check the monitoring: `oc get clusteroperator monitoring`.",
	})
	reasonBadQuery = finding.NewReason("BadQuery", finding.Explanation{
		Meaning: "Reported when the monitoring rejects the query of a risk.",
		Cause:   "The query, which the update service defines, is not valid PromQL, or fails.",
		Remedy:  "Report the query to the update service. Read what the risk is about, and accept it if it is acceptable.",
	})
	reasonBadResult = finding.NewReason("BadResult", finding.Explanation{
		Meaning: "Reported when the result of a risk's query is neither 0 nor 1.",
		Cause:   "The query, which the update service defines, is not a condition, or the monitoring lacks the metric.",
		Remedy:  "Report the query to the update service. Read what the risk is about, and accept it if it is acceptable.",
	})
	reasonPartialAnswer = finding.NewReason("PartialAnswer", finding.Explanation{
		Meaning: "Reported when the monitoring responds with warnings, so that data may be missing.",
		Cause:   "A Prometheus behind Thanos is down, or the query is doubtful.",
		Remedy:  "Check the monitoring: `oc -n openshift-monitoring get pods`.",
	})
	reasonNotInArchive = finding.NewReason("NotInArchive", finding.Explanation{
		Meaning: "Reported when the archive that stands for the cluster has no such data of the monitoring.",
		Cause:   "A must-gather has alerts but no metrics, and an archive of another kind may have neither.",
		Remedy: "Run the preflight again with the URL of a Prometheus that has the metrics of the cluster, or on the " +
			"cluster itself.",
	})
	reasonBadAnswer = finding.NewReason("BadAnswer", finding.Explanation{
		Meaning: "Reported when the response is not that of a Prometheus.",
		Cause:   "The URL is that of another server, such as a page to log in at.",
		Remedy:  "Run the preflight again with the URL of a Prometheus or a Thanos querier.",
	})
)

// Error is why a question to the monitoring was inconclusive.
type Error struct {
	// Reason is one of this package.
	Reason finding.Reason
	// Message is the cause, on one line.
	Message string
	// Remedy is what to do, in imperative sentences, and Actions are its steps that are commands or options.
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
const ReportQuery = "Report the query to the update service, which defines it. Read what the risk is about, and accept it if it is acceptable."

// checkHealth completes an error of a monitoring that does not respond properly.
func checkHealth(e Error) *Error {
	e.Remedy = "Check the monitoring, or use another Prometheus that has the metrics of the cluster."
	e.Actions = []finding.Action{
		finding.Read("oc get clusteroperator monitoring"), finding.Read("oc -n openshift-monitoring get pods"), finding.Retry(finding.OptionMonitoring),
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
	e.Remedy = "Ask an administrator for the permission to read the monitoring, with `oc adm policy add-cluster-role-to-user cluster-monitoring-view USER`, or use another Prometheus that has the metrics of the cluster."
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
	return checkURL(Error{Reason: reasonBadAnswer, Message: fmt.Sprintf("the response is not that of a Prometheus: %v", cause), Err: cause})
}
