package narrative_test

import (
	"net/http"
	"slices"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/prometheus"
)

// Where the monitoring does not respond, alerts are unknown, and so is whether
// risks apply: that is Undecided, and never Ready. CVO would go on.
func TestMonitoringThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := storied(t, &byDefault)
	s.state.Available = map[string]string{"4.18.18": digested("8")}
	s.apply()
	stopped := prometheus.Run(t)
	stopped.Stop()
	for name, story := range map[string]struct {
		reason, url, says string
	}{
		"Down":         {"the server does not listen", stopped.URL, "Unreachable"},
		"Unauthorized": {"it requires another token", prometheus.Saying(t, http.StatusUnauthorized, "Unauthorized").URL, "Unauthorized"},
		"Forbidden":    {"it wants another one", prometheus.Saying(t, http.StatusForbidden, "Forbidden").URL, "Forbidden"},
		"Elsewhere":    {"it is no Prometheus", prometheus.Saying(t, http.StatusOK, "<html>").URL, "BadAnswer"},
	} {
		s.monitoring = story.url
		s.explain(undecided, "4.18.18").
			because(names{undecided: []string{"Alerts"}}).
			finds("Alerts", preflight.Unknown, story.says, "--accept Alerts")
		s.explain(undecided, "4.18.17").
			because(names{undecided: []string{"Alerts", bootImages}}).
			finds(bootImages, preflight.Unknown, story.says)
		s.explain(ready, "4.18.17", "--accept", "Alerts,"+bootImages).because(names{accepted: []string{"Alerts", bootImages}})
		if t.Failed() {
			t.Fatalf("%s: %s", name, story.reason)
		}
	}
	// One that takes requests and never answers: the time of the run ends.
	s.monitoring = prometheus.Silent(t).URL
	slow := s.run(undecided, "--to", "4.18.17", "--timeout", "5s", "--accept", bootImages)
	if !slices.Contains(slow.verdict.Undecided, "Alerts") {
		t.Errorf("%+v, want the alerts to be Unknown", slow.verdict)
	}
}

// The cluster's own monitoring is found by its Route, and wants a token. An
// administrator with a certificate has none.
func TestMonitoringOfTheCluster(t *testing.T) {
	t.Parallel()
	s := patchable(t, &techPreview)
	s.monitoring, s.kubeconfig = "", s.cluster.CertificateKubeconfig
	s.explain(undecided, "4.18.16").
		because(names{undecided: []string{"Alerts"}}).
		finds("Alerts", preflight.Unknown, "NoMonitoring", "there is no Route openshift-monitoring/thanos-querier", "--prometheus URL")
	s.hold(`
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: thanos-querier, namespace: openshift-monitoring}
spec: {host: 127.0.0.1, to: {kind: Service, name: thanos-querier, weight: 100}}
`)
	s.explain(undecided, "4.18.16").
		because(names{undecided: []string{"Alerts"}}).
		finds("Alerts", preflight.Unknown, "NoToken", "oc login")
	// With a token the request is sent, and here no server listens.
	s.explain(undecided, "4.18.16", "--token", "sha256~none").
		because(names{undecided: []string{"Alerts"}})
}

// What a query may answer, but a risk cannot be read from.
func TestQueriesThatDoNotSay(t *testing.T) {
	t.Parallel()
	s := storied(t, &byDefault)
	for query, says := range map[string]string{
		"1":                    "invalid PromQL result type is scalar, not vector",
		`"yes"`:                "invalid PromQL result type is string, not vector",
		"up_to_nothing":        "invalid PromQL result length must be one, but is 0",
		`{__name__=~".+_.+"}`:  "invalid PromQL result length must be one, but is 3",
		"vector(NaN)":          "invalid PromQL result (must be 0 or 1): NaN",
		"vector(2)":            "invalid PromQL result (must be 0 or 1): 2",
		"max(old_boot_images[": "parse error",
	} {
		s.state.Conditional[1].Risks[0].MatchingRules[0].PromQL.PromQL = query
		s.apply()
		reason := "BadResult"
		if says == "parse error" {
			reason = "BadQuery"
		}
		s.explain(undecided, "4.18.17").
			because(names{undecided: []string{bootImages}}).
			finds(bootImages, preflight.Unknown, reason, says)
		if t.Failed() {
			t.Fatal(query)
		}
	}
}
