package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"syscall"

	"github.com/openshift/update-preflight/collector/finding"
)

// maxRedirects is how many redirects are followed, as net/http does by itself.
const maxRedirects = 10

// statusError is an answer that is none.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("it answers %d %s", int(s), http.StatusText(int(s)))
}

// redirectError is an answer that leads in circles.
type redirectError int

func (r redirectError) Error() string { return fmt.Sprintf("it redirects more than %d times", int(r)) }

// withRedirects is the client, with a limit that can be told from other errors
// where it has none of its own.
func withRedirects(client *http.Client) *http.Client {
	limited := *client
	if limited.CheckRedirect == nil {
		limited.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
			if len(via) >= maxRedirects {
				return redirectError(maxRedirects)
			}
			return nil
		}
	}
	return &limited
}

// unreachable says why the dependency at a place could not be reached. What
// net/http says of the URL, which may have credentials, is left out.
func unreachable(place string, err error) finding.Finding {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	cause := short(regexp.MustCompile(`[a-zA-Z]+://[^\s"]+`).ReplaceAllStringFunc(err.Error(), withoutSecrets)) // such as where it redirects to
	reason, remediation := "Unreachable", "See what happens on the way, from where the preflight runs: curl -v "+place
	var status statusError
	var loop redirectError
	var name *net.DNSError
	switch {
	case errors.As(err, &status):
		reason, remediation = "BadStatus", "See what is wrong with it: curl -v "+place
	case errors.As(err, &loop):
		reason, remediation = "TooManyRedirects", "See where it leads: curl -vL "+place
	case errors.As(err, &name):
		reason, remediation = "NameNotResolved", "See whether the name is right, and known to the DNS where the preflight runs."
		cause = fmt.Sprintf("the name %q cannot be resolved: %s", name.Name, name.Err)
	case ofTLS(err):
		reason, remediation = "TLSFailed", "See which certificates it has, and whether they are trusted where the preflight runs: curl -v "+place
	case errors.Is(err, syscall.ECONNREFUSED):
		reason, remediation = "ConnectionRefused", "See whether it runs, and whether a firewall or proxy is in the way: curl -v "+place
	case timedOut(err):
		reason, remediation = "Timeout", "See whether a firewall or proxy is in the way: curl -v "+place
	}
	return finding.Fail(finding.Reason(reason),
		"the external dependency %s cannot be reached from where the preflight runs, in %d tries: %s", place, tries, cause).
		Remedy("%s", remediation)
}

// ofTLS says whether the two sides do not trust or understand each other.
func ofTLS(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var remote *net.OpError
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert) || errors.Is(err, http.ErrSchemeMismatch) ||
		(errors.As(err, &remote) && remote.Op == "remote error")
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout())
}
