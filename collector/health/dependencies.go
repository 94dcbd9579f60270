package health

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

const (
	ReasonNoneGiven  finding.Reason = "NoneGiven"
	ReasonReachable  finding.Reason = "Reachable"
	ReasonInvalidURL finding.Reason = "InvalidURL"
)

const (
	// tries is how often a dependency is asked, as MUO does, patience how long
	// each try may take, and firstPause how long to wait after the first; the
	// next pause is twice as long.
	tries      = 3
	patience   = 10 * time.Second
	firstPause = 500 * time.Millisecond
	// maxAsked is how many dependencies are asked at a time, maxDependencies
	// how many at all: where none answers, that takes four minutes.
	maxAsked        = 16
	maxDependencies = 100
)

// Dependencies are what the cluster needs outside of itself. They are asked
// once, by the first check that wants to know, for the checks of all updates.
type Dependencies struct {
	client *http.Client
	urls   []string

	once     sync.Once
	findings []finding.Finding
	err      error
}

// DependOn makes Dependencies of http and https URLs. The client, which is
// required, decides about proxies, certificates and redirects.
func DependOn(client *http.Client, urls []string) *Dependencies {
	unique := slices.Clone(urls)
	slices.Sort(unique)
	return &Dependencies{client: withRedirects(client), urls: slices.Compact(unique)}
}

// ExternalDependencies asks each of the dependencies for an answer, from where
// the preflight runs: any answer of 2xx or 3xx is one. A dependency that does
// not answer in three tries is a finding ExternalDependency-<host and path>.
// Credentials and queries of URLs are not in the text of any finding.
func ExternalDependencies(dependencies *Dependencies) check.Check {
	return check.Check{
		Name: "ExternalDependency", Kind: finding.SourceHealth,
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			if dependencies == nil || len(dependencies.urls) == 0 {
				return []finding.Finding{finding.Skipped(ReasonNoneGiven, "no external dependencies were given, so none was asked")}, nil
			}
			dependencies.once.Do(func() { dependencies.findings, dependencies.err = dependencies.ask(ctx) })
			return slices.Clone(dependencies.findings), dependencies.err
		},
	}
}

// ask asks all dependencies.
func (d *Dependencies) ask(ctx context.Context) ([]finding.Finding, error) {
	if len(d.urls) > maxDependencies {
		return nil, fmt.Errorf("there are %d external dependencies, more than the %d that are asked", len(d.urls), maxDependencies)
	}
	answers := make([]*finding.Finding, len(d.urls))
	var group errgroup.Group
	group.SetLimit(maxAsked)
	for i, text := range d.urls {
		group.Go(func() error {
			var err error
			answers[i], err = d.look(ctx, text)
			return err
		})
	}
	err := group.Wait()
	var problems []problem
	for _, f := range answers {
		if f != nil {
			problems = append(problems, problem{f.Outcome, func() finding.Finding { return *f }})
		}
	}
	if err == nil && len(problems) == 0 {
		return []finding.Finding{finding.Pass(ReasonReachable, "all external dependencies, %d of them, answer where the preflight runs", len(d.urls))}, nil
	}
	return told(problems), err
}

// look says why a dependency cannot be reached, or nil. An error means that
// there was no time to find out.
func (d *Dependencies) look(ctx context.Context, text string) (*finding.Finding, error) {
	dependency, ok := askable(text)
	if !ok {
		invalid := finding.Unknown(ReasonInvalidURL, "%q is not an http or https URL, so it was not asked", withoutSecrets(text)).
			Remedy("Name the dependency by a URL such as https://quay.io/health")
		return &invalid, nil
	}
	place := dependency.Scheme + "://" + dependency.Host + dependency.EscapedPath()
	pause := firstPause
	for try := 1; ; try++ {
		err := d.try(ctx, dependency)
		if err == nil {
			return nil, nil //nolint:nilnil // there is nothing to say of it
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("there was no time to ask the external dependency %s: %w", place, ctx.Err())
		}
		if try == tries {
			f := unreachable(place, err)
			f.Name = "ExternalDependency-" + nameOf(dependency.Host+dependency.Path)
			return &f, nil
		}
		if err := wait(ctx, pause); err != nil {
			return nil, fmt.Errorf("there was no time to ask the external dependency %s: %w", place, err)
		}
		pause *= 2
	}
}

// askable reads an http or https URL.
func askable(text string) (*url.URL, bool) {
	dependency, err := url.Parse(text)
	if err != nil {
		return nil, false // the error quotes the text, secrets and all
	}
	return dependency, dependency.Host != "" && (dependency.Scheme == "http" || dependency.Scheme == "https")
}

// try asks once. What the answer says beyond its status is not read.
func (d *Dependencies) try(ctx context.Context, dependency *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, dependency.String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := d.client.Do(request)
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

// nameOf makes a part of a finding's name of a host and a path.
func nameOf(place string) string {
	name := strings.Map(func(letter rune) rune {
		switch {
		case letter >= 'a' && letter <= 'z', letter >= 'A' && letter <= 'Z', letter >= '0' && letter <= '9', letter == '.', letter == '-':
			return letter
		}
		return '-'
	}, place)
	const most = 200 // the API takes names of up to 256 characters
	return strings.Trim(name[:min(len(name), most)], "-")
}

// withoutSecrets is a text that should have been a URL, without what may be a
// password or a token.
func withoutSecrets(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 {
		text = "..." + text[at:]
	}
	text, _, _ = strings.Cut(text, "?")
	text, _, _ = strings.Cut(text, "#")
	return short(text)
}
