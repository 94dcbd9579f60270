// Package dependency answers: can the systems outside of the cluster that an update needs be
// reached?
//
// [New] makes the set of them, and [Check] is the check; it is made where the preflight runs.
package dependency

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
)

// The name of the findings about dependencies, and their reasons.
var (
	Name = finding.NewName("ExternalDependency",
		"The check that each of the dependencies is reachable from where the preflight runs: a response with a "+
			"status from 200 to 399 in one of three requests. Otherwise there is a finding ExternalDependency-<host "+
			"and path>. Credentials and queries of URLs are in no text. It concerns every update.")

	reasonNoneGiven = finding.NewReason("NoneGiven", finding.Explanation{
		Meaning: "Reported when no external dependencies are configured.",
		Cause:   "The preflight was run without external dependencies.",
	})
	reasonReachable = finding.NewReason("Reachable", finding.Explanation{
		Meaning: "Reported when all external dependencies are reachable.",
		Cause:   "Each responded with a status from 200 to 399.",
	})
	reasonInvalidURL = finding.NewReason("InvalidURL", finding.Explanation{
		Meaning: "Reported when an external dependency is not a URL.",
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

// Set is what the cluster needs outside of itself. Its members are probed once, by the first
// check that needs the results, for the checks of all updates.
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
				return []finding.Finding{finding.Skipped(gap.Proven("the options of the run"), reasonNoneGiven, "no external dependencies are configured")}, nil
			}
			findings, err := dependencies.probed.Get(ctx, dependencies.probeAll)
			return slices.Clone(findings), err
		},
	}
}

func (s *Set) probeAll(ctx context.Context) ([]finding.Finding, error) {
	if len(s.urls) > maxDependencies {
		return nil, fmt.Errorf("%d external dependencies are configured, and %d are the limit", len(s.urls), maxDependencies)
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
		return []finding.Finding{finding.Pass(gap.Proven("the responses of the dependencies"), reasonReachable, "all %d external dependencies respond where the preflight runs", len(s.urls))}, nil
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
			return nil, nil //nolint:nilnil // a reachable dependency has no finding
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
