package survey

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

// unread is the row of a cluster that gave no verdict.
func unread(ctx context.Context, of fleet.Cluster, reached roster.Connection, cause error) fleet.Row {
	why := explain(reached, cause)
	for i, action := range why.actions {
		if action.Type == finding.ActionRoles {
			why.actions[i] = finding.RolesOf(refused(ctx, reached, cause))
		}
	}
	message := words.External(cause.Error())
	if why.detail != "" {
		message = words.External(why.detail + ": " + cause.Error())
	}
	return fleet.Unread(of, why.reason, message, cmp.Or(why.remedy, explained[why.reason].Remedy), why.actions...)
}

// refused is the user who lacks a permission in a cluster; empty where it is unknown.
func refused(ctx context.Context, reached roster.Connection, cause error) string {
	user := access.Refused(cause)
	if user == "" && reached.Cluster != nil {
		user = access.User(ctx, reached.Cluster.Kubernetes)
	}
	return user
}

var explained = catalog.Reasons("A cluster of the fleet has no verdict.", `
ClientCertificateExpired | The client certificate of the kubeconfig has expired. | Get a new kubeconfig of the cluster, or log in to
	it again with "oc login".
ClusterUnread | The message contains the error. | Fix the error in the message, then run the command again.
ConnectionFailed | The connection to the API server failed or was closed. | `+check+`
ConnectionRefused | No server listens at the address of the API server. | `+check+`
Forbidden | The user lacks permissions in the cluster. | Ask an administrator of the cluster to apply the roles that the command prints.
Interrupted | The command was interrupted before the cluster was evaluated. | Run the command again.
NoCredentials | The credential plugin of the kubeconfig failed. | Install or repair the credential plugin that the kubeconfig names for its
	user, then run the command again.
NoOpenShift | Another server answers at the address. | Check the URL of the API server in the kubeconfig, or exclude the
	cluster: no OpenShift API server answers there.
NoRoom | The responses need more memory than this program may use, even when no other cluster is read. | Run the command for
	this cluster alone, and check
	which server answers at this address: the largest OpenShift clusters need less memory.
NoTLS | The server that answers has no usable certificate. | Correct the URL of the API server in the kubeconfig: the server
	that answers there has no usable certificate.
NotAsked | The command was interrupted. | Run the command again.
OtherServerName | The host in the URL does not match the certificate. | Correct the URL or the tls-server-name in the
	kubeconfig: the certificate of the API
	server is for other names.
ServerCertificateExpired | The certificate has expired, or the clock of this machine is wrong. | Compare the clock of this
	machine with the cluster's,
	then renew the certificate of the API server.
ServerFailed | The API server returns an internal error. | Check the API server, which fails to answer the request, then run
	the command again.
TimedOut | The API server did not answer within --cluster-timeout. | Check that the API server answers, then run the command
	again, with a longer --cluster-timeout if
	the cluster is only slow.
TooManyRequests | The API server throttles requests. | Wait until the API server, or the load balancer in front of it, accepts
	more requests, then run the command again.
TooMuchSent | Another server answers at the address. | Check which server answers at this address: responses of an OpenShift
	API server are smaller.
Unauthorized | The credentials are wrong, or have expired. | Log in to the cluster again with "oc login", or get a new
	kubeconfig: the API server rejects
	the credentials, which may have expired.
UnknownAuthority | The kubeconfig lacks the certificate authority of the API server. | Add the certificate authority of the API
	server to the kubeconfig as
	certificate-authority-data, or get a new kubeconfig of the cluster.
UnknownHost | The host name of the API server cannot be resolved. | `+check)

// check is the remedy for a server that does not answer.
const check = "Check the URL of the API server in the kubeconfig, the network and its proxy, and that the cluster is running."

// explanation is why a cluster gave no verdict.
type explanation struct {
	// reason is a key of explained, or of a roster.Failure.
	reason string
	// remedy replaces the declared one; empty for that.
	remedy string
	// detail adds what the error does not state; empty for nothing.
	detail  string
	actions []finding.Action
}

const reasonNoRoom = "NoRoom"

func explain(reached roster.Connection, cause error) explanation {
	if failure, ok := errors.AsType[*roster.Failure](cause); ok {
		return explanation{reason: failure.Reason, remedy: failure.Remedy}
	}
	if late, ok := errors.AsType[*lateError](cause); ok {
		return late.explain()
	}
	if _, tooMuch := errors.AsType[*cluster.TooMuchError](cause); tooMuch {
		return explanation{reason: "TooMuchSent"}
	}
	if _, crowded := errors.AsType[*cluster.NoRoomError](cause); crowded {
		return explanation{reason: reasonNoRoom}
	}
	for _, of := range []func(error) (explanation, bool){ofRequest, ofTLS, ofNetwork} {
		if why, ok := of(cause); ok {
			return withCertificate(why, reached)
		}
	}
	return explanation{reason: "ClusterUnread"}
}

// ofRequest explains what the API server answered.
func ofRequest(cause error) (explanation, bool) {
	_, missing := errors.AsType[*access.MissingError](cause)
	switch {
	case missing, apierrors.IsForbidden(cause):
		return explanation{reason: "Forbidden", actions: []finding.Action{finding.Roles()}}, true
	case apierrors.IsUnauthorized(cause):
		return explanation{reason: "Unauthorized"}, true
	case apierrors.IsTooManyRequests(cause):
		return explanation{reason: "TooManyRequests"}, true
	case apierrors.IsNotFound(cause), strings.Contains(cause.Error(), "serializer for "):
		return explanation{reason: "NoOpenShift"}, true
	case apierrors.ReasonForError(cause) != "":
		return explanation{reason: "ServerFailed"}, true
	}
	return explanation{}, false
}

// ofTLS explains why the API server is not trusted.
func ofTLS(cause error) (explanation, bool) {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](cause)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](cause)
	_, otherName := errors.AsType[x509.HostnameError](cause)
	_, noTLS := errors.AsType[tls.RecordHeaderError](cause)
	switch {
	case unknown:
		return explanation{reason: "UnknownAuthority"}, true
	case isInvalid && invalid.Reason == x509.Expired:
		return explanation{reason: "ServerCertificateExpired"}, true
	case otherName:
		return explanation{reason: "OtherServerName"}, true
	case isInvalid, noTLS:
		return explanation{reason: "NoTLS"}, true
	}
	return explanation{}, false
}

// ofNetwork explains why the API server did not answer.
func ofNetwork(cause error) (explanation, bool) {
	_, unknownHost := errors.AsType[*net.DNSError](cause)
	_, failed := errors.AsType[*net.OpError](cause)
	switch {
	case strings.Contains(cause.Error(), "getting credentials: "):
		return explanation{reason: "NoCredentials"}, true
	case unknownHost:
		return explanation{reason: "UnknownHost"}, true
	case errors.Is(cause, syscall.ECONNREFUSED):
		return explanation{reason: "ConnectionRefused"}, true
	case failed:
		return explanation{reason: "ConnectionFailed"}, true
	}
	return explanation{}, false
}

// withCertificate states that the client certificate has expired, for which API servers answer that the
// user is unauthorized.
func withCertificate(why explanation, reached roster.Connection) explanation {
	if why.reason != "Unauthorized" || reached.Cluster == nil {
		return why
	}
	until, ok := clientCertificateEnd(reached.Cluster.Config())
	if !ok || reached.Cluster.Now().Before(until) {
		return why
	}
	why.reason = "ClientCertificateExpired"
	why.detail = "the client certificate has expired at " + words.Time(until)
	return why
}

// clientCertificateEnd is the end of the client certificate of a configuration; false for none.
func clientCertificateEnd(config *rest.Config) (time.Time, bool) {
	data := config.CertData
	if len(data) == 0 && config.CertFile != "" {
		data, _ = os.ReadFile(config.CertFile) // that it is missing is another error
	}
	pair, err := tls.X509KeyPair(data, keyOf(config))
	if err != nil || pair.Leaf == nil {
		return time.Time{}, false
	}
	return pair.Leaf.NotAfter, true
}

func keyOf(config *rest.Config) []byte {
	if len(config.KeyData) > 0 || config.KeyFile == "" {
		return config.KeyData
	}
	data, _ := os.ReadFile(config.KeyFile)
	return data
}

// lateError is about a cluster that gave no verdict in its time.
type lateError struct {
	limit time.Duration
	// status is the HTTP status of its last response, where that is an error; 0 otherwise.
	status int
	// left is true where what was asked has not ended, and may leave objects in the cluster.
	left bool
	// cause is why the survey ended; nil where the time of the cluster is up.
	cause error
}

func (e *lateError) Error() string {
	text := fmt.Sprintf("it did not answer within %s", e.limit)
	if e.cause != nil {
		text = "the command was interrupted before the cluster was evaluated"
	}
	if e.status != 0 {
		text += fmt.Sprintf("; its last answer was %d %s", e.status, http.StatusText(e.status))
	}
	if e.left {
		text += "; objects that the run created may still exist"
	}
	return text
}

func (e *lateError) Unwrap() error { return e.cause }

func (e *lateError) explain() explanation {
	const cleanUp = ` Delete the remaining objects of the run in the cluster with "cleanup".`
	why := explanation{reason: "TimedOut"}
	switch {
	case e.cause != nil:
		why.reason = "Interrupted"
	case e.status == http.StatusTooManyRequests:
		why.reason = "TooManyRequests"
	}
	if e.left {
		why.remedy = explained[why.reason].Remedy + cleanUp
	}
	return why
}

// late returns the error of a cluster whose time, or the survey's, is up. It includes the state of its connection.
func (r *round) late(asking context.Context, reached roster.Connection) *lateError {
	late := &lateError{limit: r.how.Timeout, status: reached.Rejecting()}
	if cause := context.Cause(asking); !errors.Is(cause, context.DeadlineExceeded) {
		late.cause = cmp.Or(cause, context.Canceled)
	}
	return late
}
