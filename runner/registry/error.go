package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// maxText bounds the external text repeated for one response, in bytes: those of
// several mirrors must fit into one message.
const maxText = 200

// Error reports that no registry provided an image. It never holds a credential.
type Error struct {
	// Reason is the kind of error.
	Reason finding.Reason
	// Message has the response of each place, in one line.
	Message string
	// Remediation is an imperative sentence, Actions are its commands.
	Remediation string
	Actions     []finding.Action
	// Err is the underlying error; nil when there is none or more than one.
	Err error
}

// Error returns the message and the underlying error in one line.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + oneLine(e.Err.Error())
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// attempt is a failed request to one place with one credential. Without an error,
// no request was sent because the place is closed.
type attempt struct {
	place      Place
	credential credential
	err        error
}

func (t attempt) String() string {
	switch {
	case t.err == nil:
		return t.place.String() + ": " + t.place.Closed
	case unauthorized(t.err):
		return fmt.Sprintf("%s: %s with %s", t.place, response(t.err), t.credential)
	}
	return fmt.Sprintf("%s: %s", t.place, response(t.err))
}

// elsewhere reports whether another place may have the image: the error is an HTTP
// status or a failed request.
func elsewhere(err error) bool {
	_, status := errors.AsType[*transport.Error](err)
	_, request := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	_, helper := errors.AsType[*helperError](err)
	return status || request || network || helper || errors.Is(err, io.ErrUnexpectedEOF)
}

func unauthorized(err error) bool {
	code := status(err)
	return code == http.StatusUnauthorized || code == http.StatusForbidden
}

// status is the HTTP status of the error; 0 when it has none.
func status(err error) int {
	if rejected, ok := errors.AsType[*transport.Error](err); ok {
		return rejected.StatusCode
	}
	return 0
}

// response is the error as short text. It has no URL, since the URL of a redirect
// may contain a credential.
func response(err error) string {
	rejected, ok := errors.AsType[*transport.Error](err)
	if !ok {
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		return oneLine(err.Error())
	}
	text := fmt.Sprintf("%d %s", rejected.StatusCode, http.StatusText(rejected.StatusCode))
	if len(rejected.Errors) > 0 {
		text += fmt.Sprintf(" (%s)", oneLine(cmp.Or(rejected.Errors[0].Message, string(rejected.Errors[0].Code))))
	}
	return text
}

// interrupted is the error of a canceled or expired context.
func interrupted(ctx context.Context, err error) *Error {
	failure := &Error{
		Reason: collector.ReasonInterrupted, Message: "the request to the registry was canceled",
		Remediation: "Run the preflight again and let it finish.", Err: ctx.Err(),
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		failure.Reason, failure.Message = collector.ReasonTimeout, "the registry did not respond in time"
		failure.Remediation = "Check the connection to the registry, then run the preflight again."
	}
	if elsewhere(err) && !errors.Is(err, ctx.Err()) {
		failure.Message += "; its last response: " + response(err)
	}
	return failure
}

// failure is the error when no place had the image. A missing credential comes
// first, then places that could not be reached: the image may be there.
func (a *Access) failure(pullSpec string, attempts []attempt) *Error {
	var texts []string
	by := map[finding.Reason]attempt{}
	for _, each := range attempts {
		texts = append(texts, each.String())
		if reason := each.reason(); by[reason].place.Repository == "" {
			by[reason] = each
		}
	}
	failure := &Error{Message: strings.Join(texts, "; ")}
	for _, reason := range []finding.Reason{
		ReasonRegistryUnauthorized, ReasonCredentialHelperFailed, ReasonRegistryUntrusted, ReasonRegistryUnreachable,
		ReasonRegistryRateLimited, ReasonRegistryError, ReasonImageNotFound, ReasonRegistryBlocked,
	} {
		first, ok := by[reason]
		if !ok {
			continue
		}
		failure.Reason = reason
		failure.Remediation, failure.Actions = a.remedy(reason, pullSpec, first)
		return failure
	}
	return failure
}

// reason is the kind of response.
func (t attempt) reason() finding.Reason {
	code := status(t.err)
	_, helper := errors.AsType[*helperError](t.err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](t.err)
	switch {
	case t.err == nil:
		return ReasonRegistryBlocked
	case helper:
		return ReasonCredentialHelperFailed
	case certificate:
		return ReasonRegistryUntrusted
	case unauthorized(t.err):
		return ReasonRegistryUnauthorized
	case code == http.StatusNotFound:
		return ReasonImageNotFound
	case code == http.StatusTooManyRequests:
		return ReasonRegistryRateLimited
	case code != 0:
		return ReasonRegistryError
	}
	return ReasonRegistryUnreachable
}

// The commands of remedies.
const (
	editImageConfig = "oc edit image.config.openshift.io cluster"
	setPullSecret   = "oc set data secret/pull-secret -n openshift-config --from-file=.dockerconfigjson=FILE" //nolint:gosec // no credential
	mirrorRelease   = "oc adm release mirror"
	login           = "podman login %s"
)

func (a *Access) remedy(reason finding.Reason, pullSpec string, first attempt) (string, []finding.Action) {
	host, _, _ := strings.Cut(first.place.Repository, "/")
	switch reason { //nolint:exhaustive // the other reasons have the last remedy
	case ReasonRegistryUnauthorized:
		return a.accountRemedy(host, first.credential)
	case ReasonCredentialHelperFailed:
		return "Fix the credential helper, or log in without it.", []finding.Action{finding.Run(login, host)}
	case ReasonRegistryUntrusted:
		return fmt.Sprintf("Add the CA of the registry as key %q to a ConfigMap in openshift-config, and name that ConfigMap in spec.additionalTrustedCA.",
			strings.Replace(host, ":", "..", 1)), []finding.Action{finding.Run(editImageConfig)}
	case ReasonRegistryUnreachable:
		return fmt.Sprintf("Make %s reachable from here, with the right proxy and CA, then run the preflight again.", host), nil
	case ReasonRegistryRateLimited:
		return "Wait as long as the registry requests, or log in with an account that has a higher limit.", []finding.Action{finding.Run(login, host)}
	case ReasonRegistryError:
		return fmt.Sprintf("Run the preflight again; if the error persists, ask the operators of %s.", host), nil
	case ReasonImageNotFound:
		return "Check the pull spec; on a mirror, mirror the release.", []finding.Action{finding.Run(mirrorRelease)}
	}
	return fmt.Sprintf("Mirror the image %s to a registry that the cluster may pull from, or allow its registry.", oneLine(pullSpec)),
		[]finding.Action{finding.Run(editImageConfig)}
}

// accountRemedy depends on which credential was rejected.
func (a *Access) accountRemedy(host string, rejected credential) (string, []finding.Action) {
	renew, again := finding.Run(setPullSecret), finding.Run(login, host)
	if rejected.store.cluster {
		return "Renew the entry of the cluster's pull secret; nodes are rejected too.", []finding.Action{renew}
	}
	for _, warning := range a.warnings {
		if warning.Reason == string(ReasonPullSecretUnreadable) {
			return "Obtain the permission to read the cluster's pull secret, or log in with an account that may pull the image. Without the pull secret: " +
				warning.Message + ".", []finding.Action{again}
		}
	}
	if rejected.key == "" {
		return "Log in with an account that may pull the image, and add an entry to the cluster's pull secret for the nodes.", []finding.Action{again, renew}
	}
	return "Log in with an account that may pull the image.", []finding.Action{again}
}

// oneLine sanitizes external text for a message.
func oneLine(text string) string { return words.Line(text, maxText) }
