package commands_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

// recordAttack is an attack by a user with write access to ConfigMaps in the namespace of
// the records.
type recordAttack struct {
	attack string
	// forge changes the header of a Blocked run.
	forge func(t *testing.T, header *corev1.ConfigMap)
	// reported is a part of the message of "run" about the record.
	reported string
}

// An edited record is neither Ready nor reused: its checks run again.
func TestAttacksOnRecords(t *testing.T) {
	byDefault.use(t)
	blocked, header := blockedRun(t)
	var table bytes.Buffer
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "ATTACK\tREACHED\tREPORTED")
	for _, attack := range []recordAttack{
		{attack: "report, results and decision edited", forge: forgeAll, reported: "has a MAC that does not match its content"},
		{attack: "all edited, MACs removed", reported: "has no MAC", forge: func(t *testing.T, header *corev1.ConfigMap) {
			t.Helper()
			forgeAll(t, header)
			delete(header.Data, "record.mac")
			delete(header.Data, "verdict.mac")
		}},
		{
			attack: "completed and valid until 2999", reported: "has a MAC that does not match its content",
			forge: func(t *testing.T, header *corev1.ConfigMap) {
				t.Helper()
				forgeAll(t, header)
				replaceYear := func(text string) string { return strings.ReplaceAll(text, `"20`, `"29`) }
				header.Data["run.yaml"] = replaceYear(header.Data["run.yaml"])
				repack(t, header, "report.gz", replaceYear)
			},
		},
	} {
		t.Run(attack.attack, func(t *testing.T) {
			fmt.Fprintf(rows, "%s\tnothing\t%s\n", attack.attack, attack.reported)
			attack.run(t, blocked, header.DeepCopy())
		})
	}
	_ = rows.Flush() // to a buffer
	t.Log("\n" + table.String())
}

// blockedRun runs a check that fails, and returns its report with the header of its record.
func blockedRun(t *testing.T) (report.Report, *corev1.ConfigMap) {
	t.Helper()
	newKubelet(t, preflight.ExitFail).End()
	publish(t, map[string]animal{"ill": {Plain: true}})
	blocked := runPreflight(t, exit.Blocked, "--to", to)
	found, err := testCluster.Client(t).CoreV1().ConfigMaps(record.Namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: "preflight.openshift.io/record=" + blocked.Run.ID})
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("run %s has %d headers, want 1: %v", blocked.Run.ID, len(found.Items), err)
	}
	return blocked, &found.Items[0]
}

// run forges the record, which then is neither Ready nor reused.
func (a recordAttack) run(t *testing.T, blocked report.Report, header *corev1.ConfigMap) {
	t.Helper()
	a.forge(t, header)
	header.ResourceVersion = "" // whatever an attack before has written
	maps := testCluster.Client(t).CoreV1().ConfigMaps(record.Namespace)
	if _, err := maps.Update(t.Context(), header, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	status := call(t, "status", blocked.Run.ID)
	if status.Code != exit.Undecided || !strings.Contains(status.Stdout, "(UnauthenticRecord)") ||
		!strings.Contains(status.Stdout, "run --to "+to) {
		t.Errorf("status: exit code %d\n%s%s", status.Code, status.Stdout, status.Stderr)
	}
	again := program.Call(t, "run", "--to", to, "--prometheus", testCluster.Monitoring, "-o", "json")
	if again.Code != exit.Blocked || !strings.Contains(again.Stderr, a.reported) || strings.Contains(again.Stderr, "they do not run again") {
		t.Errorf("run: exit code %d\n%s%s", again.Code, again.Stdout, again.Stderr)
	}
	result := reportOf(t, again)
	if result.Run.ChecksFrom != "" || !slices.Equal(result.Verdict.Blocking, blocked.Verdict.Blocking) {
		t.Errorf("the checks were not run again: %+v", result.Run)
	}
	// The next attack is on the newest record again.
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "preflight.openshift.io/record=" + result.Run.ID}); err != nil {
		t.Fatal(err)
	}
	testCluster.ExpectNothingLeft(t)
}

// forgeAll replaces all failures in a header by passes.
func forgeAll(t *testing.T, header *corev1.ConfigMap) {
	t.Helper()
	pass := strings.NewReplacer(`"outcome":"Fail"`, `"outcome":"Pass"`, `"blocks":true`, `"blocks":false`, "Blocked", "Ready",
		`"effect":"Blocks"`, `"effect":"None"`)
	for key, text := range header.Data {
		header.Data[key] = pass.Replace(text)
	}
	header.Labels["preflight.openshift.io/decision"] = "Ready"
	for _, key := range []string{"results.gz", "report.gz"} {
		repack(t, header, key, pass.Replace)
	}
}

// repack changes a compressed entry of a header.
func repack(t *testing.T, header *corev1.ConfigMap, key string, change func(string) string) {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(header.BinaryData[key]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(change(string(text)))); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	header.BinaryData[key] = packed.Bytes()
}
