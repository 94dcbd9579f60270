package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// risk is a risk of the update service that applies.
func risk(name string) preflight.Finding {
	return preflight.Finding{
		Name: name, Source: preflight.SourceRisk, Outcome: preflight.Fail, Reason: "Applies", Blocks: true,
		Message: name + " may do harm to " + report.AnyTarget + ".", Remediation: "Read about it, then accept it: --accept " + name, URL: "https://example.com/" + name,
	}
}

// listing makes targets of what there is about each version.
func listing(accepted map[string]string, found map[string][]preflight.Finding, versions ...string) report.Targets {
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
		for _, finding := range findings {
			key := fmt.Sprint(finding.Name, finding.Message, finding.Bypass != nil)
			at, ok := about[key]
			if !ok {
				at = len(told.Findings)
				about[key] = at
				told.Findings = append(told.Findings, report.TargetFinding{Finding: finding})
			}
			told.Findings[at].Targets = append(told.Findings[at].Targets, version)
		}
	}
	for i := range told.Findings {
		if told.Findings[i].Blocks {
			told.Findings[i].BlockedTargets = told.Findings[i].Targets
		}
	}
	slices.SortStableFunc(told.Findings, func(a, b report.TargetFinding) int { return verdict.Compare(a.Finding, b.Finding) })
	return told
}

// fleet is the story of the enhancement accepted-risks, with a gate, an alert
// and an edge to what is no version.
func fleet() report.Targets {
	alert := preflight.Finding{
		Name: "KubeNodeNotReady", Source: preflight.SourceRisk, Outcome: preflight.Fail, Reason: "AlertFiring", Blocks: true,
		Message: "warning alert KubeNodeNotReady firing", Remediation: "See the node: oc get node node-1",
		Objects: []preflight.Object{{APIVersion: "v1", Kind: "Node", Name: "node-1"}},
	}
	gate := func(to string) preflight.Finding {
		return preflight.Finding{
			Name: "AdminAck-ack-4.18-x", Source: preflight.SourceGate, Outcome: preflight.Fail, Reason: "AdminAckRequired", Blocks: true,
			Message: "not acknowledged, which blocks " + to, Remediation: "oc preflight ack ack-4.18-x",
		}
	}
	unknown := preflight.Finding{
		Name: "Update", Source: preflight.SourceGate, Outcome: preflight.Unknown, Reason: "UnknownUpdateKind", Blocks: true,
		Message: "the gates cannot be judged: \"nightly\x1b[2J\" is not a semantic version", Remediation: "Name another.",
	}
	warn := preflight.Finding{Name: "RemovedAPIs", Source: preflight.SourceGate, Outcome: preflight.Warn, Reason: "FarAway", Message: "in use"}
	pass := preflight.Finding{Name: "Rollback", Source: preflight.SourceGate, Outcome: preflight.Pass, Reason: "Forward", Message: "no rollback"}
	skip := preflight.Finding{Name: "GiantHop", Source: preflight.SourceGate, Outcome: preflight.Skipped, Reason: "NotConcerned", Message: "patch"}
	told := listing(map[string]string{
		"DualStackNeedsController": "--accept", "OldBootImagesPodmanMissingAuthFlag": "accept.yaml, entry 1; seen; accepted by ann",
	}, map[string][]preflight.Finding{
		"4.19.3":  {alert, gate("4.19.3"), warn, pass},
		"4.19.1":  {alert, gate("4.19.1"), risk("LeakedMachineConfigBlocksMCO"), pass},
		"4.18.17": {alert, risk("OldBootImagesPodmanMissingAuthFlag"), pass, skip},
		"4.18.16": {alert, risk("DualStackNeedsController"), risk("OldBootImagesPodmanMissingAuthFlag"), risk("RHELKernelHighLoadIOWait"), pass, skip},
		"nightly": {alert, unknown},
	}, "4.19.3", "4.19.1", "4.18.17", "4.18.16", "nightly")
	told.Findings = append(told.Findings, report.TargetFinding{Targets: []string{}, Finding: preflight.Finding{
		Name: "AcceptanceExpired", Source: preflight.SourceRisk, Outcome: preflight.Warn, Reason: "Expired", Message: "these acceptances no longer hold: RiskA", Remediation: "Judge them again.",
	}})
	return told
}

// chosen is one target of the fleet alone.
func chosen() report.Targets {
	told := listing(map[string]string{"DualStackNeedsController": "--accept"}, map[string][]preflight.Finding{
		"4.18.16": {
			risk("DualStackNeedsController"), risk("RHELKernelHighLoadIOWait"),
			{Name: "Rollback", Source: preflight.SourceGate, Outcome: preflight.Pass, Reason: "Forward", Message: "no rollback"},
		},
	}, "4.18.16")
	return told
}

func none() report.Targets {
	told := listing(nil, nil)
	told.Findings = []report.TargetFinding{{Targets: []string{}, Finding: preflight.Finding{
		Name: "NoUpdates", Source: preflight.SourceRisk, Outcome: preflight.Warn, Reason: "NoUpdates", Message: "the cluster knows of no update",
	}}}
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
	found := map[string][]preflight.Finding{}
	var versions []string
	for minor := 20; minor >= 18; minor-- {
		for patch := 60; patch > 0; patch-- {
			version := fmt.Sprintf("4.%d.%d", minor, patch)
			versions = append(versions, version)
			found[version] = []preflight.Finding{risk("Everywhere")}
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
