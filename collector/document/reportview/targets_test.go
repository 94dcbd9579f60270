package reportview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/golden"
)

// risk is a risk of the update service that applies.
func risk(name string) finding.Finding {
	accept := finding.Accept(name)
	accept.Command = "oc preflight run --accept " + name
	return finding.Fail(finding.ReportedReason("Applies"), "%s may do harm to %s.", name,
		report.AnyTarget).Remedy("Read about it, then accept it.").Do(accept).
		Documented("https://example.com/" + name).Named(name).From(finding.SourceRisk)
}

// listing returns targets with the findings about each version.
func listing(accepted map[string]string, found map[string][]finding.Finding, versions ...string) report.Targets {
	doc := report.Targets{
		APIVersion: report.APIVersion, Kind: report.TargetsKind, Time: "2026-11-21T08:00:00Z", ToolVersion: "v0.1.0",
		Cluster: report.Cluster{ID: "c1", Version: "4.18.15", Image: "registry/release@sha256:aa", Kubernetes: "v1.31.5"},
		Channel: "candidate-4.18",
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
			control := report.Range{Low: 75, Expected: 105, High: 180}
			candidate.Duration = &report.Duration{ControlPlane: control, Total: control, Basis: []string{}}
		}
		doc.Targets = append(doc.Targets, candidate)
		for _, f := range findings {
			key := fmt.Sprint(f.Name, f.Message, f.Bypass != nil)
			at, ok := about[key]
			if !ok {
				at = len(doc.Findings)
				about[key] = at
				doc.Findings = append(doc.Findings, report.TargetFinding{Finding: f})
			}
			doc.Findings[at].Targets = append(doc.Findings[at].Targets, version)
		}
	}
	for i := range doc.Findings {
		if doc.Findings[i].Blocks {
			doc.Findings[i].BlockedTargets = doc.Findings[i].Targets
		}
	}
	slices.SortStableFunc(doc.Findings, func(a, b report.TargetFinding) int { return finding.Compare(a.Finding, b.Finding) })
	return doc
}

// fleet is the example of the enhancement accepted-risks, with a gate, an alert and an
// update to an invalid version.
func fleet() report.Targets {
	alert := finding.Fail(finding.ReportedReason("AlertFiring"),
		"warning alert KubeNodeNotReady firing").Remedy("See the node.").Do(finding.Read("oc get node node-1")).
		About(preflight.Object{APIVersion: "v1", Kind: "Node", Name: "node-1"}).Named("KubeNodeNotReady").From(finding.SourceRisk)
	gate := func(to string) finding.Finding {
		return finding.Fail(finding.ReportedReason("AdminAckRequired"), "not acknowledged, which blocks %s", to).Remedy("Acknowledge it.").
			Named("AdminAck-ack-4.18-x").From(finding.SourceGate)
	}
	unknown := finding.Unknown(finding.ReportedReason("UnknownUpdateKind"),
		"the gates cannot be evaluated: \"nightly\x1b[2J\" is not a semantic version").
		Remedy("Name another.").Named("Update").From(finding.SourceGate)
	warn := finding.Warn(finding.ReportedReason("FarAway"), "in use").Named("RemovedAPIs").From(finding.SourceGate)
	pass := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Forward"), "no rollback").Named("Rollback").From(finding.SourceGate)
	skip := finding.Skipped(gap.Proven("a test"), finding.ReportedReason("NotConcerned"), "patch").Named("GiantHop").From(finding.SourceGate)
	doc := listing(map[string]string{
		"DualStackNeedsController":           "spec.desiredUpdate.acceptRisks",
		"OldBootImagesPodmanMissingAuthFlag": "accept.yaml, entry 1; seen; accepted by ann",
	}, map[string][]finding.Finding{
		"4.19.3":  {alert, gate("4.19.3"), warn, pass},
		"4.19.1":  {alert, gate("4.19.1"), risk("LeakedMachineConfigBlocksMCO"), pass},
		"4.18.17": {alert, risk("OldBootImagesPodmanMissingAuthFlag"), pass, skip},
		"4.18.16": {
			alert, risk("DualStackNeedsController"), risk("OldBootImagesPodmanMissingAuthFlag"), risk("RHELKernelHighLoadIOWait"), pass,
			skip,
		},
		"nightly": {alert, unknown},
	}, "4.19.3", "4.19.1", "4.18.17", "4.18.16", "nightly")
	doc.Findings = append(doc.Findings, report.TargetFinding{
		Targets: []string{},
		Finding: finding.Warn(finding.ReportedReason("Expired"), "these acceptances no longer hold: RiskA").Remedy("Evaluate them again.").
			Named("AcceptanceExpired").From(finding.SourceRisk),
	})
	return doc
}

// chosen is a single target of the fleet.
func chosen() report.Targets {
	doc := listing(map[string]string{"DualStackNeedsController": "spec.desiredUpdate.acceptRisks"}, map[string][]finding.Finding{
		"4.18.16": {
			risk("DualStackNeedsController"), risk("RHELKernelHighLoadIOWait"),
			finding.Pass(gap.Proven("a test"), finding.ReportedReason("Forward"), "no rollback").Named("Rollback").From(finding.SourceGate),
		},
	}, "4.18.16")
	return doc
}

func none() report.Targets {
	doc := listing(nil, nil)
	doc.Findings = []report.TargetFinding{{
		Targets: []string{},
		Finding: finding.Warn(finding.ReportedReason("NoUpdates"), "the cluster lists no update").Named("NoUpdates").From(finding.SourceRisk),
	}}
	return doc
}

func TestTargetsGolden(t *testing.T) {
	for name, doc := range map[string]report.Targets{"targets": fleet(), "targets-one": chosen(), "targets-none": none()} {
		for _, output := range []string{"text", "wide", "name", "json", "markdown"} {
			t.Run(name+"."+output, func(t *testing.T) {
				golden.Compare(t, "testdata/"+name+"."+output, encoded(t, output, doc))
			})
		}
	}
	t.Run("targets-one.yaml", func(t *testing.T) {
		golden.Compare(t, "testdata/targets-one.yaml", encoded(t, "yaml", chosen()))
	})
}

func TestTargetsReadBack(t *testing.T) {
	var written bytes.Buffer
	if err := format.Write(&written, "json", shown(fleet()), format.Style{}); err != nil {
		t.Fatal(err)
	}
	var got report.Targets
	if err := json.Unmarshal(written.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fleet(), got); diff != "" {
		t.Errorf("the listing has changed after writing and reading: -want +got:\n%s", diff)
	}
}

func TestTargetsOfAnUnknownFormat(t *testing.T) {
	if err := format.Write(&bytes.Buffer{}, "xml", shown(fleet()), format.Style{}); err == nil {
		t.Error("format xml was accepted")
	}
}

// A finding that blocks many targets is written once.
func TestManyTargetsShareOneFinding(t *testing.T) {
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
	if err := format.Write(&text, "text", shown(listing(nil, found, versions...)), format.Style{Limit: -1}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"180 updates", "* every target: Everywhere\n", "Targets: every target\n", "Targets: 4.20.z; not 4.19.z, 4.18.z\n",
		"Targets: 4.20.60, 4.20.58, 4.20.56, 4.20.54, 4.20.52, and 25 more of 4.20.z, 4.19.60, 4.19.58, 4.19.56, 4.19.54, 4.19.52, and " +
			"25 more of 4.19.z; not 4.18.z\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not contain %q", want)
		}
	}
	if got := strings.Count(text.String(), "Everywhere may do harm"); got != 1 {
		t.Errorf("a finding about all targets is printed %d times", got)
	}
	if strings.Contains(text.String(), "MultipleReasons") {
		t.Error("want the names of the causes")
	}
}

// The table of many targets has those that are not blocked, and findings about other
// targets are omitted.
func TestManyTargetsAreLimited(t *testing.T) {
	found := map[string][]finding.Finding{}
	var versions []string
	for patch := 40; patch > 15; patch-- {
		version := fmt.Sprintf("4.18.%d", patch)
		versions = append(versions, version)
		if patch > 18 {
			found[version] = []finding.Finding{risk("Everywhere")}
		}
	}
	found["4.18.19"] = append(found["4.18.19"], risk("OnlyTheOldest"))
	doc := listing(nil, found, versions...)
	next := finding.Retry("")
	next.Command = "oc preflight run --to 4.18.18"
	doc.Actions = []finding.Action{next}
	for name, style := range map[string]format.Style{"80": {Width: 80, Symbols: true, AllHint: "--all"}, "pipe": {AllHint: "--all"}} {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, "testdata/targets-many-"+name+".text", []byte(styled(t, doc, style)))
		})
	}
	var wide bytes.Buffer
	if err := format.Write(&wide, "wide", shown(doc), format.Style{Limit: 2, AllHint: "--limit 0"}); err != nil {
		t.Fatal(err)
	}
	if got := wide.String(); strings.Count(got, "\n") != 4 || !strings.HasSuffix(got, "... and 23 more (--limit 0)\n") {
		t.Errorf("want a header, two targets and the number of the others:\n%s", got)
	}
	if newest, ok := doc.Next(); !ok || newest.Version != "4.18.18" {
		t.Errorf("the next step is for %q, want the newest target that is not blocked", newest.Version)
	}
}
