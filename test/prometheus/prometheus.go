// Package prometheus answers: how does a test get a real Prometheus, with
// alerts that fire and series that have values, and how does it get rid of it?
//
// The program is the one that `make tools` leaves in bin/. What stands between
// it and its clients on a real cluster, a proxy that wants a token, a network
// that swallows requests, are the fronts of this package.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// startTimeout bounds a start on a slow, busy machine.
	startTimeout = time.Minute
	// interval is how often rules are evaluated, and how often a start asks
	// whether they were.
	interval = 50 * time.Millisecond
)

// Rule is a rule as Prometheus has it in its files. Exactly one of Alert and
// Record is set.
type Rule struct {
	// Alert names an alert that is active while Expr has a result.
	Alert string `json:"alert,omitempty"`
	// Record names a series that has the values of Expr.
	Record string `json:"record,omitempty"`
	// Expr is PromQL; "vector(1)" always has a result.
	Expr string `json:"expr"`
	// For is how long an alert is pending before it fires, e.g. "1h"; empty
	// means not at all.
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Prometheus is a running one.
type Prometheus struct {
	// URL is where it answers, on the loopback interface and without TLS.
	URL string

	process *process
}

// Start runs a Prometheus that keeps its files in dir, and returns when it has
// evaluated all rules: an alert without For is firing then. One rule that
// cannot be evaluated is an error. It ends with this process, even when that is
// killed.
func Start(ctx context.Context, dir string, rules ...Rule) (*Prometheus, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("prometheus was not ready after %s", startTimeout))
	defer cancel()
	if err := configure(dir, rules); err != nil {
		return nil, err
	}
	process, err := spawn(dir)
	if err != nil {
		return nil, err
	}
	started := &Prometheus{process: process}
	if err := started.await(ctx, len(rules)); err != nil {
		started.Stop()
		return nil, err
	}
	return started, nil
}

// Stop ends it, and returns when it has ended. It may be called again.
func (p *Prometheus) Stop() { p.process.stop() }

func configure(dir string, rules []Rule) error {
	group := map[string]any{"name": "test", "interval": interval.String(), "rules": rules}
	if rules == nil {
		group["rules"] = []Rule{}
	}
	for name, content := range map[string]any{
		"prometheus.yml": map[string]any{"rule_files": []string{"rules.yml"}},
		"rules.yml":      map[string]any{"groups": []any{group}},
	} {
		data, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// await asks until all rules were evaluated.
func (p *Prometheus) await(ctx context.Context, rules int) error {
	address, err := p.process.address(ctx)
	if err != nil {
		return err
	}
	p.URL = "http://" + address
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		evaluated, err := p.evaluated(ctx)
		if err != nil {
			return err
		}
		if evaluated == rules {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d rules were evaluated", context.Cause(ctx), evaluated, rules)
		}
	}
}

// starting is a count of rules that is never reached.
const starting = -1

// evaluated counts the rules that were.
func (p *Prometheus) evaluated(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/api/v1/rules", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode == http.StatusServiceUnavailable {
		return starting, nil
	}
	var answer answer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("prometheus answers %s: %w", response.Status, err)
	}
	return answer.evaluated()
}

// answer is that of /api/v1/rules.
type answer struct {
	Data struct {
		Groups []struct {
			Rules []struct {
				Name      string `json:"name"`
				Health    string `json:"health"`
				LastError string `json:"lastError"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"data"`
}

func (a answer) evaluated() (int, error) {
	count := 0
	for _, group := range a.Data.Groups {
		for _, rule := range group.Rules {
			if rule.LastError != "" {
				return 0, fmt.Errorf("rule %q: %s", rule.Name, rule.LastError)
			}
			if rule.Health == "ok" {
				count++
			}
		}
	}
	return count, nil
}
