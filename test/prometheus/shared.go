package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

// Shared is a Prometheus that the tests of a package use one after the other: a start takes longer than most of
// them. The zero value has not started.
type Shared struct {
	dir     string
	started *Prometheus
}

// Load replaces the rules and returns when all were evaluated, so that alerts without For are firing, and those
// and the series of the rules before are gone.
func (s *Shared) Load(tb testing.TB, rules ...Rule) *Prometheus {
	tb.Helper()
	if err := s.load(tb.Context(), rules); err != nil {
		tb.Fatal(err)
	}
	return s.started
}

// load starts Prometheus without rules: it writes no series of alerts that it has had from its start before
// it has looked for their previous state, two evaluations later.
func (s *Shared) load(ctx context.Context, rules []Rule) (err error) {
	if s.started == nil {
		if s.dir, err = os.MkdirTemp("", "preflight-prometheus-"); err != nil {
			return err
		}
		if s.started, err = Start(ctx, s.dir); err != nil {
			return err
		}
	}
	return s.started.reload(ctx, s.dir, rules)
}

// Stop stops the Prometheus, and removes its files.
func (s *Shared) Stop() error {
	if s.started != nil {
		s.started.Stop()
	}
	return os.RemoveAll(s.dir)
}

// reload replaces the rules of a Prometheus with its files in dir.
func (p *Prometheus) reload(ctx context.Context, dir string, rules []Rule) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("prometheus has not loaded the rules after %s", startTimeout))
	defer cancel()
	if err := configure(dir, rules); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/-/reload", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("prometheus responds with %s to the new rules: %s", response.Status, answer)
	}
	return p.await(ctx, len(rules), time.Now())
}
