package e2e_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/story"
)

// The story of `make demo`: one fails, one warns, one passes, an ack is
// missing; then the remedies, and it is Ready.
func TestStory(t *testing.T) {
	directory := t.TempDir()
	if _, err := story.Prepare(t.Context(), local, root, directory, func(string) {}); err != nil {
		t.Fatal(err)
	}
	before := reported(t, 3, "--to-latest")
	const gate = "AdminAck-" + story.Gate
	want := map[string]preflight.Outcome{
		"ReleaseSignature": preflight.Pass,
		"ReleasePayload":   preflight.Pass,
		"ReadOnlyGuard":    preflight.Pass,
		"Alerts":           preflight.Pass,
		"Images":           preflight.Pass,
		"ReadOnlyAccess-openshift-cloud-credential-operator.cloud-credential-preflight": preflight.Pass,
		"ReadOnlyAccess-openshift-ingress-operator.ingress-preflight":                   preflight.Warn, // it reads Secrets of any name
		"ReadOnlyAccess-openshift-machine-config-operator.machine-config-preflight":     preflight.Pass,
		gate: preflight.Fail,
		"CloudCredentialOperator.CloudPermissions":        preflight.Pass,
		"CloudCredentialOperator.CloudSecrets":            preflight.Pass,
		"ClusterIngressOperator.DefaultCertificate":       preflight.Fail,
		"ClusterIngressOperator.DefaultCertificateExpiry": preflight.Pass,
		"MachineConfigOperator.IgnitionVersion":           preflight.Warn,
	}
	outcomes := map[string]preflight.Outcome{}
	for name, f := range byName(before) {
		if _, known := want[name]; known || f.Blocks || f.Outcome == preflight.Warn {
			outcomes[name] = f.Outcome
		}
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes of the checks of the story, and of what is not well: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{gate, "ClusterIngressOperator.DefaultCertificate"}, before.Verdict.Blocking); diff != "" {
		t.Errorf("blocking: -want +got:\n%s", diff)
	}
	house.ExpectNothingLeft(t)

	remedies, err := story.Remedies(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, remedy := range remedies {
		follow(t, remedy)
	}
	after := reported(t, 0, "--to-latest")
	if after.Verdict.Decision != verdict.Ready || len(after.Verdict.Blocking) > 0 {
		t.Errorf("after the remedies: %+v", after.Verdict)
	}
	if bypass := byName(after)[gate].Bypass; bypass == nil || bypass.By != finding.ByAdminAck {
		t.Errorf("the acknowledged gate is not marked as such: %+v", byName(after)[gate])
	}
	house.ExpectNothingLeft(t)
}

// follow types what a remedy says.
func follow(t *testing.T, remedy story.Remedy) {
	t.Helper()
	if remedy.Command[0] == "kubectl" {
		house.Kubectl(t, remedy.Command[1:]...)
		return
	}
	if got := call(t, remedy.Command[1:]...); got.Code != 0 {
		t.Fatalf("%s: exit code %d: %s", strings.Join(remedy.Command, " "), got.Code, got.Stderr)
	}
}

// The shape of the report is what scripts depend on. Fields may be added here,
// and never go.
func TestReportHasItsShape(t *testing.T) {
	publish(t, map[string]animal{"ill": {Ending: "fail"}})
	got := call(t, "run", "--to", to, "-o", "json")
	var decided map[string]any
	if err := json.Unmarshal([]byte(got.Stdout), &decided); err != nil {
		t.Fatal(err)
	}
	delete(decided, "duration") // optional: only a cluster with MachineConfigPools has it
	shape := map[string][]string{
		"":         {"actions", "apiVersion", "cluster", "created", "cvo", "expected", "findings", "kind", "run", "target", "verdict"},
		"run":      {"completionTime", "id", "phase", "startTime", "toolVersion"},
		"cluster":  {"id", "image", "kubernetes", "version"},
		"target":   {"image", "signers", "updateKind", "verified", "version"},
		"verdict":  {"accepted", "blocking", "decision", "forced", "undecided", "validUntil"},
		"expected": {"checks", "reported"},
		"cvo":      {"accepts", "message", "reason"},
	}
	for section, want := range shape {
		fields := decided
		if section != "" {
			fields, _ = decided[section].(map[string]any)
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(fields))); diff != "" {
			t.Errorf("fields of %q: -want +got:\n%s", section, diff)
		}
	}
	findings, _ := decided["findings"].([]any)
	first, _ := findings[0].(map[string]any)
	want := []string{"blocks", "effect", "job", "message", "name", "outcome", "reason", "remediation", "source"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(first))); diff != "" {
		t.Errorf("fields of a finding: -want +got:\n%s", diff)
	}
	job, _ := first["job"].(map[string]any)
	delete(job, "waits") // optional: only a Job that had to wait has it
	want = []string{"attempts", "completionTime", "exitCode", "name", "namespace", "node", "startTime"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(job))); diff != "" {
		t.Errorf("fields of its job: -want +got:\n%s", diff)
	}
}

// The demo itself is what a newcomer runs first.
func TestDemo(t *testing.T) {
	demo := exec.CommandContext(t.Context(), "go", "run", "./test/story/demo")
	demo.Dir = root
	out, err := demo.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Verdict: Blocked", "oc preflight ack " + story.Gate, "Verdict: Ready", "Clear: 2 updates from " + story.From + " to " + story.Later} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
}
