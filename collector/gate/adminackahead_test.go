package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestAdminAckAhead(t *testing.T) {
	nothing := checktest.Said{Outcome: preflight.Pass, Reason: "NothingAhead"}
	ahead := checktest.Said{Outcome: preflight.Warn, Reason: "AcksAhead"}
	for name, tc := range map[string]struct {
		reason string
		to     string
		acks   map[string]string
		gates  map[string]string
		want   checktest.Said
		says   string
	}{
		"None":    {reason: "most releases bring none", want: nothing},
		"Leaving": {reason: "the gate of the target's own minor version", gates: map[string]string{"ack-4.19-x": "Do this."}, want: ahead, says: "\nto leave 4.19, ack-4.19-x: Do this."},
		"Patch":   {reason: "a patch release may bring a new gate", to: "4.18.9", gates: map[string]string{"ack-4.18-x": "Do this."}, want: ahead, says: "to leave 4.18, ack-4.18-x"},
		"Acked": {
			reason: "it is acknowledged already", to: "4.18.9", acks: map[string]string{"ack-4.18-x": "true"},
			gates: map[string]string{"ack-4.18-x": "Do this."}, want: nothing,
		},
		"AckedWrongly": {
			reason: "it is not, letter by letter", to: "4.18.9", acks: map[string]string{"ack-4.18-x": "True"},
			gates: map[string]string{"ack-4.18-x": "Do this."}, want: ahead,
		},
		"Past":      {reason: "the cluster leaves 4.18 with this update, and AdminAck asks what the cluster itself has", gates: map[string]string{"ack-4.18-x": "Do this."}, want: nothing},
		"FarAhead":  {reason: "a later release decides about it", gates: map[string]string{"ack-4.20-x": "Do this."}, want: nothing},
		"SkipLevel": {reason: "a hop in between asks too", to: "4.20.0", gates: map[string]string{"ack-4.19-x": "Do this."}, want: ahead, says: "on the way, to leave 4.19, ack-4.19-x: Do this."},
		"Major":     {reason: "4.23 is on the way from 4.18 to 5.0", to: "5.0.0", gates: map[string]string{"ack-4.23-x": "Do this."}, want: ahead, says: "on the way, to leave 4.23"},
		"Invalid":   {reason: "CVO would block all that leave the minor version", gates: map[string]string{"ack-4.x-y": "Do this."}, want: ahead, says: "as its name is invalid, ack-4.x-y"},
		"Empty":     {reason: "CVO blocks for it too", gates: map[string]string{"ack-4.19-x": ""}, want: ahead, says: "(it does not say what for)"},
		"Many":      {reason: "bounded, and counted", gates: numbered(25), want: ahead, says: "\nand 5 more"},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, map[string]map[string]string{acks: tc.acks})
			for _, from := range []checktest.Server{server, server.Nobody()} {
				if tc.acks != nil && from != server {
					continue // who may not read them cannot leave them out
				}
				findings := checktest.Run(t, gate.AdminAckAhead(tc.gates), from.Snapshot(t), parse(t, "", tc.to))
				if diff := cmp.Diff(map[string]checktest.Said{"AdminAckAhead": tc.want}, checktest.Summary(findings)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
				if !strings.Contains(findings[0].Message, tc.says) || findings[0].Blocks {
					t.Errorf("%s: %+v; want that it says %q, and does not block", tc.reason, findings[0], tc.says)
				}
			}
		})
	}
}

func numbered(count int) map[string]string {
	gates := map[string]string{}
	for i := range count {
		gates[fmt.Sprintf("ack-4.19-x%02d", i)] = "Do this."
	}
	return gates
}
