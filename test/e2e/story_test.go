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

// The story of `make demo`: one check fails, one warns, one passes, and an acknowledgement
// is missing. After the remedies, the update is Ready.
func TestStory(t *testing.T) {
	directory := t.TempDir()
	if _, err := story.Prepare(t.Context(), local, root, directory, func(string) {}); err != nil {
		t.Fatal(err)
	}
	before := runPreflight(t, 3, "--to-latest")
	const gate = "AdminAck-" + story.Gate
	want := map[string]preflight.Outcome{
		"ReleaseSignature": preflight.Pass,
		"ReleasePayload":   preflight.Pass,
		"ReadOnlyGuard":    preflight.Pass,
		"Alerts":           preflight.Pass,
		"Images":           preflight.Pass,
		"ReadOnlyAccess-openshift-cloud-credential-operator.cloud-credential-preflight": preflight.Pass,
		"ReadOnlyAccess-openshift-ingress-operator.ingress-preflight":                   preflight.Warn, // its role reads all Secrets
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
		t.Errorf("outcomes of the story, and of all other warnings and failures: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{gate, "ClusterIngressOperator.DefaultCertificate"}, before.Verdict.Blocking); diff != "" {
		t.Errorf("blocking: -want +got:\n%s", diff)
	}
	testCluster.ExpectNothingLeft(t)

	remedies, err := story.Remedies(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, remedy := range remedies {
		follow(t, remedy)
	}
	after := runPreflight(t, 0, "--to-latest")
	if after.Verdict.Decision != verdict.Ready || len(after.Verdict.Blocking) > 0 {
		t.Errorf("after the remedies: %+v", after.Verdict)
	}
	if bypass := byName(after)[gate].Bypass; bypass == nil || bypass.By != finding.ByAdminAck {
		t.Errorf("the acknowledged gate is not marked as acknowledged: %+v", byName(after)[gate])
	}
	testCluster.ExpectNothingLeft(t)
}

// follow runs the command of a remedy.
func follow(t *testing.T, remedy story.Remedy) {
	t.Helper()
	if remedy.Command[0] == "kubectl" {
		testCluster.Kubectl(t, remedy.Command[1:]...)
		return
	}
	if got := call(t, remedy.Command[1:]...); got.Code != 0 {
		t.Fatalf("%s: exit code %d: %s", strings.Join(remedy.Command, " "), got.Code, got.Stderr)
	}
}

// Scripts depend on the fields of the report: fields may be added, but not removed.
func TestReportFields(t *testing.T) {
	publish(t, map[string]animal{"ill": {Ending: "fail"}})
	got := call(t, "run", "--to", to, "-o", "json")
	var result map[string]any
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil {
		t.Fatal(err)
	}
	delete(result, "duration") // only with MachineConfigPools
	sections := map[string][]string{
		"":         {"actions", "apiVersion", "cluster", "created", "cvo", "expected", "findings", "kind", "run", "target", "verdict"},
		"run":      {"completionTime", "id", "phase", "startTime", "toolVersion"},
		"cluster":  {"id", "image", "kubernetes", "version"},
		"target":   {"image", "signers", "updateKind", "verified", "version"},
		"verdict":  {"accepted", "blocking", "decision", "forced", "undecided", "validUntil"},
		"expected": {"checks", "reported"},
		"cvo":      {"accepts", "message", "reason"},
	}
	for section, want := range sections {
		fields := result
		if section != "" {
			fields, _ = result[section].(map[string]any)
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(fields))); diff != "" {
			t.Errorf("fields of %q: -want +got:\n%s", section, diff)
		}
	}
	findings, _ := result["findings"].([]any)
	first, _ := findings[0].(map[string]any)
	want := []string{"blocks", "effect", "job", "message", "name", "outcome", "reason", "remediation", "source"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(first))); diff != "" {
		t.Errorf("fields of a finding: -want +got:\n%s", diff)
	}
	job, _ := first["job"].(map[string]any)
	delete(job, "waits") // only for a Job that had to wait
	want = []string{"attempts", "completionTime", "exitCode", "name", "namespace", "node", "startTime"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(job))); diff != "" {
		t.Errorf("fields of its job: -want +got:\n%s", diff)
	}
}

// The demo is the first command of a newcomer.
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
