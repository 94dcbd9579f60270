package gate_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// closed are objects that close every gate before an update to these minor versions,
// each of which removes an API.
func closed(t *testing.T, minors ...string) []runtime.Object {
	t.Helper()
	objects := []runtime.Object{
		checktest.Infrastructure(configv1.HighlyAvailableTopologyMode),
		conditions(pool("worker"), machineconfigurationv1.MachineConfigPoolDegraded),
		node("w", "v1.10.0", "worker"),
		operator("dns"),
		csv("etcd.v1.2.3", supports("4.5")),
	}
	for _, minor := range minors {
		kubernetes, known := update.Kubernetes(semver.MustParse(minor + ".0"))
		if !known {
			t.Fatalf("the Kubernetes of %s is unknown", minor)
		}
		objects = append(objects, usage(fmt.Sprintf("lost%d.v1.example.com", kubernetes), fmt.Sprintf("1.%d", kubernetes)))
	}
	return objects
}

// usage is the count of an API that a release removes, with one request in this hour.
func usage(name, removed string) *apiserverv1.APIRequestCount {
	user := apiserverv1.PerUserAPIRequestCount{
		UserName: "user", UserAgent: "agent", RequestCount: 1, ByVerb: []apiserverv1.PerVerbAPIRequestCount{{Verb: "list", RequestCount: 1}},
	}
	node := apiserverv1.PerNodeAPIRequestLog{NodeName: "master-0", RequestCount: 1, ByUser: []apiserverv1.PerUserAPIRequestCount{user}}
	return &apiserverv1.APIRequestCount{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: apiserverv1.APIRequestCountSpec{NumberOfUsersToReport: 10},
		Status: apiserverv1.APIRequestCountStatus{
			RemovedInRelease: removed, RequestCount: 1,
			CurrentHour: apiserverv1.PerResourceAPIRequestLog{RequestCount: 1, ByNode: []apiserverv1.PerNodeAPIRequestLog{node}},
		},
	}
}

// constructor makes a check.
type constructor func() check.Check

// operator is a ClusterOperator with Upgradeable=False.
func operator(name string) *configv1.ClusterOperator {
	condition := configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "NotReady", Message: "not ready",
		LastTransitionTime: metav1.Now(),
	}
	return &configv1.ClusterOperator{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{condition}},
	}
}

// adminGates are the ConfigMaps with a gate for each of the minor versions, none of which is
// acknowledged.
func adminGates(minors ...string) []runtime.Object {
	gates := map[string]string{}
	for _, minor := range minors {
		gates["ack-"+minor+"-x"] = "Do this."
	}
	return []runtime.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"}, Data: gates},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "admin-acks"}},
	}
}

// worst is the worst outcome of a check.
func worst(findings []finding.Finding) preflight.Outcome {
	order := []preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Pass, preflight.Skipped}
	for _, outcome := range order {
		for _, f := range findings {
			if f.Outcome == outcome {
				return outcome
			}
		}
	}
	return ""
}

// TestUpdateInProgress compares, for each release of CVO with other rules, the
// outcomes of the gates before an update that another may precede. Every gate is
// closed.
func TestUpdateInProgress(t *testing.T) {
	const fail, unknown, warn, skipped = preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Skipped
	type results = map[string]preflight.Outcome
	checks := map[string]constructor{
		"AdminAck": adminack.Check, "MachineConfigPool": gate.MachineConfigPools, "IncompatibleOperator": gate.IncompatibleOperators,
		"KubeletSkew": gate.KubeletSkew, "RemovedAPI": func() check.Check { return removedapi.Check(removedapi.FixTime{}) },
		"ClusterOperators": clusterversion.ClusterOperators,
		"Deletion":         clusterversion.Deletion, "Upgradeable": clusterversion.Upgradeable, "Updating": clusterversion.Updating,
	}
	// by has the outcome of the gates that CVO applies by Upgradeable, those that warn
	// of a retarget, and the others.
	by := func(upgradeable, warns, removed, updating preflight.Outcome) results {
		return results{
			"AdminAck": warns, "MachineConfigPool": warns, "IncompatibleOperator": warns, "KubeletSkew": warns, "RemovedAPI": removed,
			"ClusterOperators": upgradeable, "Deletion": upgradeable, "Upgradeable": upgradeable, "Updating": updating,
		}
	}
	leavingMinor := by(fail, fail, fail, fail)
	retarget := by(skipped, warn, warn, warn)
	server.Define(t, operatorsCRD)
	for _, minors := range []struct {
		cvo               string
		before, at, after string
		retarget          results
		acking            string // the minor version whose gates CVO judges in an update
	}{
		{cvo: "up to 4.16", before: "4.15", at: "4.16", after: "4.17", retarget: by(fail, fail, warn, warn), acking: "4.15"},
		{cvo: "4.17", before: "4.16", at: "4.17", after: "4.18", retarget: by(unknown, unknown, warn, warn), acking: "4.16"},
		{cvo: "4.18", before: "4.17", at: "4.18", after: "4.19", retarget: retarget, acking: "4.17"},
		{cvo: "4.22", before: "4.21", at: "4.22", after: "4.23", retarget: retarget, acking: "4.21"},
		{cvo: "from 4.23 on", before: "4.22", at: "4.23", after: "5.1", retarget: retarget, acking: "4.23"},
		{cvo: "5.0", before: "4.22", at: "5.0", after: "5.1", retarget: retarget, acking: "5.0"},
	} {
		a, b, c := minors.before, minors.at, minors.after
		for name, tc := range map[string]struct {
			reason  string
			cluster *configv1.ClusterVersion
			from    string // the last completed release
			to      string
			want    results
			acking  string // the minor version whose gate AdminAck names
		}{
			"Ready": {
				reason: "no update is in progress, the next minor version is gated", cluster: checktest.At(a + ".5"), from: a + ".5",
				to: b + ".3", want: by(fail, fail, fail, preflight.Pass), acking: a,
			},
			"Patch": {
				reason: "no update is in progress, a patch update is not gated", cluster: checktest.At(a + ".5"), from: a + ".5",
				to: a + ".9", want: by(skipped, skipped, skipped, preflight.Pass),
			},
			"Stuck": {
				reason: "another release of the minor version in progress is a retarget", cluster: checktest.Toward(a+".5", b+".1"),
				from: a + ".5", to: b + ".3", want: minors.retarget, acking: minors.acking,
			},
			"StuckNext": {
				reason: "the minor version after that in progress is gated", cluster: checktest.Toward(a+".5", b+".1"),
				from: a + ".5", to: c + ".1", want: leavingMinor, acking: minors.acking,
			},
			"Retargeted": {
				reason: "an update that was retargeted can be retargeted again", cluster: checktest.Toward(a+".5", b+".1", b+".3"),
				from: a + ".5", to: b + ".4", want: minors.retarget, acking: minors.acking,
			},
			"RetargetedNext": {
				reason: "the minor version after that in progress is gated", cluster: checktest.Toward(a+".5", b+".1", b+".3"),
				from: a + ".5", to: c + ".1", want: leavingMinor, acking: minors.acking,
			},
			"Completed": {
				reason: "a patch update is not gated while workers are behind", cluster: checktest.At(b+".1", a+".5"), from: b + ".1",
				to: b + ".3", want: by(skipped, skipped, skipped, preflight.Pass),
			},
			"CompletedNext": {
				reason: "the next minor version is gated while workers are behind", cluster: checktest.At(b+".1", a+".5"),
				from: b + ".1", to: c + ".1", want: by(fail, fail, fail, preflight.Pass), acking: b,
			},
		} {
			t.Run(minors.cvo+"/"+name, func(t *testing.T) {
				cluster := checktest.With(tc.cluster, configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons",
					"Cluster minor or major version upgrades are not allowed while resource deletions are in progress; resources=job \"c/d\"")
				server.Create(t, append(closed(t, b, c), cluster)...)
				server.Create(t, adminGates(a, b)...)
				view := server.Snapshot(t)
				got := results{}
				for name, make := range checks {
					findings := checktest.Run(t, make(), view, checktest.Update(t, tc.from, tc.to))
					got[name] = worst(findings)
					for _, f := range findings {
						if f.Outcome == warn && name != "Updating" && f.Reason != "APIRemovalAhead" {
							checktest.Contains(t, tc.reason, f.Message,
								[]string{"does not block retargeting the update in progress to " + tc.to + ", but blocks updates that leave " + b})
						}
					}
					if key := "AdminAck-ack-" + tc.acking + "-x"; name == "AdminAck" && tc.acking != "" {
						if _, ok := checktest.Results(findings)[key]; !ok || len(findings) != 1 {
							t.Errorf("%s: the gates are %v, want %s", tc.reason, checktest.Results(findings), key)
						}
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (%s to %s): -want +got:\n%s", tc.reason, tc.from, tc.to, diff)
				}
			})
		}
	}
}

// Without the ClusterVersion it is unknown whether the update is a retarget.
func TestUpdateInProgressUnread(t *testing.T) {
	forbidden := func(*http.Request) (int, []byte) {
		return http.StatusForbidden, []byte(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	}
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode), conditions(pool("worker")))
	server.Create(t, adminGates("4.18")...)
	view := server.Responding(map[string]checktest.Response{"/apis/config.openshift.io/v1/clusterversions/version": forbidden}).Snapshot(t)
	unread := checktest.Result{Outcome: preflight.Unknown, Reason: "Forbidden"}
	for name, tc := range map[string]struct {
		reason string
		check  constructor
		want   map[string]checktest.Result
	}{
		"Open": {
			reason: "an open gate does not pass", check: gate.MachineConfigPools,
			want: map[string]checktest.Result{"MachineConfigPool": unread},
		},
		"Closed": {
			reason: "a closed gate blocks", check: adminack.Check,
			want: map[string]checktest.Result{"AdminAck": unread, "AdminAck-ack-4.18-x": {Outcome: preflight.Fail, Reason: "AdminAckRequired"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Results(checktest.Run(t, tc.check(), view, checktest.MinorUpdate(t, "", "")))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
