package monitoring

import (
	"errors"
	"fmt"
	"time"
)

// Error says why the monitoring could not tell.
type Error struct {
	// Reason is one CamelCase word: NoMonitoring, NoToken, Unauthorized,
	// Forbidden, Timeout, Unreachable, BadQuery (the server refused it),
	// BadResult (it is neither yes nor no), PartialAnswer or BadAnswer.
	Reason string
	// Message is the cause on one line.
	Message string
	// Remediation says what to do about it.
	Remediation string
	// Err is the cause; nil where the message is all there is.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrap says what was being done. The errors of a context stay as they are.
func wrap(doing string, err error) error {
	known, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	wrapped := *known
	wrapped.Message = doing + ": " + known.Message
	return &wrapped
}

// The remedies that several errors share.
const (
	nameAnother = "Or name a Prometheus that has the cluster's metrics: --prometheus URL"
	seeHealth   = "See whether the monitoring is well: oc get clusteroperator monitoring; oc -n openshift-monitoring get pods. " + nameAnother
	logIn       = "Log in with a token: oc login. " + nameAnother
	mayView     = "Have an administrator let you read it: oc adm policy add-cluster-role-to-user cluster-monitoring-view USER. " + nameAnother
	reportQuery = "The query is the update service's: report it there. Read what the risk is about, and accept it by name if that is acceptable here."
	checkURL    = "See that the URL is that of a Prometheus or a Thanos querier, without a path like /graph."
)

func timedOut(name string, after time.Duration) *Error {
	return &Error{
		Reason: "Timeout", Message: fmt.Sprintf("%s did not answer within %s", name, after), Remediation: seeHealth,
	}
}

func badResult(format string, args ...any) *Error {
	return &Error{Reason: "BadResult", Message: fmt.Sprintf(format, args...), Remediation: reportQuery}
}

func badAnswer(cause error) *Error {
	return &Error{
		Reason: "BadAnswer", Message: fmt.Sprintf("the answer is not that of a Prometheus: %v", cause), Remediation: checkURL, Err: cause,
	}
}
