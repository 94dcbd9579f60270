// Package dependency answers: are the external systems that an update needs reachable?
//
// [New] returns the set of these systems, and [Check] probes them from where the preflight runs.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

// The name of the findings about dependencies, and their reasons.
var (
	Name = finding.NewName("ExternalDependency",
		"Checks that each dependency is reachable from where the preflight runs: one of three requests must return a status from 200 "+
			"to 399. Otherwise there is a finding ExternalDependency-<host and path>. Credentials and queries of URLs never appear in "+
			"texts. It concerns every update.")

	reasonNoneGiven = finding.NewReason("NoneGiven", finding.Explanation{
		Meaning: "No external dependencies are configured.",
		Cause:   "The preflight was run without external dependencies.",
	})
	reasonReachable = finding.NewReason("Reachable", finding.Explanation{
		Meaning: "All external dependencies are reachable.",
		Cause:   "Each responded with a status from 200 to 399.",
	})
	reasonInvalidURL = finding.NewReason("InvalidURL", finding.Explanation{
		Meaning: "An external dependency is not a URL.",
		Cause:   "The preflight was run with an invalid URL of a dependency.",
		Remedy:  "Use a URL such as https://quay.io/health for the dependency.",
	})
)

const (
	// maxQuoted bounds a text of a dependency in a message, in bytes.
	maxQuoted = 1024
	// tries is the number of requests to a dependency, as in MUO, tryTimeout bounds
	// each, and firstPause is the pause after the first; it doubles every time.
	tries      = 3
	tryTimeout = 10 * time.Second
	firstPause = 500 * time.Millisecond
	// maxConcurrent bounds the concurrent requests, maxDependencies the dependencies:
	// where none responds, that takes four minutes.
	maxConcurrent   = 16
	maxDependencies = 100
)

// Set is the set of external systems that the cluster needs. The first check that needs the results probes its
// members, once for the checks of all updates.
type Set struct {
	client *http.Client
	urls   []string

	probed gap.Once[[]finding.Finding]
}

// New makes a set of http and https URLs. The client, which is required,
// decides about proxies, certificates and redirects.
func New(client *http.Client, urls []string) *Set {
	unique := slices.Clone(urls)
	slices.Sort(unique)
	return &Set{client: withRedirects(client), urls: slices.Compact(unique)}
}

// Check is the check ExternalDependency.
func Check(dependencies *Set) check.Check {
	return check.Check{
		Name: Name, Kind: finding.SourceHealth,
		Run: func(ctx context.Context, _ check.Subject) ([]finding.Finding, error) {
			if dependencies == nil || len(dependencies.urls) == 0 {
				return []finding.Finding{finding.Skipped(gap.Proven("the options of the run"), reasonNoneGiven,
					"no external dependencies are configured")}, nil
			}
			findings, err := dependencies.probed.Get(ctx, dependencies.probeAll)
			return slices.Clone(findings), err
		},
	}
}

func (s *Set) probeAll(ctx context.Context) ([]finding.Finding, error) {
	if len(s.urls) > maxDependencies {
		return nil, fmt.Errorf("%d external dependencies are configured, but %d are the limit", len(s.urls), maxDependencies)
	}
	results := make([]*finding.Finding, len(s.urls))
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	for i, text := range s.urls {
		group.Go(func() error {
			var err error
			results[i], err = s.probe(ctx, text)
			return err
		})
	}
	err := group.Wait()
	var findings []finding.Finding
	for _, f := range results {
		if f != nil {
			findings = append(findings, *f)
		}
	}
	if err == nil && len(findings) == 0 {
		return []finding.Finding{finding.Pass(gap.Proven("the responses of the dependencies"), reasonReachable,
			"all %d external dependencies respond from where the preflight runs", len(s.urls))}, nil
	}
	return finding.Bounded(finding.Drafts(findings...)), err
}

// probe returns why a dependency is not reachable, or nil. An error means that the time of the run was over before.
func (s *Set) probe(ctx context.Context, text string) (*finding.Finding, error) {
	dependency, ok := parseURL(text)
	if !ok {
		invalid := finding.Unknown(reasonInvalidURL, "%q is not an http or https URL, so it was not probed", withoutSecrets(text))
		return &invalid, nil
	}
	address := dependency.Scheme + "://" + dependency.Host + dependency.EscapedPath()
	pause := firstPause
	for try := 1; ; try++ {
		err := s.try(ctx, dependency)
		if err == nil {
			return nil, nil //nolint:nilnil // a reachable dependency has neither finding nor error
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the run ended before the external dependency %s was probed: %w", address, ctx.Err())
		}
		if try == tries {
			f := unreachable(address, tries, err).Named(finding.NameOf(Name, dependency.Host+dependency.Path))
			return &f, nil
		}
		if err := wait(ctx, pause); err != nil {
			return nil, fmt.Errorf("the run ended before the external dependency %s was probed: %w", address, err)
		}
		pause *= 2
	}
}

// parseURL parses an http or https URL. Its error is dropped, since it repeats the text with its secrets.
func parseURL(text string) (*url.URL, bool) {
	dependency, err := url.Parse(text)
	if err != nil {
		return nil, false
	}
	return dependency, dependency.Host != "" && (dependency.Scheme == "http" || dependency.Scheme == "https")
}

// try is one request. The body of the response is not read.
func (s *Set) try(ctx context.Context, dependency *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, dependency.String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode < 200 || response.StatusCode > 399 {
		return statusError(response.StatusCode)
	}
	return nil
}

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

var (
	reasonUnreachable = finding.NewReason("Unreachable", finding.Explanation{
		Meaning: "An external dependency is unreachable, for a cause that has no reason of its own.",
		Cause:   "The message contains the network error.",
		Remedy:  "Check the connection from where the preflight runs: `curl -v URL`.",
	})
	reasonBadStatus = finding.NewReason("BadStatus", finding.Explanation{
		Meaning: "An external dependency responds with an error.",
		Cause:   "The dependency is not working, or the URL is wrong.",
		Remedy:  "Check the response: `curl -v URL`.",
	})
	reasonTooManyRedirects = finding.NewReason("TooManyRedirects", finding.Explanation{
		Meaning: "An external dependency redirects more than ten times.",
		Cause:   "The redirects form a loop.",
		Remedy:  "Check the redirects: `curl -vL URL`.",
	})
	reasonNameNotResolved = finding.NewReason("NameNotResolved", finding.Explanation{
		Meaning: "The name of an external dependency cannot be resolved where the preflight runs.",
		Cause:   "The name is wrong, or the name server does not have it.",
		Remedy:  "Check the name, and the name server where the preflight runs.",
	})
	reasonTLSFailed = finding.NewReason("TLSFailed", finding.Explanation{
		Meaning: "The TLS connection to an external dependency fails.",
		Cause:   "Its certificate is not trusted where the preflight runs, or it does not support TLS.",
		Remedy:  "Check the certificates of the dependency: `curl -v URL`.",
	})
	reasonConnectionRefused = finding.NewReason("ConnectionRefused", finding.Explanation{
		Meaning: "An external dependency, or the proxy to it, refuses the connection.",
		Cause:   "The server is not running, or a firewall rejects the connection.",
		Remedy:  "Check the server, and firewalls and proxies: `curl -v URL`.",
	})
	reasonTimeout = finding.NewReason("Timeout", finding.Explanation{
		Meaning: "A request to an external dependency times out.",
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
	f := finding.Fail(reason, "the external dependency %s is not reachable from where the preflight runs, in %d tries: %s", address, tries,
		words.Line(cause, maxQuoted)).
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
		return reasonNameNotResolved, "Check the name, and the name server where the preflight runs."
	case ofTLS(err):
		return reasonTLSFailed, "Check the certificates of the dependency, and whether they are trusted where the preflight runs."
	case errors.Is(err, syscall.ECONNREFUSED):
		return reasonConnectionRefused, "Check that the server is running, and whether a firewall or a proxy rejects the connection."
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
