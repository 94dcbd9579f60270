package commands_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/prometheus"
)

// Without a response of the monitoring, it is unknown whether alerts fire and risks apply: the
// verdict is Undecided, although CVO would accept the update. Its other responses are tested by
// collector/risk.
func TestUnavailableMonitoring(t *testing.T) {
	e := newRiskEnvironment(t, &byDefault)
	e.state.Available = map[string]string{"4.18.18": examplePullSpec("8")}
	e.apply()
	stopped := httptest.NewServer(nil)
	stopped.Close()
	e.monitoring = stopped.URL
	e.evaluate(exit.Undecided, "4.18.18").
		expectCauses(causes{undecided: []string{"Alerts"}}).
		expectFinding("Alerts", preflight.Unknown, "Unreachable", "--accept Alerts")
	e.evaluate(exit.Undecided, "4.18.17").
		expectCauses(causes{undecided: []string{"Alerts", bootImages}}).
		expectFinding(bootImages, preflight.Unknown, "Unreachable")
	e.evaluate(exit.Ready, "4.18.17", "--accept", "Alerts,"+bootImages).expectCauses(causes{accepted: []string{"Alerts", bootImages}})
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
	e := newPatchEnvironment(t, &techPreview)
	e.monitoring = ""
	t.Setenv("KUBECONFIG", e.plane.CertificateKubeconfig)
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

// A query whose result does not state whether a risk applies. Each such result is tested by
// collector/monitoring.
func TestInvalidQueryResults(t *testing.T) {
	e := newRiskEnvironment(t, &byDefault)
	for query, want := range map[string]struct{ reason, message string }{
		`{__name__=~".+_.+"}`:  {"BadResult", "invalid PromQL result length must be one, but is 3"},
		"max(old_boot_images[": {"BadQuery", "parse error"},
	} {
		e.state.Conditional[1].Risks[0].MatchingRules[0].PromQL.PromQL = query
		e.apply()
		e.evaluate(exit.Undecided, "4.18.17").
			expectCauses(causes{undecided: []string{bootImages}}).
			expectFinding(bootImages, preflight.Unknown, want.reason, want.message)
	}
}

// The URL of a monitoring is not recorded, since it may have a password: a note states that the run had another one.
func TestStatusByAnotherMonitoring(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	run := runPreflight(t, exit.Undecided, "--to", to, "--no-jobs").Run.ID
	const note = "read its alerts and metrics from another monitoring"
	if got := call(t, "status", run, "--prometheus", testCluster.Monitoring); strings.Contains(got.Stderr, note) {
		t.Errorf("status by the monitoring of the run: %s", got.Stderr)
	}
	if got := call(t, "status", run); !strings.Contains(got.Stderr, note) {
		t.Errorf("status by the monitoring of the cluster: %s, want a note", got.Stderr)
	}
}
