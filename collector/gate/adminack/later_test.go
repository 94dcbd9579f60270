package adminack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestAdminAckAhead(t *testing.T) {
	none := checktest.Result{Outcome: preflight.Pass, Reason: "NothingAhead"}
	ahead := checktest.Result{Outcome: preflight.Warn, Reason: "AcksAhead"}
	for name, tc := range map[string]struct {
		reason  string
		to      string
		acks    map[string]string
		gates   map[string]string
		want    checktest.Result
		message string // a part of it
	}{
		"None": {reason: "most releases have no gate", want: none},
		"Leaving": {
			reason: "a gate of the target's own minor version applies to the next update",
			gates:  map[string]string{"ack-4.19-x": "Do this."}, want: ahead, message: "\nto leave 4.19, ack-4.19-x: Do this.",
		},
		"Patch": {
			reason: "a patch release may add a gate of the present minor version", to: "4.18.9",
			gates: map[string]string{"ack-4.18-x": "Do this."}, want: ahead, message: "to leave 4.18, ack-4.18-x",
		},
		"Acked": {
			reason: "an acknowledged gate is left out", to: "4.18.9", acks: map[string]string{"ack-4.18-x": "true"},
			gates: map[string]string{"ack-4.18-x": "Do this."}, want: none,
		},
		"AckedWrongly": {
			reason: "an acknowledgement with another value than true does not count", to: "4.18.9", acks: map[string]string{"ack-4.18-x": "True"},
			gates: map[string]string{"ack-4.18-x": "Do this."}, want: ahead,
		},
		"Past": {
			reason: "this update leaves 4.18, and AdminAck judges the gates of the cluster",
			gates:  map[string]string{"ack-4.18-x": "Do this."}, want: none,
		},
		"FarAhead": {
			reason: "a gate of a later minor version does not concern the next update",
			gates:  map[string]string{"ack-4.20-x": "Do this."}, want: none,
		},
		"SkipLevel": {
			reason: "a hop on the way requires an acknowledgement too", to: "4.20.0",
			gates: map[string]string{"ack-4.19-x": "Do this."}, want: ahead, message: "on the way, to leave 4.19, ack-4.19-x: Do this.",
		},
		"Major": {
			reason: "4.23 is on the way from 4.18 to 5.0", to: "5.0.0", gates: map[string]string{"ack-4.23-x": "Do this."}, want: ahead,
			message: "on the way, to leave 4.23",
		},
		"Invalid": {
			reason: "an invalid name blocks every update that leaves a minor version",
			gates:  map[string]string{"ack-4.x-y": "Do this."}, want: ahead, message: "because its name is invalid, ack-4.x-y",
		},
		"Empty": {
			reason: "CVO blocks for a gate without a description too", gates: map[string]string{"ack-4.19-x": ""}, want: ahead,
			message: "(no description)",
		},
		"Many": {reason: "the others are counted", gates: numbered(25), want: ahead, message: "\nand 5 more"},
	} {
		t.Run(name, func(t *testing.T) {
			createMaps(t, map[string]map[string]string{acks: tc.acks})
			for _, from := range []checktest.Server{server, server.Unprivileged()} {
				if tc.acks != nil && from != server {
					continue // acknowledgements that cannot be read are not left out
				}
				findings := checktest.Run(t, adminack.Ahead(tc.gates), from.Snapshot(t), checktest.MinorUpdate(t, "", tc.to))
				if diff := cmp.Diff(map[string]checktest.Result{"AdminAckAhead": tc.want}, checktest.Results(findings)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
				if !strings.Contains(findings[0].Message, tc.message) || findings[0].Blocks {
					t.Errorf("%s: %+v; want %q in a finding that does not block", tc.reason, findings[0], tc.message)
				}
			}
		})
	}
}

// numbered are gates of 4.19.
func numbered(count int) map[string]string {
	gates := map[string]string{}
	for i := range count {
		gates[fmt.Sprintf("ack-4.19-x%02d", i)] = "Do this."
	}
	return gates
}
