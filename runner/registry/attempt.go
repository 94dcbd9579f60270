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

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/registry/credential"
)

// attempt is a failed request to one place with one credential. Without an error,
// no request was sent because the place is closed.
type attempt struct {
	place      Place
	credential credential.Credential
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

// reason is the kind of response.
func (t attempt) reason() finding.Reason {
	code := status(t.err)
	_, helper := errors.AsType[*credential.HelperError](t.err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](t.err)
	switch {
	case t.err == nil:
		return ReasonRegistryBlocked
	case helper:
		return reasonCredentialHelperFailed
	case certificate:
		return reasonRegistryUntrusted
	case unauthorized(t.err):
		return reasonRegistryUnauthorized
	case code == http.StatusNotFound:
		return ReasonImageNotFound
	case code == http.StatusTooManyRequests:
		return reasonRegistryRateLimited
	case code != 0:
		return reasonRegistryError
	}
	return ReasonRegistryUnreachable
}

// elsewhere reports whether another place may have the image: the error is an HTTP status or a failed request.
func elsewhere(err error) bool {
	_, status := errors.AsType[*transport.Error](err)
	_, request := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	_, helper := errors.AsType[*credential.HelperError](err)
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

// response is the error as short text. It has no URL, since the URL of a redirect may contain a credential.
func response(err error) string {
	rejected, ok := errors.AsType[*transport.Error](err)
	if !ok {
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		return words.Line(err.Error(), maxText)
	}
	text := fmt.Sprintf("%d %s", rejected.StatusCode, http.StatusText(rejected.StatusCode))
	if len(rejected.Errors) > 0 {
		text += fmt.Sprintf(" (%s)", words.Line(cmp.Or(rejected.Errors[0].Message, string(rejected.Errors[0].Code)), maxText))
	}
	return text
}

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
