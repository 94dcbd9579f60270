package faults_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/build"
)

// The version of a newer build of oc-preflight, and the format of the records that it writes.
const (
	newerVersion = "v99.0.0"
	newerFormat  = "2"
)

// buildNewer returns the path of a newer build of oc-preflight. It differs in what the linker
// sets only.
func buildNewer(t *testing.T) string {
	t.Helper()
	const module = "github.com/openshift/update-preflight/"
	newer := build.Variant{Name: "oc-preflight-newer", Variables: []string{
		module + "cmd/internal/program.version=" + newerVersion,
		module + "runner/record/recordformat.format=" + newerFormat,
	}}
	path, err := newer.Compile(t.Context(), "cmd/oc-preflight")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// rejectFormat starts a run with a tool whose record has a newer format. The current
// version must reject it with the format, without an effect on the run.
func (s *suite) rejectFormat(t *testing.T) {
	t.Helper()
	e := s.acquire(t, checks{first: patient})
	newer := e.startTool(t, buildNewer(t), local.Kubeconfig)
	var got result
	t.Cleanup(func() {
		s.table.add(t, "run held by a tool with another format", got, newer.Started, "refused by this one")
	})
	newer.AwaitOutput(t, "Zoo.First: running")
	rejecting := e.start(t, local.Kubeconfig)
	if code, output := rejecting.Wait(t), rejecting.Stderr(); code != 1 ||
		!strings.Contains(output, fmt.Sprintf("recorded in format %q", newerFormat)) {
		t.Errorf("exit code %d, want 1 and the format of the record:\n%s", code, output)
	}
	if printed := rejecting.Stdout(); printed != "" {
		t.Errorf("the program must not print a report:\n%s", printed)
	}
	e.releaseCheck(t)
	var decided report.Report
	got, decided = newer.result(t)
	if got.Decision != "Ready" || decided.Run.ToolVersion != newerVersion {
		t.Errorf("the decision of the tool %s is %s, want Ready of %s:\n%s", decided.Run.ToolVersion, got.Decision, newerVersion, newer.Stderr())
	}
	e.expectExecutions(t, once())
	e.expectNoResidue(t)
}
