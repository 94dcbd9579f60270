package adminack_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The ConfigMaps, as namespace/name.
const (
	gates    = "openshift-config-managed/admin-gates"
	acks     = "openshift-config/admin-acks"
	oldGates = "openshift-cluster-version/admin-gates"
	oldAcks  = "openshift-cluster-version/admin-acks"
)

// ackResult has the fields of a finding that the tables compare.
type ackResult struct {
	Outcome preflight.Outcome
	Reason  string
	Blocks  bool
	Acked   bool
}

var required = ackResult{Outcome: preflight.Fail, Reason: "AdminAckRequired", Blocks: true}

func TestAdminAck(t *testing.T) {
	const key = "ack-4.18-api-removals-in-4.19"
	text := map[string]string{key: "Remove the old APIs, see https://example.com/kb/1.\n"}
	for name, tc := range map[string]struct {
		reason string
		from   string
		to     string
		maps   map[string]map[string]string
		want   map[string]ackResult
	}{
		"NotAcknowledged": {
			reason: "a gate without an acknowledgement blocks",
			maps:   map[string]map[string]string{gates: text, acks: {}},
			want:   map[string]ackResult{"AdminAck-" + key: required},
		},
		"Acknowledged": {
			reason: "exactly \"true\" acknowledges a gate; the finding is kept, and bypassed",
			maps:   map[string]map[string]string{gates: text, acks: {key: "true"}},
			want:   map[string]ackResult{"AdminAck-" + key: {preflight.Fail, "Acknowledged", true, true}},
		},
		"True": {
			reason: "CVO compares the value exactly, so True does not count",
			maps:   map[string]map[string]string{gates: text, acks: {key: "True"}},
			want:   map[string]ackResult{"AdminAck-" + key: {preflight.Fail, "AdminAckWrongValue", true, false}},
		},
		"TrailingSpace": {
			reason: "a value with a trailing space does not count",
			maps:   map[string]map[string]string{gates: text, acks: {key: "true "}},
			want:   map[string]ackResult{"AdminAck-" + key: {preflight.Fail, "AdminAckWrongValue", true, false}},
		},
		"OtherWord": {
			reason: "a value that YAML reads as true does not count",
			maps:   map[string]map[string]string{gates: text, acks: {key: "yes"}},
			want:   map[string]ackResult{"AdminAck-" + key: {preflight.Fail, "AdminAckWrongValue", true, false}},
		},
		"False": {
			reason: "the value false is no acknowledgement",
			maps:   map[string]map[string]string{gates: text, acks: {key: "false"}},
			want:   map[string]ackResult{"AdminAck-" + key: {preflight.Fail, "AdminAckWrongValue", true, false}},
		},
		"OtherVersion": {
			reason: "a gate of another minor version does not apply",
			maps:   map[string]map[string]string{gates: {"ack-4.17-x": "old"}, acks: {}},
			want:   map[string]ackResult{"AdminAck": {Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}},
		},
		"SimilarVersion": {
			reason: "4.1 is not a prefix of 4.18",
			maps:   map[string]map[string]string{gates: {"ack-4.1-x": "old", "ack-4.180-x": "far"}, acks: {}},
			want:   map[string]ackResult{"AdminAck": {Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}},
		},
		"InvalidName": {
			reason: "a gate with an invalid name blocks every minor version, acknowledged or not",
			maps:   map[string]map[string]string{gates: {"ack-4.x-foo": "text"}, acks: {"ack-4.x-foo": "true"}},
			want:   map[string]ackResult{"AdminAck-ack-4.x-foo": {preflight.Fail, "InvalidGateName", true, false}},
		},
		"LeadingZero": {
			reason: "4.08 is not a version",
			maps:   map[string]map[string]string{gates: {"ack-4.08-x": "text"}, acks: {}},
			want:   map[string]ackResult{"AdminAck-ack-4.08-x": {preflight.Fail, "InvalidGateName", true, false}},
		},
		"EmptyText": {
			reason: "a gate without a description cannot be acknowledged",
			maps:   map[string]map[string]string{gates: {key: ""}, acks: {key: "true"}},
			want:   map[string]ackResult{"AdminAck-" + key: {preflight.Fail, "EmptyGate", true, false}},
		},
		"GatesMissing": {
			reason: "without admin-gates the gates are unknown, and CVO blocks",
			maps:   map[string]map[string]string{acks: {}},
			want:   map[string]ackResult{"AdminAckUnknown": {preflight.Fail, "AdminGatesMissing", true, false}},
		},
		"BeforeGates": {
			reason: "the CVO of 4.8.2 has no admin gates, and lets the update pass", from: "4.8.2", to: "4.9.0",
			want: map[string]ackResult{"AdminAck": {Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}},
		},
		"FirstWithGates": {
			reason: "4.8.14 is the first release with admin gates", from: "4.8.14", to: "4.9.0",
			want: map[string]ackResult{"AdminAckUnknown": {preflight.Fail, "AdminGatesMissing", true, false}},
		},
		"AcksMissing": {
			reason: "without admin-acks CVO blocks even where no gate is defined",
			maps:   map[string]map[string]string{gates: {}},
			want:   map[string]ackResult{"AdminAckUnknown": {preflight.Fail, "AdminAcksMissing", true, false}},
		},
		"UnknownAck": {
			reason: "an acknowledgement for this version without a gate is most likely misspelled",
			maps:   map[string]map[string]string{gates: text, acks: {"ack-4.18-api-removal-in-4.19": "true"}},
			want: map[string]ackResult{
				"AdminAck-" + key: required,
				"AdminAckUnused":  {Outcome: preflight.Warn, Reason: "UnknownAck"},
			},
		},
		"OldAck": {
			reason: "an acknowledgement for an earlier version is ignored",
			maps:   map[string]map[string]string{gates: {}, acks: {"ack-4.17-x": "true"}},
			want:   map[string]ackResult{"AdminAck": {Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}},
		},
		"FormerLocation": {
			reason: "gates in openshift-cluster-version count too",
			maps:   map[string]map[string]string{oldGates: text, oldAcks: {}},
			want:   map[string]ackResult{"AdminAck-" + key: required},
		},
		"AckInOtherLocation": {
			reason: "an acknowledgement counts only for the gates of its own location",
			maps:   map[string]map[string]string{oldGates: text, oldAcks: {}, gates: {}, acks: {key: "true"}},
			want: map[string]ackResult{
				"AdminAck-" + key: required,
				"AdminAckUnused":  {Outcome: preflight.Warn, Reason: "UnknownAck"},
			},
		},
		"Patch": {
			reason: "patch updates require no acknowledgement",
			to:     "4.18.9",
			maps:   map[string]map[string]string{gates: text, acks: {}},
			want:   map[string]ackResult{"AdminAck": {Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		},
		"Major": {
			reason: "an update from 4.23 to 5.0 leaves the minor version",
			from:   "4.23.1", to: "5.0.0",
			maps: map[string]map[string]string{gates: {"ack-4.23-x": "text"}, acks: {}},
			want: map[string]ackResult{"AdminAck-ack-4.23-x": required},
		},
	} {
		t.Run(name, func(t *testing.T) {
			createMaps(t, tc.maps)
			findings := checktest.Run(t, adminack.Check(), server.Snapshot(t), checktest.MinorUpdate(t, tc.from, tc.to))
			got := map[string]ackResult{}
			for _, f := range findings {
				got[f.Name] = ackResult{f.Outcome, f.Reason, f.Blocks, f.Bypass != nil}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdminAckRemedy(t *testing.T) {
	const key = "ack-4.18-x"
	createMaps(t, map[string]map[string]string{gates: {key: "Do this: https://example.com/kb then that."}, acks: {}})
	findings := checktest.Run(t, adminack.Check(), server.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	if len(findings) != 1 {
		t.Fatalf("findings %+v, want one", findings)
	}
	got := findings[0]
	if got.URL != "https://example.com/kb" {
		t.Errorf("URL %q, want the first URL in the text of the gate", got.URL)
	}
	checktest.Contains(t, "remedy", checktest.Remedies(findings), []string{
		"Acknowledge " + key, `Run oc -n openshift-config patch configmap admin-acks --type merge --patch '{"data":{"ack-4.18-x":"true"}}'`,
	})
	if diff := cmp.Diff([]string{"4.19.0"}, got.BlockedTargets); diff != "" {
		t.Errorf("blocked targets: -want +got:\n%s", diff)
	}
}

func TestAdminAckForbidden(t *testing.T) {
	createMaps(t, map[string]map[string]string{gates: {}, acks: {}})
	findings := checktest.Run(t, adminack.Check(), server.Unprivileged().Snapshot(t), checktest.MinorUpdate(t, "", ""))
	want := map[string]checktest.Result{"AdminAck": {Outcome: preflight.Unknown, Reason: "Forbidden"}}
	if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
		t.Errorf("without permission to read: -want +got:\n%s", diff)
	}
	if message := findings[0].Message; !strings.Contains(message, gates) {
		t.Errorf("the message %q does not name %s", message, gates)
	}
}

func TestAcknowledge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		maps   map[string]map[string]string
		gate   string
		where  string
		bad    string // a part of the error
	}{
		"Key": {
			reason: "a gate is named by its key",
			maps:   map[string]map[string]string{gates: {"ack-4.18-x": "t"}, acks: {"other": "true"}}, gate: "ack-4.18-x", where: acks,
		},
		"RiskName": {
			reason: "a gate is named by the name of its finding",
			maps:   map[string]map[string]string{gates: {"ack-4.18-x": "t"}, acks: {}}, gate: "AdminAck-ack-4.18-x", where: acks,
		},
		"Missing": {
			reason: "a missing admin-acks is created", maps: map[string]map[string]string{gates: {"ack-4.18-x": "t"}},
			gate: "ack-4.18-x", where: acks,
		},
		"Former": {
			reason: "the acknowledgement is stored in the location of the gate",
			maps:   map[string]map[string]string{oldGates: {"ack-4.18-x": "t"}}, gate: "ack-4.18-x", where: oldAcks,
		},
		"Unknown": {
			reason: "the error lists the defined gates", maps: map[string]map[string]string{gates: {"ack-4.18-x": "t"}, acks: {}},
			gate: "ack-4.18-y", bad: "ack-4.18-x",
		},
		"None": {reason: "the error reports that no gate is defined", maps: nil, gate: "ack-4.18-y", bad: "no admin gates"},
	} {
		t.Run(name, func(t *testing.T) {
			client := createMaps(t, tc.maps)
			acknowledged, err := adminack.Acknowledge(t.Context(), client.CoreV1(), tc.gate)
			if tc.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tc.bad) {
					t.Errorf("%s: error %v, want %q in it", tc.reason, err, tc.bad)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if acknowledged.ConfigMap != tc.where || acknowledged.Gate != "ack-4.18-x" {
				t.Errorf("%s: acknowledged %q in %q, want ack-4.18-x in %q", tc.reason, acknowledged.Gate, acknowledged.ConfigMap, tc.where)
			}
			namespace, configMap, _ := strings.Cut(tc.where, "/")
			stored, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), configMap, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if stored.Data["ack-4.18-x"] != "true" {
				t.Errorf("%s: the server stored %v", tc.reason, stored.Data)
			}
			if tc.maps[acks]["other"] != stored.Data["other"] {
				t.Errorf("%s: another acknowledgement was lost: %v", tc.reason, stored.Data)
			}
		})
	}
}

// createMaps creates exactly these ConfigMaps, until the test ends.
func createMaps(t *testing.T, maps map[string]map[string]string) kubernetes.Interface {
	t.Helper()
	for _, path := range []string{gates, acks, oldGates, oldAcks} {
		namespace, name, _ := strings.Cut(path, "/")
		if data, ok := maps[path]; ok {
			server.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
		}
	}
	client := kubernetes.NewForConfigOrDie(config)
	t.Cleanup(func() { // an acknowledgement may have created a ConfigMap
		for _, path := range []string{acks, oldAcks} {
			namespace, name, _ := strings.Cut(path, "/")
			err := client.CoreV1().ConfigMaps(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
	return client
}
