package reportview_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/test/golden"
)

// styled is the text of a document in a style.
func styled(t *testing.T, document any, style format.Style) string {
	t.Helper()
	var text bytes.Buffer
	if err := format.Write(&text, "text", shown(document), style); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// demo is the report of the demo: a gate, a failed check and a warning among many passes.
func demo() report.Report {
	doc := blocked()
	acknowledge := finding.Acknowledge("ack-5.0-kube-1.37-api-removals-in-5.1")
	acknowledge.Command = "oc preflight ack ack-5.0-kube-1.37-api-removals-in-5.1"
	findings := []finding.Finding{
		finding.Fail(finding.ReportedReason("AdminAckRequired"), "%s",
			strings.Repeat("Kubernetes 1.37 and therefore OpenShift 5.1 remove several APIs. ", 5)).
			Remedy("Do what the message requires, then acknowledge the gate.").Do(acknowledge).
			Named("AdminAck-ack-5.0-kube-1.37-api-removals-in-5.1").From(finding.SourceGate),
		finding.Fail(finding.ReportedReason("CertificateRejected"),
			"Secret openshift-ingress/default-old: the RSA key has 1024 bits, 2048 are required").
			Remedy("Replace the certificate.").Named("ClusterIngressOperator.DefaultCertificate").From(finding.SourceJob),
		finding.Warn(finding.ReportedReason("Ignition2"), "MachineConfig 99-worker-legacy-chrony has Ignition 2.2").
			Do(finding.Read("oc delete machineconfig 99-worker-legacy-chrony")).Named("MachineConfigOperator.IgnitionVersion").From(
			finding.SourceJob),
		finding.Skipped(gap.Proven("a test"), finding.ReportedReason("NotConcerned"), "a patch").Named("GiantHop").From(finding.SourceGate),
	}
	for _, name := range []string{"A", "B", "C"} {
		findings = append(findings, finding.Pass(gap.Proven("a test"), finding.ReportedReason("Passed"), "").Named(name).From(finding.SourceGate))
	}
	doc.Verdict, doc.Findings = verdict.Fold(findings, doc.Expected, verdict.Policy{})
	doc.Verdict.ValidUntil = "2026-11-22T08:00:09Z"
	retry, accept := finding.Retry(""), finding.Accept("ClusterIngressOperator.DefaultCertificate")
	retry.Command, accept.Command = "oc preflight run --to 5.1.0",
		"oc preflight run --to 5.1.0 --accept ClusterIngressOperator.DefaultCertificate"
	doc.Actions = []finding.Action{retry, accept}
	return doc
}

func TestStyles(t *testing.T) {
	terminal := format.Style{Width: 80, Symbols: true, Hint: "--details"}
	for name, style := range map[string]format.Style{
		"80": terminal, "40": {Width: 40, Hint: "--details"}, "color": {Width: 100, Symbols: true, Color: true, Hint: "--details"},
		"details": {Width: 80, Details: true}, "pipe": {Hint: "--details"},
	} {
		t.Run(name, func(t *testing.T) { golden.Compare(t, "testdata/demo-"+name+".text", []byte(styled(t, demo(), style))) })
	}
	rows := 0
	for line := range strings.Lines(styled(t, demo(), terminal)) {
		rows += max(1, (utf8.RuneCountInString(line)+78)/80)
	}
	if rows > 23 {
		t.Errorf("the report of the demo takes %d rows of a terminal of 24, one of which is the prompt", rows)
	}
}

// Color and symbols are never the only mark of an outcome.
func TestStyleKeepsTheWords(t *testing.T) {
	plain := styled(t, demo(), format.Style{Width: 100})
	marked := styled(t, demo(), format.Style{Width: 100, Color: true, Symbols: true})
	bare := regexp.MustCompile("\x1b\\[[0-9]*m|[✗✓?!] ").ReplaceAllString(marked, "")
	if words := strings.Fields(strings.NewReplacer("→", "->", "…", "...").Replace(bare)); !slices.Equal(strings.Fields(plain), words) {
		t.Errorf("without marks the text is %q, want %q", words, strings.Fields(plain))
	}
}

// Nothing that a check reports begins in the first column, where the verdict is.
func TestStyleIndentsLongWords(t *testing.T) {
	doc := blocked()
	doc.Findings[0].Message = strings.Repeat("x", 75) + "Verdict:Ready\nVerdict: Ready"
	for _, width := range []int{0, 1, 40, 80, 1000} {
		text := styled(t, doc, format.Style{Width: width, Details: true})
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "Verdict: Ready") || strings.HasPrefix(line, "x") || width == 80 && strings.Contains(line, "xx") &&
				utf8.RuneCountInString(line) > 81 {
				t.Errorf("width %d: a message begins in the first column, or would wrap: %q", width, line)
			}
		}
	}
}

// Findings with the same cause are one block; the results of Jobs stay apart.
func TestStyleGroupsOneCause(t *testing.T) {
	doc := blocked()
	var findings []finding.Finding
	for _, name := range []string{"Alerts", "Drain", "NodeHealth"} {
		findings = append(findings, finding.Unknown(finding.ReportedReason("StaleStatus"), "the status of ClusterVersion is out of date").
			Do(finding.Accept(name), finding.Read("oc get clusterversion")).Named(name).From(finding.SourceHealth))
	}
	other := finding.Unknown(finding.ReportedReason("StaleStatus"),
		"the status of ClusterVersion is out of date").Named("Zoo.Animal").From(finding.SourceJob)
	other.Job = &finding.Job{Name: "animal"}
	doc.Verdict, doc.Findings = verdict.Fold(append(findings, other), doc.Expected, verdict.Policy{})
	golden.Compare(t, "testdata/one-cause.text", []byte(styled(t, doc, format.Style{})))
}
