// Package prometheus answers: how does a test run a real Prometheus with firing alerts
// and series with values?
//
// The program is the one that `make tools` builds in bin/. A Front simulates the
// components between Prometheus and its clients on a real cluster, such as a proxy that
// requires a token or a network that drops requests.
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
	// startTimeout bounds a start; a busy machine needs most of it.
	startTimeout = time.Minute
	// interval is the time between two evaluations of the rules, and between two
	// checks whether they were evaluated.
	interval = 100 * time.Millisecond
)

// Rule is a rule in the format of Prometheus' rule files. Exactly one of Alert
// and Record is set.
type Rule struct {
	// Alert is the name of an alert that is active while Expr has a result.
	Alert string `json:"alert,omitempty"`
	// Record is the name of a series with the values of Expr.
	Record string `json:"record,omitempty"`
	// Expr is PromQL; "vector(1)" always has a result.
	Expr string `json:"expr"`
	// For is how long an alert is pending before it fires, e.g. "1h". If empty, the
	// alert fires at once.
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Prometheus is a running Prometheus.
type Prometheus struct {
	// URL is its address, on the loopback interface and without TLS.
	URL string

	process *process
}

// Start runs a Prometheus with its files in dir, and returns when it has evaluated
// all rules, so that alerts without For are firing. It fails if a rule cannot be
// evaluated. Prometheus ends with this process, even if that is killed.
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
	address, err := process.address(ctx)
	if err == nil {
		started.URL = "http://" + address
		err = started.await(ctx, len(rules), time.Time{})
	}
	if err != nil {
		started.Stop()
		return nil, err
	}
	return started, nil
}

// Stop returns when Prometheus has ended. It may be called again.
func (p *Prometheus) Stop() { p.process.stop() }

// configure writes the rules. One more makes a group without rules known: Prometheus does not list it otherwise.
func configure(dir string, rules []Rule) error {
	rules = append([]Rule{{Record: "configured", Expr: "vector(1)"}}, rules...)
	group := map[string]any{"name": "test", "interval": interval.String(), "rules": rules}
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

// await returns when all rules were evaluated since a time.
func (p *Prometheus) await(ctx context.Context, rules int, since time.Time) error {
	rules++ // that of configure
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		evaluated, err := p.evaluated(ctx, since)
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

// starting is the count of rules while Prometheus is not ready.
const starting = -1

// evaluated returns the number of rules that were evaluated since a time.
func (p *Prometheus) evaluated(ctx context.Context, since time.Time) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/api/v1/rules", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // nothing was written to it
	if response.StatusCode == http.StatusServiceUnavailable {
		return starting, nil
	}
	var parsed ruleGroups
	if err := json.NewDecoder(response.Body).Decode(&parsed); err != nil {
		return 0, fmt.Errorf("prometheus responds with %s: %w", response.Status, err)
	}
	return parsed.evaluated(since)
}

// ruleGroups is the response of /api/v1/rules.
type ruleGroups struct {
	Data struct {
		Groups []struct {
			LastEvaluation time.Time `json:"lastEvaluation"`
			Rules          []struct {
				Name      string `json:"name"`
				Health    string `json:"health"`
				LastError string `json:"lastError"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"data"`
}

func (g ruleGroups) evaluated(since time.Time) (int, error) {
	count := 0
	for _, group := range g.Data.Groups {
		if !group.LastEvaluation.After(since) {
			continue
		}
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
