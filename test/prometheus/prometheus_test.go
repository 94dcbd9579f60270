package prometheus_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/test/prometheus"
)

// get returns the status and the body of the response of a URL.
func get(t *testing.T, client *http.Client, url, token string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func TestAlertsFollowTheirRules(t *testing.T) {
	p := prometheus.Run(t,
		prometheus.Rule{Alert: "Now", Expr: "vector(1)"},
		prometheus.Rule{Alert: "Later", Expr: "vector(1)", For: "1h"},
		prometheus.Rule{Alert: "Never", Expr: "vector(1) == 2"},
	)
	_, body := get(t, http.DefaultClient, p.URL+"/api/v1/alerts", "")
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string            `json:"state"`
				Labels map[string]string `json:"labels"`
			} `json:"alerts"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	states := map[string]string{}
	for _, alert := range answer.Data.Alerts {
		states[alert.Labels["alertname"]] = alert.State
	}
	if diff := cmp.Diff(map[string]string{"Now": "firing", "Later": "pending"}, states); diff != "" {
		t.Errorf("alerts (-want +got):\n%s", diff)
	}
}

func TestSeriesHaveValuesAfterStart(t *testing.T) {
	p := prometheus.Run(t, prometheus.Rule{Record: "up", Expr: "vector(7)"})
	_, body := get(t, http.DefaultClient, p.URL+"/api/v1/query?query=up", "")
	if !strings.Contains(string(body), `"7"`) {
		t.Errorf("want the value 7, got %s", body)
	}
}

// The stand-in of the demos responds as a real Prometheus.
func TestWithoutAlerts(t *testing.T) {
	real := prometheus.Run(t)
	standIn := httptest.NewServer(prometheus.WithoutAlerts())
	t.Cleanup(standIn.Close)
	now := regexp.MustCompile(`\d{10}(\.\d+)?`)
	for _, path := range []string{"/api/v1/alerts", "/api/v1/query?query=ALERTS", "/api/v1/query?query=vector(0)"} {
		_, want := get(t, http.DefaultClient, real.URL+path, "")
		_, got := get(t, http.DefaultClient, standIn.URL+path, "")
		if diff := cmp.Diff(now.ReplaceAllString(string(want), "NOW"), now.ReplaceAllString(string(got), "NOW")); diff != "" {
			t.Errorf("%s: -Prometheus +stand-in:\n%s", path, diff)
		}
	}
}

// The rules of one test are gone in the next, with their alerts and series.
func TestSharedHasTheRulesOfOneTest(t *testing.T) {
	var shared prometheus.Shared
	t.Cleanup(func() {
		if err := shared.Stop(); err != nil {
			t.Error(err)
		}
	})
	firing := prometheus.Rule{Alert: "Now", Expr: "vector(1)"}
	for name, tc := range map[string]struct {
		reason string
		rules  []prometheus.Rule
		want   []string
	}{
		"Series": {
			reason: "a series has its value at once", rules: []prometheus.Rule{{Record: "one_series", Expr: "vector(7)"}},
			want: []string{"configured", "one_series"},
		},
		"Alert": {
			reason: "an alert fires at once", rules: []prometheus.Rule{firing},
			want: []string{"ALERTS", "ALERTS_FOR_STATE", "configured"},
		},
		"Other": {
			reason: "the same alert, and a series", rules: []prometheus.Rule{firing, {Record: "other", Expr: "vector(0)"}},
			want: []string{"ALERTS", "ALERTS_FOR_STATE", "configured", "other"},
		},
		"None": {reason: "there are neither alerts nor series without rules", want: []string{"configured"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := shared.Load(t, tc.rules...)
			_, body := get(t, http.DefaultClient, p.URL+"/api/v1/query?query="+url.QueryEscape(`count by (__name__) ({__name__=~".+"})`), "")
			var answer struct {
				Data struct {
					Result []struct {
						Metric map[string]string `json:"metric"`
					} `json:"result"`
				} `json:"data"`
			}
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			var names []string
			for _, series := range answer.Data.Result {
				names = append(names, series.Metric["__name__"])
			}
			slices.Sort(names)
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("%s: series (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStartFailsOnInvalidRule(t *testing.T) {
	_, err := prometheus.Start(t.Context(), t.TempDir(), prometheus.Rule{Record: "up", Expr: "up{"})
	if err == nil {
		t.Fatal("want an error for a rule that is not PromQL")
	}
}

func TestGuardedFrontRequiresTokenAndCA(t *testing.T) {
	front := prometheus.Run(t).Guarded(t, "secret")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(front.CA)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for token, want := range map[string]int{"": 401, "other": 403, "secret": 200} {
		if got, _ := get(t, client, front.URL+"/api/v1/alerts", token); got != want {
			t.Errorf("with token %q: status %d, want %d", token, got, want)
		}
	}
	if got := len(front.Requests()); got != 3 {
		t.Errorf("requests: got %d, want 3", got)
	}
}
