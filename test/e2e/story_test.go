package e2e_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/script"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// The story of `make demo`, the first command of a newcomer: one check fails, one warns, one
// passes, and an acknowledgement is missing. After the remedies, the update is Ready, and after the update, it was Good.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	demo, err := terminal.New(&out, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	demo.Cluster, demo.Monitoring, demo.Preflight = local, testCluster.Monitoring, testCluster.Program(t)
	err = demo.Prepare(t.Context())
	if err == nil {
		err = script.Preflight(t.Context(), demo)
	}
	t.Logf("%s", &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Verdict: Blocked", "oc preflight ack " + story.Gate, "Verdict: Ready",
		"Clear: 2 updates from " + story.From + " to " + story.Later, "Good: the update from " + story.From + " to " + story.To,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
	testCluster.ExpectNothingLeft(t)
	expectBlocked(t, recorded(t, 1))
	after := recorded(t, 0)
	if after.Verdict.Decision != verdict.Ready || len(after.Verdict.Blocking) > 0 {
		t.Errorf("after the remedies: %+v", after.Verdict)
	}
	const counts = "1 of new kinds, 0 in new namespaces, 0 rejected, 0 without an answer; next pods: 1 of 1 workload accepted"
	if f := byName(after)["Rehearsal"]; f.Outcome != preflight.Pass || f.Source != finding.SourceRehearsal ||
		!strings.Contains(f.Message, counts) {
		t.Errorf("the rehearsal of the writes: %+v", f)
	}
	if bypass := byName(after)[storyGate].Bypass; bypass == nil || bypass.By != finding.ByAdminAck {
		t.Errorf("the acknowledged gate is not marked as acknowledged: %+v", byName(after)[storyGate])
	}
}

// storyGate is the name of the finding about the gate of the story.
const storyGate = "AdminAck-" + story.Gate

// expectBlocked verifies the report of the story before the remedies.
func expectBlocked(t *testing.T, before report.Report) {
	t.Helper()
	want := map[string]preflight.Outcome{
		"ReleaseSignature": preflight.Pass,
		"ReleasePayload":   preflight.Pass,
		"ReadOnlyGuard":    preflight.Pass,
		"Alerts":           preflight.Pass,
		"Images":           preflight.Pass,
		"ReadOnlyAccess-openshift-cloud-credential-operator.cloud-credential-preflight": preflight.Warn, // it reads the Secret of the credentials
		"ReadOnlyAccess-openshift-ingress-operator.ingress-preflight":                   preflight.Warn, // its role reads all Secrets
		"ReadOnlyAccess-openshift-machine-config-operator.machine-config-preflight":     preflight.Pass,
		storyGate: preflight.Fail,
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
	if diff := cmp.Diff([]string{storyGate, "ClusterIngressOperator.DefaultCertificate"}, before.Verdict.Blocking); diff != "" {
		t.Errorf("blocking: -want +got:\n%s", diff)
	}
}

// recorded returns the report of a recorded run; 0 is the newest.
func recorded(t *testing.T, index int) report.Report {
	t.Helper()
	runs, err := recordstore.New(testCluster.Client(t)).List(t.Context())
	if err != nil || len(runs) <= index {
		t.Fatalf("%d runs are recorded, error %v", len(runs), err)
	}
	got := call(t, "status", runs[index].ID, "-o", "json", "--prometheus", testCluster.Monitoring)
	decided, err := report.Read(strings.NewReader(got.Stdout))
	if err != nil {
		t.Fatalf("status: exit code %d, %v\n%s", got.Code, err, got.Stderr)
	}
	return decided
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
		"run":      {"baseline", "completionTime", "id", "phase", "startTime", "toolVersion"},
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
