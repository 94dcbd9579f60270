package commands_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

// The gate of the enhancement upgrades-blocking-on-ack.
const (
	removals     = "ack-4.8-kube-122-api-removals-in-4.9"
	removalsText = "Detailed description of what admin needs to do... Read documentation here https://docs.example.com/removals\n"
	removalsGate = "AdminAck-" + removals
)

// newAckEnvironment returns a cluster at 4.8 with a gate and these acknowledgements.
func newAckEnvironment(t *testing.T, acks map[string]string) *environment {
	t.Helper()
	e := newEnvironment(t, &byDefault)
	images := e.publish("4.8.58", "4.9.59")
	e.state.Version, e.state.Channel, e.state.Available, e.state.Acks = "4.8.57", "stable-4.9", images, acks
	e.state.Gates = map[string]string{removals: removalsText}
	e.replace(node("control-plane-0", "master", "v1.21.14"))
	e.replace(node("worker-0", "worker", "v1.21.14"))
	e.apply()
	return e
}

func TestAckIsRequired(t *testing.T) {
	e := newAckEnvironment(t, map[string]string{})
	e.run(exit.Blocked, "--to", "4.9.59").
		expectCauses(causes{blocking: []string{removalsGate}}).
		expectCVORejects("PreconditionChecks", removalsGate).
		expectFinding(removalsGate, preflight.Fail, "AdminAckRequired", strings.TrimSpace(removalsText), "oc preflight ack "+removals,
			"https://docs.example.com/removals")
	e.run(exit.Ready, "--to", "4.8.58").expectCauses(causes{}).expectFinding("AdminAck", preflight.Skipped, "NotConcerned")
	// A gate cannot be accepted as a risk, but the update can be forced.
	e.evaluate(exit.Blocked, "4.9.59", "--accept", removalsGate).expectFinding("AcceptanceWithoutEffect", preflight.Warn, "NotAcceptable",
		removalsGate)
	if forced := e.run(exit.Blocked, "--to", "4.9.59", "--force", "--force-reason",
		"the fix of an outage"); forced.verdict.Decision != "Blocked" || forced.verdict.ForceReason != "the fix of an outage" {
		t.Errorf("%+v, want Blocked, as without force, with the reason", forced.verdict)
	}

	// The condition Upgradeable names the gate until CVO has evaluated the acknowledgement.
	e.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "AdminAckRequired", Message: strings.TrimSpace(removalsText),
	}}
	e.apply()
	acknowledging := program.Start(t, "ack", removals)
	acknowledging.AwaitStderr("for the cluster-version operator to evaluate it")
	e.state.Conditions, e.state.Acks = nil, map[string]string{removals: "true"}
	e.apply()
	if got := acknowledging.Wait(); got.Code != exit.Ready {
		t.Errorf("ack: exit code %d\n%s", got.Code, got.Stderr)
	}
	e.run(exit.Ready, "--to", "4.9.59").expectCauses(causes{}).expectFinding(removalsGate, preflight.Fail, "Acknowledged")
	for _, f := range e.evaluate(exit.Ready, "4.9.59").findings {
		if f.Name == removalsGate && (f.Bypass == nil || f.Bypass.By != "AdminAck") {
			t.Errorf("the gate is not marked as acknowledged: %+v", f)
		}
	}
}

func TestOnlyTrueIsAnAck(t *testing.T) {
	e := newAckEnvironment(t, map[string]string{})
	for value, reason := range map[string]string{
		"True": "values are case-sensitive", "": "an empty value does not count",
	} {
		e.state.Acks = map[string]string{removals: value}
		e.apply()
		e.evaluate(exit.Blocked, "4.9.59").
			expectCauses(causes{blocking: []string{removalsGate}}).
			expectFinding(removalsGate, preflight.Fail, "AdminAckWrongValue", `the value "`+value+`", but only "true" counts`,
				"oc preflight ack "+removals)
		if t.Failed() {
			t.Fatalf("the ack %q: %s", value, reason)
		}
	}
	e.call(exit.Ready, "ack", removals)
	e.evaluate(exit.Ready, "4.9.59").expectCauses(causes{})
}

func TestAcksWithoutGate(t *testing.T) {
	e := newAckEnvironment(t, map[string]string{"ack-4.8-kube-122-api-removal": "true", "ack-4.7-kube-121": "true"})
	e.evaluate(exit.Blocked, "4.9.59").
		expectFinding("AdminAckUnused", preflight.Warn, "UnknownAck", `"ack-4.8-kube-122-api-removal", but no gate has that name`)
	got := e.call(exit.BadInput, "ack", "ack-4.8-kube-122-api-removal")
	if !strings.Contains(got.Stderr, removals) {
		t.Errorf("the error does not list the gates: %s", got.Stderr)
	}
}

func TestConfigMapsOfAcksAreMissing(t *testing.T) {
	e := newAckEnvironment(t, map[string]string{removals: "true"})
	e.evaluate(exit.Ready, "4.9.59").expectCauses(causes{})
	maps := kubernetes.NewForConfigOrDie(e.config).CoreV1()
	remove := func(namespace, name string) {
		if err := maps.ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove("openshift-config", "admin-acks")
	e.evaluate(exit.Blocked, "4.9.59").
		expectCauses(causes{blocking: []string{"AdminAckUnknown"}}).
		expectFinding("AdminAckUnknown", preflight.Fail, "AdminAcksMissing", "openshift-config/admin-acks does not exist",
			"oc -n openshift-config create configmap admin-acks")
	e.evaluate(exit.Ready, "4.8.58").expectCauses(causes{})
	remove("openshift-config-managed", "admin-gates")
	e.evaluate(exit.Blocked, "4.9.59").
		expectCauses(causes{blocking: []string{"AdminAckUnknown"}}).
		expectFinding("AdminAckUnknown", preflight.Fail, "AdminGatesMissing", "openshift-config-managed/admin-gates does not exist",
			"CVO creates the ConfigMap")

	// In the enhancement, the ConfigMaps are in the namespace of CVO.
	for name, data := range map[string]map[string]string{"admin-gates": {removals: removalsText}, "admin-acks": {removals: "True"}} {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-cluster-version", Name: name}, Data: data}
		if _, err := maps.ConfigMaps(configMap.Namespace).Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	e.evaluate(exit.Blocked, "4.9.59").
		expectCauses(causes{blocking: []string{removalsGate}}).
		expectFinding(removalsGate, preflight.Fail, "AdminAckWrongValue", `"True"`)
	e.call(exit.Ready, "ack", removals)
	e.evaluate(exit.Ready, "4.9.59").expectCauses(causes{})
}

// An invalid gate cannot be acknowledged, and its finding states why.
func TestInvalidGates(t *testing.T) {
	e := newAckEnvironment(t, map[string]string{"ack-4.8-empty": "true", "ack-4.x-typo": "true"})
	e.state.Gates = map[string]string{"ack-4.8-empty": "", "ack-4.x-typo": "Do.", "ack-4.9-later": "Do that then."}
	e.apply()
	e.evaluate(exit.Blocked, "4.9.59").
		expectCauses(causes{blocking: []string{"AdminAck-ack-4.8-empty", "AdminAck-ack-4.x-typo"}}).
		expectFinding("AdminAck-ack-4.8-empty", preflight.Fail, "EmptyGate", "has no description").
		expectFinding("AdminAck-ack-4.x-typo", preflight.Fail, "InvalidGateName", "invalid name").
		expectNoFinding("AdminAck-ack-4.9-later")
}
