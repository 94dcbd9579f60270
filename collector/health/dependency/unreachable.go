package dependency

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	reasonUnreachable = finding.NewReason("Unreachable", finding.Explanation{
		Meaning: "Reported when an external dependency cannot be reached, for another cause than those with their own reasons.",
		Cause:   "The message has the error of the network.",
		Remedy:  "Check the connection from where the preflight runs: `curl -v URL`.",
	})
	reasonBadStatus = finding.NewReason("BadStatus", finding.Explanation{
		Meaning: "Reported when an external dependency responds with an error.",
		Cause:   "The dependency does not work, or the URL is wrong.",
		Remedy:  "Check the response: `curl -v URL`.",
	})
	reasonTooManyRedirects = finding.NewReason("TooManyRedirects", finding.Explanation{
		Meaning: "Reported when an external dependency redirects more than ten times.",
		Cause:   "The redirects form a loop.",
		Remedy:  "Check the redirects: `curl -vL URL`.",
	})
	reasonNameNotResolved = finding.NewReason("NameNotResolved", finding.Explanation{
		Meaning: "Reported when the name of an external dependency cannot be resolved where the preflight runs.",
		Cause:   "The name is wrong, or the name service does not have it.",
		Remedy:  "Check the name, and the name service where the preflight runs.",
	})
	reasonTLSFailed = finding.NewReason("TLSFailed", finding.Explanation{
		Meaning: "Reported when the TLS connection to an external dependency fails.",
		Cause:   "Its certificate is not trusted where the preflight runs, or it does not support TLS.",
		Remedy:  "Check the certificates of the dependency: `curl -v URL`.",
	})
	reasonConnectionRefused = finding.NewReason("ConnectionRefused", finding.Explanation{
		Meaning: "Reported when an external dependency, or the proxy to it, refuses the connection.",
		Cause:   "The server does not run, or a firewall rejects the connection.",
		Remedy:  "Check the server, and firewalls and proxies: `curl -v URL`.",
	})
	reasonTimeout = finding.NewReason("Timeout", finding.Explanation{
		Meaning: "Reported when an external dependency does not respond in time.",
		Cause:   "The server is overloaded, or a firewall drops the packets.",
		Remedy:  "Check firewalls and proxies: `curl -v URL`.",
	})
)

// maxRedirects bounds the redirects that are followed, as net/http does.
const maxRedirects = 10

type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("the server responded with %d %s", int(s), http.StatusText(int(s)))
}

type redirectError int

func (r redirectError) Error() string {
	return fmt.Sprintf("the server redirects more than %d times", int(r))
}

// withRedirects is the client with a limit of redirects whose error can be
// distinguished, unless it has a policy of its own.
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

var anyURL = regexp.MustCompile(`[a-zA-Z]+://[^\s"]+`)

// withoutSecrets is a text that should be a URL, without parts that may be a password or a token.
func withoutSecrets(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 {
		text = "..." + text[at:]
	}
	text, _, _ = strings.Cut(text, "?")
	text, _, _ = strings.Cut(text, "#")
	return words.Line(text, maxQuoted)
}

// unreachable is the finding of a dependency that is not reachable, with the error of the
// last try. The URL in the error of net/http, which may have credentials, is left out.
func unreachable(address string, tries int, err error) finding.Finding {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	cause := anyURL.ReplaceAllStringFunc(err.Error(), withoutSecrets) // such as the target of a redirect
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		cause = fmt.Sprintf("the name %q cannot be resolved: %s", name.Name, name.Err)
	}
	reason, remedy := diagnose(err)
	f := finding.Fail(reason, "the external dependency %s is not reachable from where the preflight runs, in %d tries: %s", address, tries, words.Line(cause, maxQuoted)).
		Remedy("%s", remedy)
	if reason == reasonNameNotResolved {
		return f
	}
	if reason == reasonTooManyRedirects {
		return f.Do(finding.OnThisMachine("curl -vL %s", address))
	}
	return f.Do(finding.OnThisMachine("curl -v %s", address))
}

func diagnose(err error) (finding.Reason, string) {
	var status statusError
	var loop redirectError
	var name *net.DNSError
	switch {
	case errors.As(err, &status):
		return reasonBadStatus, "Check the response of the dependency."
	case errors.As(err, &loop):
		return reasonTooManyRedirects, "Check the redirects of the dependency."
	case errors.As(err, &name):
		return reasonNameNotResolved, "Check the name, and the name service where the preflight runs."
	case ofTLS(err):
		return reasonTLSFailed, "Check the certificates of the dependency, and whether they are trusted where the preflight runs."
	case errors.Is(err, syscall.ECONNREFUSED):
		return reasonConnectionRefused, "Check that the server runs, and whether a firewall or a proxy rejects the connection."
	case timedOut(err):
		return reasonTimeout, "Check whether a firewall or a proxy drops the connection."
	}
	return reasonUnreachable, "Check the connection from where the preflight runs."
}

// ofTLS reports whether the two sides do not trust or understand each other.
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
