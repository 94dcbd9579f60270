package narrative_test

import (
	"bufio"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The gate of the enhancement upgrades-blocking-on-ack.
const (
	removals     = "ack-4.8-kube-122-api-removals-in-4.9"
	removalsText = "Detailed description of what admin needs to do... Read documentation here https://docs.example.com/removals\n"
	removalsGate = "AdminAck-" + removals
)

// at48 is a cluster at 4.8 that asks for an acknowledgement, and has this one.
func at48(t *testing.T, acks map[string]string) *scene {
	t.Helper()
	s := on(t, &byDefault)
	images := s.publish("4.8.58", "4.9.59")
	s.state.Version, s.state.Channel, s.state.Available, s.state.Acks = "4.8.57", "stable-4.9", images, acks
	s.state.Gates = map[string]string{removals: removalsText}
	s.change(node("control-plane-0", "master", "v1.21.14"))
	s.change(node("worker-0", "worker", "v1.21.14"))
	s.apply()
	return s
}

func TestAnAckIsWanted(t *testing.T) {
	t.Parallel()
	s := at48(t, map[string]string{})
	s.run(blocked, "--to", "4.9.59").
		because(names{blocking: []string{removalsGate}}).
		cvoRefuses("PreconditionChecks", removalsGate).
		finds(removalsGate, preflight.Fail, "AdminAckRequired", strings.TrimSpace(removalsText), "oc preflight ack "+removals, "https://docs.example.com/removals")
	s.run(ready, "--to", "4.8.58").because(names{}).finds("AdminAck", preflight.Skipped, "NotConcerned")
	// It cannot be accepted as a risk, but it can be forced.
	s.explain(blocked, "4.9.59", "--accept", removalsGate).finds("AcceptanceWithoutEffect", preflight.Warn, "NotAcceptable", removalsGate)
	if forced := s.run(ready, "--to", "4.9.59", "--force"); !forced.verdict.Forced {
		t.Error("the verdict does not say that it is forced")
	}

	// The condition Upgradeable names the gate until CVO has evaluated the acknowledgement.
	s.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: "AdminAckRequired", Message: strings.TrimSpace(removalsText),
	}}
	s.apply()
	acknowledging := s.command("ack", removals)
	progress, err := acknowledging.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := acknowledging.Start(); err != nil {
		t.Fatal(err)
	}
	waited := false
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if strings.Contains(lines.Text(), "for the cluster-version operator to evaluate it") {
			waited = true
			s.state.Conditions, s.state.Acks = nil, map[string]string{removals: "true"}
			s.apply()
		}
	}
	if err := acknowledging.Wait(); err != nil || !waited {
		t.Errorf("ack: waited %t, %v", waited, err)
	}
	s.run(ready, "--to", "4.9.59").because(names{}).finds(removalsGate, preflight.Fail, "Acknowledged")
	for _, f := range s.explain(ready, "4.9.59").findings {
		if f.Name == removalsGate && (f.Bypass == nil || f.Bypass.By != "AdminAck") {
			t.Errorf("the gate is not marked as acknowledged: %+v", f)
		}
	}
}

func TestOnlyTrueIsAnAck(t *testing.T) {
	t.Parallel()
	s := at48(t, map[string]string{})
	for value, reason := range map[string]string{
		"True": "it is compared to the letter", "true ": "and to the last space", "yes": "", "false": "", "": "an empty value is a value",
	} {
		s.state.Acks = map[string]string{removals: value}
		s.apply()
		s.explain(blocked, "4.9.59").
			because(names{blocking: []string{removalsGate}}).
			finds(removalsGate, preflight.Fail, "AdminAckWrongValue", `the value "`+value+`", and only "true" counts`, "oc preflight ack "+removals)
		s.explain(ready, "4.8.58").because(names{})
		if t.Failed() {
			t.Fatalf("the ack %q %s", value, reason)
		}
	}
	s.call(ready, "ack", removals)
	s.explain(ready, "4.9.59").because(names{})
}

func TestAcksThatNoGateAsksFor(t *testing.T) {
	t.Parallel()
	s := at48(t, map[string]string{"ack-4.8-kube-122-api-removal": "true", "ack-4.7-kube-121": "true"})
	s.explain(blocked, "4.9.59").
		finds("AdminAckUnused", preflight.Warn, "UnknownAck", `"ack-4.8-kube-122-api-removal", but no gate has that name`)
	got := s.call(badInput, "ack", "ack-4.8-kube-122-api-removal")
	if !strings.Contains(got.stderr, removals) {
		t.Errorf("it does not say which gates there are: %s", got.stderr)
	}
}

func TestConfigMapsOfAcksAreMissing(t *testing.T) {
	t.Parallel()
	s := at48(t, map[string]string{removals: "true"})
	s.explain(ready, "4.9.59").because(names{})
	maps := kubernetes.NewForConfigOrDie(s.config).CoreV1()
	remove := func(namespace, name string) {
		if err := maps.ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove("openshift-config", "admin-acks")
	s.explain(blocked, "4.9.59").
		because(names{blocking: []string{"AdminAckUnknown"}}).
		finds("AdminAckUnknown", preflight.Fail, "AdminAcksMissing", "openshift-config/admin-acks does not exist", "oc -n openshift-config create configmap admin-acks")
	s.explain(ready, "4.8.58").because(names{})
	remove("openshift-config-managed", "admin-gates")
	s.explain(blocked, "4.9.59").
		because(names{blocking: []string{"AdminAckUnknown"}}).
		finds("AdminAckUnknown", preflight.Fail, "AdminGatesMissing", "openshift-config-managed/admin-gates does not exist", "CVO creates the ConfigMap")

	// The enhancement has them where CVO itself runs.
	for name, data := range map[string]map[string]string{"admin-gates": {removals: removalsText}, "admin-acks": {removals: "True"}} {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-cluster-version", Name: name}, Data: data}
		if _, err := maps.ConfigMaps(configMap.Namespace).Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		defer remove(configMap.Namespace, name)
	}
	s.explain(blocked, "4.9.59").
		because(names{blocking: []string{removalsGate}}).
		finds(removalsGate, preflight.Fail, "AdminAckWrongValue", `"True"`)
	s.call(ready, "ack", removals)
	s.explain(ready, "4.9.59").because(names{})
}

// Gates that cannot be opened by an ack say so, each in its own words.
func TestGatesThatAreWrong(t *testing.T) {
	t.Parallel()
	s := at48(t, map[string]string{"ack-4.8-empty": "true", "ack-4.x-typo": "true"})
	s.state.Gates = map[string]string{"ack-4.8-empty": "", "ack-4.x-typo": "Do.", "ack-4.9-later": "Do that then."}
	s.apply()
	s.explain(blocked, "4.9.59").
		because(names{blocking: []string{"AdminAck-ack-4.8-empty", "AdminAck-ack-4.x-typo"}}).
		finds("AdminAck-ack-4.8-empty", preflight.Fail, "EmptyGate", "has no description").
		finds("AdminAck-ack-4.x-typo", preflight.Fail, "InvalidGateName", "invalid name").
		lacks("AdminAck-ack-4.9-later")
}
