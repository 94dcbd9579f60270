package narrative_test

import (
	"net/http"
	"slices"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/prometheus"
)

// Without a response of the monitoring, it is unknown whether alerts fire and risks apply: the
// verdict is Undecided, although CVO would accept the update.
func TestUnavailableMonitoring(t *testing.T) {
	t.Parallel()
	e := newRiskEnvironment(t, &byDefault)
	e.state.Available = map[string]string{"4.18.18": examplePullSpec("8")}
	e.apply()
	stopped := prometheus.Run(t)
	stopped.Stop()
	for name, tc := range map[string]struct {
		reason, url, want string
	}{
		"Down":         {"the server does not listen", stopped.URL, "Unreachable"},
		"Unauthorized": {"it rejects the token", prometheus.Constant(t, http.StatusUnauthorized, "Unauthorized").URL, "Unauthorized"},
		"Forbidden":    {"the token lacks permissions", prometheus.Constant(t, http.StatusForbidden, "Forbidden").URL, "Forbidden"},
		"Elsewhere":    {"the server is not a Prometheus", prometheus.Constant(t, http.StatusOK, "<html>").URL, "BadAnswer"},
	} {
		e.monitoring = tc.url
		e.evaluate(exit.Undecided, "4.18.18").
			expectCauses(causes{undecided: []string{"Alerts"}}).
			expectFinding("Alerts", preflight.Unknown, tc.want, "--accept Alerts")
		e.evaluate(exit.Undecided, "4.18.17").
			expectCauses(causes{undecided: []string{"Alerts", bootImages}}).
			expectFinding(bootImages, preflight.Unknown, tc.want)
		e.evaluate(exit.Ready, "4.18.17", "--accept", "Alerts,"+bootImages).expectCauses(causes{accepted: []string{"Alerts", bootImages}})
		if t.Failed() {
			t.Fatalf("%s: %s", name, tc.reason)
		}
	}
	// A server that accepts requests and never responds: the run reaches its timeout.
	e.monitoring = prometheus.Silent(t).URL
	slow := e.run(exit.Undecided, "--to", "4.18.17", "--timeout", "5s", "--accept", bootImages)
	if !slices.Contains(slow.verdict.Undecided, "Alerts") {
		t.Errorf("%+v, want the alerts undecided", slow.verdict)
	}
}

// The monitoring of the cluster is found by its Route, and requires a token, which an
// administrator with a certificate does not have.
func TestMonitoringOfTheCluster(t *testing.T) {
	t.Parallel()
	e := newPatchEnvironment(t, &techPreview)
	e.monitoring, e.kubeconfig = "", e.cluster.CertificateKubeconfig
	e.evaluate(exit.Undecided, "4.18.16").
		expectCauses(causes{undecided: []string{"Alerts"}}).
		expectFinding("Alerts", preflight.Unknown, "NoMonitoring", "there is no Route openshift-monitoring/thanos-querier", "--prometheus URL")
	e.create(`
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: thanos-querier, namespace: openshift-monitoring}
spec: {host: 127.0.0.1, to: {kind: Service, name: thanos-querier, weight: 100}}
`)
	e.evaluate(exit.Undecided, "4.18.16").
		expectCauses(causes{undecided: []string{"Alerts"}}).
		expectFinding("Alerts", preflight.Unknown, "NoToken", "oc login")
	// With a token the request is sent, but no server listens.
	e.evaluate(exit.Undecided, "4.18.16", "--token", "sha256~none").
		expectCauses(causes{undecided: []string{"Alerts"}})
}

// Results of queries that do not state whether a risk applies.
func TestInvalidQueryResults(t *testing.T) {
	t.Parallel()
	e := newRiskEnvironment(t, &byDefault)
	for query, message := range map[string]string{
		"1":                    "invalid PromQL result type is scalar, not vector",
		`"yes"`:                "invalid PromQL result type is string, not vector",
		"up_to_nothing":        "invalid PromQL result length must be one, but is 0",
		`{__name__=~".+_.+"}`:  "invalid PromQL result length must be one, but is 3",
		"vector(NaN)":          "invalid PromQL result (must be 0 or 1): NaN",
		"vector(2)":            "invalid PromQL result (must be 0 or 1): 2",
		"max(old_boot_images[": "parse error",
	} {
		e.state.Conditional[1].Risks[0].MatchingRules[0].PromQL.PromQL = query
		e.apply()
		reason := "BadResult"
		if message == "parse error" {
			reason = "BadQuery"
		}
		e.evaluate(exit.Undecided, "4.18.17").
			expectCauses(causes{undecided: []string{bootImages}}).
			expectFinding(bootImages, preflight.Unknown, reason, message)
		if t.Failed() {
			t.Fatal(query)
		}
	}
}
