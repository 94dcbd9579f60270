package narrative_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// use is what the cluster counted of the requests of one client.
func use(api, removedIn, user string) string {
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

// Removals that are imminent block, those that are further away inform
// (eus-upgrades-mvp). OpenShift 4.19 has Kubernetes 1.32, 4.20 has 1.33.
func TestAPIsThatAreRemoved(t *testing.T) {
	t.Parallel()
	s := on(t, &byDefault)
	s.state.Available = map[string]string{"4.18.16": digested("1"), "4.19.1": digested("2")}
	s.apply()
	s.hold(
		use("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.32", "system:serviceaccount:billing:reader"),
		use("endpointslices.v1beta1.discovery.k8s.io", "1.33", "system:serviceaccount:billing:reader"),
		use("horizontalpodautoscalers.v2beta2.autoscaling", "1.32", "system:serviceaccount:kube-system:generic-garbage-collector"),
	)
	const imminent, far = "RemovedAPI-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "RemovedAPI-endpointslices.v1beta1.discovery.k8s.io"
	s.explain(blocked, "4.19.1").
		because(names{blocking: []string{imminent}}).
		finds(imminent, preflight.Fail, "RemovedAPIInUse", "Kubernetes 1.32", "system:serviceaccount:billing:reader", "billing/v2", "42 requests").
		finds(far, preflight.Warn, "APIRemovalAhead", "4.19 still has it, but OpenShift 4.20 (Kubernetes 1.33) removes it").
		lacks("RemovedAPI-horizontalpodautoscalers.v2beta2.autoscaling")
	s.explain(ready, "4.18.16").because(names{})
}

// usedAt is what two API servers counted in a day: no request but those of one client in
// one hour. An API server empties the hour after the present one in advance.
func usedAt(used, now time.Time, user string) string {
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

// An administrator used a removed API once, five hours ago, and states when that ended. The
// counts have the request for 24 hours; the hour that contains the stated time is use.
func TestAPIsThatAreNoLongerUsed(t *testing.T) {
	t.Parallel()
	s := on(t, &byDefault)
	s.state.Available = map[string]string{"4.19.1": digested("2")}
	s.apply()
	now := time.Now().UTC()
	used := now.Add(-5 * time.Hour).Truncate(time.Hour)
	s.hold(usedAt(used, now, "alice"))
	const name = "RemovedAPI-flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"
	next := used.Add(24 * time.Hour).Format("2006-01-02 15:04 MST")
	s.explain(blocked, "4.19.1").
		because(names{blocking: []string{name}}).
		finds(name, preflight.Fail, "RemovedAPIInUse", "without further use this passes from "+next, "alice")
	s.explain(blocked, "4.19.1", "--since", used.Add(59*time.Minute).Format(time.RFC3339)).
		finds(name, preflight.Fail, "RemovedAPIInUse", "requests are counted by the hour")
	s.explain(ready, "4.19.1", "--since", used.Add(time.Hour).Format(time.RFC3339)).
		finds(name, preflight.Warn, "RemovedAPIFixStated", "before the stated time of the fix")
	for since, want := range map[string]string{
		"soon": `--since: "soon" is neither a time`, now.Add(time.Hour).Format(time.RFC3339): "is after the cluster's time",
	} {
		if got := s.call(badInput, "targets", "--since", since); !strings.Contains(got.stderr, want) {
			t.Errorf("--since %s: %s", since, got.stderr)
		}
	}
}

// installedOperator is an operator of OLM that supports OpenShift up to that minor version.
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

// An operator that supports no more than the present release keeps the cluster
// from leaving it (eus-upgrades-mvp: "equal to the current cluster version").
func TestOperatorsThatDoNotGoAlong(t *testing.T) {
	t.Parallel()
	s := on(t, &techPreview)
	s.state.Available = map[string]string{"4.18.16": digested("1"), "4.19.1": digested("2")}
	s.apply()
	for version, name := range map[string]string{"4.18": "lags.v1", "4.19": "follows.v1"} {
		s.hold(installedOperator(name, version))
	}
	s.explain(blocked, "4.19.1").
		because(names{blocking: []string{"IncompatibleOperator-billing.lags.v1"}}).
		finds("IncompatibleOperator-billing.lags.v1", preflight.Fail, "IncompatibleOperatorsInstalled", "supports OpenShift up to 4.18", "oc -n billing get")
	s.explain(ready, "4.18.16").because(names{})
}
