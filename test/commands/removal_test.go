package commands_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
)

// requestCount returns the APIRequestCount of an API that one client has used.
func requestCount(api, removedIn, user string) string {
	return strings.NewReplacer("NAME", api, "RELEASE", removedIn, "USER", user).Replace(`
apiVersion: apiserver.openshift.io/v1
kind: APIRequestCount
metadata: {name: NAME}
spec: {numberOfUsersToReport: 10}
status:
  removedInRelease: "RELEASE"
  requestCount: 42
  last24h:
  - requestCount: 42
    byNode:
    - nodeName: control-plane-0
      requestCount: 42
      byUser: [{username: "USER", userAgent: billing/v2, requestCount: 42, byVerb: [{verb: list, requestCount: 42}]}]
`)
}

// The removal of an API by the target blocks, that by a later release is a warning
// (eus-upgrades-mvp). OpenShift 4.19 has Kubernetes 1.32, 4.20 has 1.33.
func TestRemovedAPIs(t *testing.T) {
	e := newEnvironment(t, &byDefault)
	e.state.Available = map[string]string{"4.18.16": examplePullSpec("1"), "4.19.1": examplePullSpec("2")}
	e.apply()
	e.create(
		requestCount("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.32", "system:serviceaccount:billing:reader"),
		requestCount("endpointslices.v1beta1.discovery.k8s.io", "1.33", "system:serviceaccount:billing:reader"),
		requestCount("horizontalpodautoscalers.v2beta2.autoscaling", "1.32", "system:serviceaccount:kube-system:generic-garbage-collector"),
	)
	const imminent, far = "RemovedAPI-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "RemovedAPI-endpointslices.v1beta1.discovery.k8s.io"
	e.evaluate(exit.Blocked, "4.19.1").
		expectCauses(causes{blocking: []string{imminent}}).
		expectFinding(imminent, preflight.Fail, "RemovedAPIInUse", "Kubernetes 1.32", "system:serviceaccount:billing:reader", "billing/v2",
			"42 requests").
		expectFinding(far, preflight.Warn, "APIRemovalAhead", "4.19 still serves it, but OpenShift 4.20 (Kubernetes 1.33) removes it").
		expectNoFinding("RemovedAPI-horizontalpodautoscalers.v2beta2.autoscaling")
	e.evaluate(exit.Ready, "4.18.16").expectCauses(causes{})
}

// hourlyRequestCount returns the counts of two API servers in a day, with requests of one
// client in one hour only. API servers reset the hour after the present one in advance.
func hourlyRequestCount(used, now time.Time, user string) string {
	var hours strings.Builder
	for hour := range 24 {
		switch hour {
		case (now.UTC().Hour() + 1) % 24:
			hours.WriteString("  - requestCount: 0\n")
		case used.UTC().Hour():
			fmt.Fprintf(&hours, `  - requestCount: 2
    byNode:
    - {nodeName: a, requestCount: 2, byUser: [{username: %q, userAgent: kubectl/v1.31, requestCount: 2, byVerb: [{verb: list, requestCount: 2}]}]}
    - {nodeName: b, requestCount: 0}
`, user)
		default:
			hours.WriteString("  - {requestCount: 0, byNode: [{nodeName: a, requestCount: 0}, {nodeName: b, requestCount: 0}]}\n")
		}
	}
	return `
apiVersion: apiserver.openshift.io/v1
kind: APIRequestCount
metadata: {name: flowschemas.v1beta3.flowcontrol.apiserver.k8s.io}
spec: {numberOfUsersToReport: 10}
status:
  removedInRelease: "1.32"
  requestCount: 2
  last24h:
` + hours.String()
}

// An administrator used a removed API once, five hours ago, and states when the use ended. The
// counts contain the request for 24 hours; requests in the hour of the stated time count.
func TestAPIsThatAreNoLongerUsed(t *testing.T) {
	e := newEnvironment(t, &byDefault)
	e.state.Available = map[string]string{"4.19.1": examplePullSpec("2")}
	e.apply()
	now := time.Now().UTC()
	used := now.Add(-5 * time.Hour).Truncate(time.Hour)
	e.create(hourlyRequestCount(used, now, "alice"))
	const name = "RemovedAPI-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"
	next := used.Add(24 * time.Hour).Format("2006-01-02 15:04 MST")
	e.evaluate(exit.Blocked, "4.19.1").
		expectCauses(causes{blocking: []string{name}}).
		expectFinding(name, preflight.Fail, "RemovedAPIInUse", "without further use this passes from "+next, "alice")
	e.evaluate(exit.Blocked, "4.19.1", "--since", used.Add(59*time.Minute).Format(time.RFC3339)).
		expectFinding(name, preflight.Fail, "RemovedAPIInUse", "request counts are hourly")
	e.evaluate(exit.Ready, "4.19.1", "--since", used.Add(time.Hour).Format(time.RFC3339)).
		expectFinding(name, preflight.Warn, "RemovedAPIFixStated", "before the given time of the fix")
	for since, want := range map[string]string{
		"soon": `--since: "soon" is neither a time`, now.Add(time.Hour).Format(time.RFC3339): "is after the cluster's time",
	} {
		if got := e.call(exit.BadInput, "targets", "--since", since); !strings.Contains(got.Stderr, want) {
			t.Errorf("--since %s: %s", since, got.Stderr)
		}
	}
}

// installedOperator returns an operator of OLM that supports OpenShift up to a minor version.
func installedOperator(name, newest string) string {
	return strings.NewReplacer("NAME", name, "MAX", newest).Replace(`
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: NAME
  namespace: billing
  annotations: {operatorframework.io/properties: '{"properties":[{"type":"olm.maxOpenShiftVersion","value":"MAX"}]}'}
spec: {displayName: An operator, install: {strategy: deployment}}
`)
}

// An operator that supports only the present minor version blocks minor updates
// (eus-upgrades-mvp: "equal to the current cluster version").
func TestIncompatibleOperators(t *testing.T) {
	e := newEnvironment(t, &techPreview)
	e.state.Available = map[string]string{"4.18.16": examplePullSpec("1"), "4.19.1": examplePullSpec("2")}
	e.apply()
	for version, name := range map[string]string{"4.18": "lags.v1", "4.19": "follows.v1"} {
		e.create(installedOperator(name, version))
	}
	e.evaluate(exit.Blocked, "4.19.1").
		expectCauses(causes{blocking: []string{"IncompatibleOperator-billing.lags.v1"}}).
		expectFinding("IncompatibleOperator-billing.lags.v1", preflight.Fail, "IncompatibleOperatorsInstalled", "supports OpenShift up to 4.18",
			"oc -n billing get")
	e.evaluate(exit.Ready, "4.18.16").expectCauses(causes{})
}
