package runner_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
)

// file is an acceptance file with these entries.
func file(t *testing.T, entries string) []acceptance.Acceptance {
	t.Helper()
	accepted, err := acceptance.Read("accept.yaml",
		strings.NewReader("apiVersion: preflight.openshift.io/v1alpha1\nkind: AcceptedRisks\nrisks:\n"+entries))
	if err != nil {
		t.Fatal(err)
	}
	return accepted
}

func TestAcceptancesOfAFile(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.options.Judgement.Accept = nil
	w.options.Judgement.Accepted = file(t, `
- {risk: Etcd.Quorum, reason: no jobs here, owner: ann, expires: 2099-01-01, versions: 4.19.x}
- {risk: RiskA, reason: old, owner: bob, expires: 2020-01-01}
- {risk: RiskB, reason: elsewhere, owner: bob, versions: 4.20.x}
- {risk: RiskC, reason: nothing, owner: bob}
`)
	decided := w.run(t)
	if decided.Verdict.Decision != verdict.Ready {
		t.Errorf("decision %s, want Ready: %+v", decided.Verdict.Decision, decided.Verdict)
	}
	if got, want := find(t, decided, check).Bypass, "accept.yaml, entry 1; no jobs here; accepted by ann; until 2099-01-01"; got == nil ||
		got.Detail != want {
		t.Errorf("bypass %+v, want %q", got, want)
	}
	for name, want := range map[string]string{
		"AcceptanceExpired": "RiskA (accept.yaml, entry 2) of bob",
		"AcceptanceUnused":  ": RiskC (accept.yaml, entry 4)",
	} {
		if f := find(t, decided, name); f.Outcome != preflight.Warn || !strings.Contains(f.Message, want) {
			t.Errorf("%s: %+v, want a warning with %q", name, f, want)
		}
	}
}

func TestAcceptancesOfClusterVersion(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.state.Desired = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: check}}}
	w.apply(t)
	w.options.Judgement.Accept = nil
	if decided := w.run(t); decided.Verdict.Decision != verdict.Ready || find(t, decided, check).Bypass.Detail != acceptance.Origin {
		t.Errorf("%+v, bypass %+v; want it accepted by ClusterVersion", decided.Verdict, find(t, decided, check).Bypass)
	}
}

func TestAcceptingAGateHasNoEffect(t *testing.T) {
	w := newWorld(t, map[string]string{"ack-4.18-x": "Read https://example.com/x first."})
	w.options.Judgement.Accept = append(w.options.Judgement.Accept, accepting("AdminAck-ack-4.18-x")...)
	decided := w.run(t)
	f := find(t, decided, "AcceptanceWithoutEffect")
	if decided.Verdict.Decision != verdict.Blocked || !strings.Contains(f.Message, "AdminAck-ack-4.18-x (--accept)") ||
		!strings.Contains(f.Message, "enforces whatever risks are accepted") {
		t.Errorf("decision %s, %+v; want Blocked and a warning", decided.Verdict.Decision, f)
	}
	for _, f := range decided.Findings {
		if f.Name == "AcceptanceUnused" {
			t.Errorf("it is reported twice: %+v", f)
		}
	}
}

func TestAcceptancesOfUnreadChecksAreNotReported(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.target = runner.Target{Image: digested("7")} // no such release, and no signature
	w.options.Judgement.Accept = accepting(check, "RiskA")
	f := find(t, w.run(t), "AcceptanceUnused")
	if strings.Contains(f.Message, check) || !strings.Contains(f.Message, "RiskA") {
		t.Errorf("%q; the checks of a release that is not read are unknown", f.Message)
	}
}

func TestNamesThatCannotBeAccepted(t *testing.T) {
	for _, name := range []string{"", "risk", "Risk_A", "-"} {
		w := world{
			cluster: connect(t, config), target: runner.Target{Version: next},
			options: runner.Options{Judgement: scene.Judgement{Accept: accepting(name)}},
		}
		if _, err := runner.Run(t.Context(), w.cluster, w.target, w.options); err == nil || !strings.Contains(err.Error(), "illegal risk") {
			t.Errorf("%q: error %v, want an illegal risk", name, err)
		}
	}
}

func TestAdminGatesOfTheTargetAreReported(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.gates = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-gates, namespace: openshift-config-managed}\ndata:\n  " +
		"ack-4.19-y: Do this before you leave 4.19.\n"
	w.target = runner.Target{Image: w.push(t, next)}
	w.options.Judgement.Force = true // it is not signed
	f := find(t, w.run(t), "AdminAckAhead")
	if f.Outcome != preflight.Warn || f.Blocks || !strings.Contains(f.Message, "to leave 4.19, ack-4.19-y: Do this before you leave 4.19.") {
		t.Errorf("%+v, want a warning with the gate and its description", f)
	}
}

func TestAcceptanceByCVO(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		change  func(*world)
		accepts bool
		want    string
	}{
		"Accepts": {
			reason: "the release is available and signed, and nothing blocks", change: func(*world) {}, accepts: true,
			want: "PayloadLoaded",
		},
		"Unsigned": {
			reason: "CVO verifies the signature, too", change: func(w *world) { w.target = runner.Target{Image: digested("7")} },
			want: "RetrievePayload",
		},
		"Gate": {
			reason: "the condition of CVO does not report the gate yet",
			want:   "PreconditionChecks: CVO rejects such an update because of AdminAck-ack-4.18-x",
			change: func(w *world) { w.state.Gates = map[string]string{"ack-4.18-x": "Do."} },
		},
		"Upgradeable": {
			reason: "the condition of CVO is False", want: "PreconditionChecks: Preconditions failed",
			change: func(w *world) {
				w.state.Conditions = []configv1.ClusterOperatorStatusCondition{{
					Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse,
					Reason: "Because", Message: "no",
				}}
			},
		},
		"Forced": {
			reason: "force bypasses the gate", accepts: true, want: "PayloadLoaded",
			change: func(w *world) {
				w.state.Gates, w.options.Judgement.Force = map[string]string{"ack-4.18-x": "Do."}, true
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			tc.change(&w)
			w.apply(t)
			decided := w.run(t).CVO
			if decided.Accepts == nil || *decided.Accepts != tc.accepts || !strings.HasPrefix(decided.Reason+": "+decided.Message, tc.want) {
				t.Errorf("%s: %s: %s (%v), want %q", tc.reason, decided.Reason, decided.Message, decided.Accepts, tc.want)
			}
		})
	}
}
