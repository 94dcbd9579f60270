package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// risk is a risk of the update service that applies.
func risk(name string) finding.Finding {
	return finding.Finding{Finding: preflight.Finding{Name: name, Outcome: preflight.Fail, Reason: "Applies", Message: name + " may do harm to " + report.AnyTarget + ".", Remediation: "Read about it, then accept it: --accept " + name, URL: "https://example.com/" + name}, Source: finding.SourceRisk, Blocks: true}
}

// listing makes targets of what there is about each version.
func listing(accepted map[string]string, found map[string][]finding.Finding, versions ...string) report.Targets {
	told := report.Targets{
		APIVersion: report.APIVersion, Kind: report.TargetsKind, Time: "2026-11-21T08:00:00Z", ToolVersion: "v0.1.0",
		Cluster: report.Cluster{ID: "c1", Version: "4.18.15", Image: "registry/release@sha256:aa", Kubernetes: "v1.31.5"}, Channel: "candidate-4.18",
		Targets: []report.Candidate{}, Findings: []report.TargetFinding{},
	}
	about := map[string]int{}
	for _, version := range versions {
		expected := verdict.Expectation{Checks: 5, Reported: 5}
		decided, findings := verdict.Fold(found[version], expected, verdict.Policy{Accepted: accepted})
		candidate := report.Candidate{
			Version: version, Image: "registry/release@sha256:" + version, Conditional: true, Recommended: "False",
			Verdict: decided, Expected: expected, CVO: report.CVO{Accepts: new(false), Reason: "InvalidClusterVersion", Message: "not available"},
		}
		switch {
		case strings.HasPrefix(version, "4.18."):
			candidate.UpdateKind = "Patch"
		case strings.HasPrefix(version, "4."):
			candidate.UpdateKind = "Minor"
		}
		told.Targets = append(told.Targets, candidate)
		for _, f := range findings {
			key := fmt.Sprint(f.Name, f.Message, f.Bypass != nil)
			at, ok := about[key]
			if !ok {
				at = len(told.Findings)
				about[key] = at
				told.Findings = append(told.Findings, report.TargetFinding{Finding: f})
			}
			told.Findings[at].Targets = append(told.Findings[at].Targets, version)
		}
	}
	for i := range told.Findings {
		if told.Findings[i].Blocks {
			told.Findings[i].BlockedTargets = told.Findings[i].Targets
		}
	}
	slices.SortStableFunc(told.Findings, func(a, b report.TargetFinding) int { return finding.Compare(a.Finding, b.Finding) })
	return told
}

// fleet is the story of the enhancement accepted-risks, with a gate, an alert
// and an edge to what is no version.
func fleet() report.Targets {
	alert := finding.Finding{Finding: preflight.Finding{Name: "KubeNodeNotReady", Outcome: preflight.Fail, Reason: "AlertFiring", Message: "warning alert KubeNodeNotReady firing", Remediation: "See the node: oc get node node-1", Objects: []preflight.Object{{APIVersion: "v1", Kind: "Node", Name: "node-1"}}}, Source: finding.SourceRisk, Blocks: true}
	gate := func(to string) finding.Finding {
		return finding.Finding{Finding: preflight.Finding{Name: "AdminAck-ack-4.18-x", Outcome: preflight.Fail, Reason: "AdminAckRequired", Message: "not acknowledged, which blocks " + to, Remediation: "oc preflight ack ack-4.18-x"}, Source: finding.SourceGate, Blocks: true}
	}
	unknown := finding.Finding{Finding: preflight.Finding{Name: "Update", Outcome: preflight.Unknown, Reason: "UnknownUpdateKind", Message: "the gates cannot be judged: \"nightly\x1b[2J\" is not a semantic version", Remediation: "Name another."}, Source: finding.SourceGate, Blocks: true}
	warn := finding.Finding{Finding: preflight.Finding{Name: "RemovedAPIs", Outcome: preflight.Warn, Reason: "FarAway", Message: "in use"}, Source: finding.SourceGate}
	pass := finding.Finding{Finding: preflight.Finding{Name: "Rollback", Outcome: preflight.Pass, Reason: "Forward", Message: "no rollback"}, Source: finding.SourceGate}
	skip := finding.Finding{Finding: preflight.Finding{Name: "GiantHop", Outcome: preflight.Skipped, Reason: "NotConcerned", Message: "patch"}, Source: finding.SourceGate}
	told := listing(map[string]string{
		"DualStackNeedsController": "--accept", "OldBootImagesPodmanMissingAuthFlag": "accept.yaml, entry 1; seen; accepted by ann",
	}, map[string][]finding.Finding{
		"4.19.3":  {alert, gate("4.19.3"), warn, pass},
		"4.19.1":  {alert, gate("4.19.1"), risk("LeakedMachineConfigBlocksMCO"), pass},
		"4.18.17": {alert, risk("OldBootImagesPodmanMissingAuthFlag"), pass, skip},
		"4.18.16": {alert, risk("DualStackNeedsController"), risk("OldBootImagesPodmanMissingAuthFlag"), risk("RHELKernelHighLoadIOWait"), pass, skip},
		"nightly": {alert, unknown},
	}, "4.19.3", "4.19.1", "4.18.17", "4.18.16", "nightly")
	told.Findings = append(told.Findings, report.TargetFinding{Targets: []string{}, Finding: finding.Finding{Finding: preflight.Finding{Name: "AcceptanceExpired", Outcome: preflight.Warn, Reason: "Expired", Message: "these acceptances no longer hold: RiskA", Remediation: "Judge them again."}, Source: finding.SourceRisk}})
	return told
}

// chosen is one target of the fleet alone.
func chosen() report.Targets {
	told := listing(map[string]string{"DualStackNeedsController": "--accept"}, map[string][]finding.Finding{
		"4.18.16": {
			risk("DualStackNeedsController"), risk("RHELKernelHighLoadIOWait"),
			{Finding: preflight.Finding{Name: "Rollback", Outcome: preflight.Pass, Reason: "Forward", Message: "no rollback"}, Source: finding.SourceGate},
		},
	}, "4.18.16")
	return told
}

func none() report.Targets {
	told := listing(nil, nil)
	told.Findings = []report.TargetFinding{{Targets: []string{}, Finding: finding.Finding{Finding: preflight.Finding{Name: "NoUpdates", Outcome: preflight.Warn, Reason: "NoUpdates", Message: "the cluster knows of no update"}, Source: finding.SourceRisk}}}
	return told
}

func TestTargetsGolden(t *testing.T) {
	for name, told := range map[string]report.Targets{"targets": fleet(), "targets-one": chosen(), "targets-none": none()} {
		for _, format := range report.Formats() {
			t.Run(name+"."+format, func(t *testing.T) {
				var got bytes.Buffer
				if err := report.WriteTargets(&got, format, told); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+format, got.Bytes())
			})
		}
	}
}

func TestTargetsReadBack(t *testing.T) {
	var written bytes.Buffer
	if err := report.WriteTargets(&written, "json", fleet()); err != nil {
		t.Fatal(err)
	}
	var got report.Targets
	if err := json.Unmarshal(written.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fleet(), got); diff != "" {
		t.Errorf("the listing is its own reader: -want +got:\n%s", diff)
	}
}

func TestTargetsOfAnUnknownFormat(t *testing.T) {
	if err := report.WriteTargets(&bytes.Buffer{}, "xml", fleet()); err == nil {
		t.Error("format xml was taken")
	}
}

// What blocks a great many targets is said once for all of them.
func TestManyTargetsAreToldInFewWords(t *testing.T) {
	found := map[string][]finding.Finding{}
	var versions []string
	for minor := 20; minor >= 18; minor-- {
		for patch := 60; patch > 0; patch-- {
			version := fmt.Sprintf("4.%d.%d", minor, patch)
			versions = append(versions, version)
			found[version] = []finding.Finding{risk("Everywhere")}
			if minor == 20 {
				found[version] = append(found[version], risk("InOneStream"))
			}
			if minor > 18 && patch%2 == 0 {
				found[version] = append(found[version], risk("HereAndThere"))
			}
		}
	}
	var text bytes.Buffer
	if err := report.WriteTargets(&text, "text", listing(nil, found, versions...)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"180 updates", "* every target: Everywhere\n", "Blocks: every target\n", "Blocks: 4.20.z; not 4.19.z, 4.18.z\n",
		"Blocks: 4.20.60, 4.20.58, 4.20.56, 4.20.54, 4.20.52, and 25 more of 4.20.z, 4.19.60, 4.19.58, 4.19.56, 4.19.54, 4.19.52, and 25 more of 4.19.z; not 4.18.z\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not say %q", want)
		}
	}
	if got := strings.Count(text.String(), "Everywhere may do harm"); got != 1 {
		t.Errorf("what is the same for all is said %d times", got)
	}
	if strings.Contains(text.String(), "MultipleReasons") {
		t.Error("causes are named, never counted")
	}
}
