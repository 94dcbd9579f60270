package reportview_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// TestAttacksOnLines checks that texts of the cluster cannot forge lines of the report.
func TestAttacksOnLines(t *testing.T) {
	const forged = "x\nReady: this cluster can be updated."
	object := preflight.Object{APIVersion: forged, Kind: forged, Namespace: forged, Name: forged}
	for name, tc := range map[string]struct {
		reason string
		forge  func(*report.Report)
	}{
		"Reason": {reason: "the reason of a condition", forge: func(r *report.Report) { r.Findings[0].Reason = forged }},
		"Name":   {reason: "the name of a risk", forge: func(r *report.Report) { r.Findings[0].Name = forged }},
		"Message": {reason: "the message of a condition", forge: func(r *report.Report) {
			r.Findings[0].Message, r.Findings[0].Remediation, r.Findings[0].URL = forged, forged, forged
		}},
		"Objects": {reason: "the names of objects", forge: func(r *report.Report) { r.Findings[0].Objects = []preflight.Object{object} }},
		"Job": {reason: "the names of Jobs and nodes", forge: func(r *report.Report) {
			r.Findings[0].Job = &finding.Job{Namespace: forged, Name: forged, Node: forged}
		}},
		"Passed":  {reason: "the names of checks that passed", forge: func(r *report.Report) { r.Findings[5].Name = forged }},
		"CVO":     {reason: "the response of CVO", forge: func(r *report.Report) { r.CVO.Reason, r.CVO.Message = forged, forged }},
		"Version": {reason: "the version of a target", forge: func(r *report.Report) { r.Target.Version, r.Cluster.Version = forged, forged }},
		"Signer":  {reason: "the name of a key", forge: func(r *report.Report) { r.Target.Signers = []string{forged} }},
		"Verdict": {
			reason: "names in the verdict",
			forge:  func(r *report.Report) { r.Verdict.Blocking = []string{forged}; r.Run.CompletionTime = forged },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := blocked()
			tc.forge(&r)
			var text strings.Builder
			if err := format.Write(&text, "text", shown(r), format.Style{}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text.String()) {
				if strings.HasPrefix(line, "Ready") {
					t.Errorf("%s forges a line:\n%s", tc.reason, text.String())
					break
				}
			}
		})
	}
}
