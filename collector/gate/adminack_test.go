package gate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The places of the ConfigMaps, spelled as namespace/name.
const (
	gates    = "openshift-config-managed/admin-gates"
	acks     = "openshift-config/admin-acks"
	oldGates = "openshift-cluster-version/admin-gates"
	oldAcks  = "openshift-cluster-version/admin-acks"
)

// said is what a table compares of a finding.
type said struct {
	Outcome preflight.Outcome
	Reason  string
	Blocks  bool
	Acked   bool
}

var required = said{Outcome: preflight.Fail, Reason: "AdminAckRequired", Blocks: true}

func TestAdminAck(t *testing.T) {
	const key = "ack-4.18-api-removals-in-4.19"
	text := map[string]string{key: "Remove the old APIs, see https://example.com/kb/1.\n"}
	for name, tc := range map[string]struct {
		reason string
		from   string
		to     string
		maps   map[string]map[string]string
		want   map[string]said
	}{
		"NotAcknowledged": {
			reason: "a gate without acknowledgement is shut",
			maps:   map[string]map[string]string{gates: text, acks: {}},
			want:   map[string]said{"AdminAck-" + key: required},
		},
		"Acknowledged": {
			reason: "exactly \"true\" opens it, and the report keeps it, marked",
			maps:   map[string]map[string]string{gates: text, acks: {key: "true"}},
			want:   map[string]said{"AdminAck-" + key: {preflight.Fail, "Acknowledged", true, true}},
		},
		"True": {
			reason: "CVO compares letter by letter, so True does not count",
			maps:   map[string]map[string]string{gates: text, acks: {key: "True"}},
			want:   map[string]said{"AdminAck-" + key: {preflight.Fail, "AdminAckWrongValue", true, false}},
		},
		"TrailingSpace": {
			reason: "nor does a trailing space",
			maps:   map[string]map[string]string{gates: text, acks: {key: "true "}},
			want:   map[string]said{"AdminAck-" + key: {preflight.Fail, "AdminAckWrongValue", true, false}},
		},
		"OtherVersion": {
			reason: "a gate of another minor version does not apply",
			maps:   map[string]map[string]string{gates: {"ack-4.17-x": "old"}, acks: {}},
			want:   map[string]said{"AdminAck": {Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}},
		},
		"SimilarVersion": {
			reason: "4.1 is not a prefix of 4.18",
			maps:   map[string]map[string]string{gates: {"ack-4.1-x": "old", "ack-4.180-x": "far"}, acks: {}},
			want:   map[string]said{"AdminAck": {Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}},
		},
		"InvalidName": {
			reason: "a gate whose name is invalid shuts every version, acknowledged or not",
			maps:   map[string]map[string]string{gates: {"ack-4.x-foo": "text"}, acks: {"ack-4.x-foo": "true"}},
			want:   map[string]said{"AdminAck-ack-4.x-foo": {preflight.Fail, "InvalidGateName", true, false}},
		},
		"LeadingZero": {
			reason: "4.08 is not a version",
			maps:   map[string]map[string]string{gates: {"ack-4.08-x": "text"}, acks: {}},
			want:   map[string]said{"AdminAck-ack-4.08-x": {preflight.Fail, "InvalidGateName", true, false}},
		},
		"EmptyText": {
			reason: "nobody can acknowledge what is not said",
			maps:   map[string]map[string]string{gates: {key: ""}, acks: {key: "true"}},
			want:   map[string]said{"AdminAck-" + key: {preflight.Fail, "EmptyGate", true, false}},
		},
		"GatesMissing": {
			reason: "without gates nobody can tell, and CVO blocks",
			maps:   map[string]map[string]string{acks: {}},
			want:   map[string]said{"AdminAckUnknown": {preflight.Fail, "AdminGatesMissing", true, false}},
		},
		"AcksMissing": {
			reason: "CVO blocks without admin-acks even where there are no gates",
			maps:   map[string]map[string]string{gates: {}},
			want:   map[string]said{"AdminAckUnknown": {preflight.Fail, "AdminAcksMissing", true, false}},
		},
		"UnknownAck": {
			reason: "an acknowledgement for this version that no gate asks for is most likely a slip of the pen",
			maps:   map[string]map[string]string{gates: text, acks: {"ack-4.18-api-removal-in-4.19": "true"}},
			want: map[string]said{
				"AdminAck-" + key: required,
				"AdminAckUnused":  {Outcome: preflight.Warn, Reason: "UnknownAck"},
			},
		},
		"OldAck": {
			reason: "an acknowledgement of an earlier version is history",
			maps:   map[string]map[string]string{gates: {}, acks: {"ack-4.17-x": "true"}},
			want:   map[string]said{"AdminAck": {Outcome: preflight.Pass, Reason: "NothingToAcknowledge"}},
		},
		"PlaceOfTheEnhancement": {
			reason: "gates in openshift-cluster-version are asked for too",
			maps:   map[string]map[string]string{oldGates: text, oldAcks: {}},
			want:   map[string]said{"AdminAck-" + key: required},
		},
		"AckInTheOtherPlace": {
			reason: "an acknowledgement counts for the gates of its own place only",
			maps:   map[string]map[string]string{oldGates: text, oldAcks: {}, gates: {}, acks: {key: "true"}},
			want: map[string]said{
				"AdminAck-" + key: required,
				"AdminAckUnused":  {Outcome: preflight.Warn, Reason: "UnknownAck"},
			},
		},
		"Patch": {
			reason: "patch updates ask for no acknowledgement",
			to:     "4.18.9",
			maps:   map[string]map[string]string{gates: text, acks: {}},
			want:   map[string]said{"AdminAck": {Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		},
		"Major": {
			reason: "leaving 4.23 for 5.0 leaves the minor version",
			from:   "4.23.1", to: "5.0.0",
			maps: map[string]map[string]string{gates: {"ack-4.23-x": "text"}, acks: {}},
			want: map[string]said{"AdminAck-ack-4.23-x": required},
		},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, tc.maps)
			findings := checktest.Run(t, gate.AdminAck(), server.Snapshot(t), parse(t, tc.from, tc.to))
			got := map[string]said{}
			for _, f := range findings {
				got[f.Name] = said{f.Outcome, f.Reason, f.Blocks, f.Bypass != nil}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdminAckNamesWhatToDo(t *testing.T) {
	const key = "ack-4.18-x"
	serve(t, map[string]map[string]string{gates: {key: "Do this: https://example.com/kb then that."}, acks: {}})
	findings := checktest.Run(t, gate.AdminAck(), server.Snapshot(t), parse(t, "", ""))
	if len(findings) != 1 {
		t.Fatalf("findings %+v, want one", findings)
	}
	got := findings[0]
	if got.URL != "https://example.com/kb" {
		t.Errorf("URL %q, want the first one in the text of the gate", got.URL)
	}
	for _, want := range []string{"oc preflight ack " + key, "oc -n openshift-config patch configmap admin-acks"} {
		if !strings.Contains(got.Remediation, want) {
			t.Errorf("remediation %q does not have the command %q", got.Remediation, want)
		}
	}
	if diff := cmp.Diff([]string{"4.19.0"}, got.BlockedTargets); diff != "" {
		t.Errorf("blocked targets: -want +got:\n%s", diff)
	}
}

func TestAdminAckUnreadableIsNoAnswer(t *testing.T) {
	serve(t, map[string]map[string]string{gates: {}, acks: {}})
	findings := checktest.Run(t, gate.AdminAck(), server.Nobody().Snapshot(t), parse(t, "", ""))
	want := map[string]checktest.Said{"AdminAck": {Outcome: preflight.Unknown, Reason: "Forbidden"}}
	if diff := cmp.Diff(want, checktest.Summary(findings)); diff != "" {
		t.Errorf("for one who may not read: -want +got:\n%s", diff)
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
		bad    string
	}{
		"Key":      {reason: "by its key", maps: map[string]map[string]string{gates: {"ack-4.18-x": "t"}, acks: {"other": "true"}}, gate: "ack-4.18-x", where: acks},
		"RiskName": {reason: "by the name in the report", maps: map[string]map[string]string{gates: {"ack-4.18-x": "t"}, acks: {}}, gate: "AdminAck-ack-4.18-x", where: acks},
		"Missing":  {reason: "creates admin-acks where it is missing", maps: map[string]map[string]string{gates: {"ack-4.18-x": "t"}}, gate: "ack-4.18-x", where: acks},
		"OldPlace": {reason: "next to the gate", maps: map[string]map[string]string{oldGates: {"ack-4.18-x": "t"}}, gate: "ack-4.18-x", where: oldAcks},
		"Unknown":  {reason: "names the gates there are", maps: map[string]map[string]string{gates: {"ack-4.18-x": "t"}, acks: {}}, gate: "ack-4.18-y", bad: "ack-4.18-x"},
		"None":     {reason: "says that there are none", maps: nil, gate: "ack-4.18-y", bad: "no admin gates"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, tc.maps)
			done, err := gate.Acknowledge(t.Context(), client.CoreV1(), tc.gate)
			if tc.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tc.bad) {
					t.Errorf("%s: error %v, want one that says %q", tc.reason, err, tc.bad)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if done.ConfigMap != tc.where || done.Gate != "ack-4.18-x" {
				t.Errorf("%s: acknowledged %q in %q, want ack-4.18-x in %q", tc.reason, done.Gate, done.ConfigMap, tc.where)
			}
			namespace, configMap, _ := strings.Cut(tc.where, "/")
			kept, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), configMap, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if kept.Data["ack-4.18-x"] != "true" {
				t.Errorf("%s: the server has %v", tc.reason, kept.Data)
			}
			if tc.maps[acks]["other"] != kept.Data["other"] {
				t.Errorf("%s: another acknowledgement was lost: %v", tc.reason, kept.Data)
			}
		})
	}
}

func parse(t *testing.T, from, to string) update.Update {
	t.Helper()
	return checktest.Update(t, either(from, "4.18.3"), either(to, "4.19.0"))
}

// either is what is given, or else what is usual.
func either(given, usual string) string {
	if given == "" {
		return usual
	}
	return given
}

// serve makes the cluster hold exactly these ConfigMaps, until the test ends.
func serve(t *testing.T, maps map[string]map[string]string) kubernetes.Interface {
	t.Helper()
	for _, place := range []string{gates, acks, oldGates, oldAcks} {
		namespace, name, _ := strings.Cut(place, "/")
		if data, ok := maps[place]; ok {
			server.Hold(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
		}
	}
	client := kubernetes.NewForConfigOrDie(config)
	t.Cleanup(func() { // an acknowledgement may have created one
		for _, place := range []string{acks, oldAcks} {
			namespace, name, _ := strings.Cut(place, "/")
			err := client.CoreV1().ConfigMaps(namespace).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	})
	return client
}
