package checktest

import (
	"regexp"
	"testing"

	"github.com/openshift/update-preflight/test/golden"
)

// timestamp is a time in an output, which differs from run to run.
var timestamp = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`)

// ExpectOutput fails the test unless the program, run as by Run, writes the text in
// testdata/output.txt, which is part of the gallery of checks. A time there is always the
// same one.
func (e *Environment) ExpectOutput(t *testing.T, environment ...string) {
	t.Helper()
	output, _, _ := e.execute(t, "text", append(environment, "KUBECONFIG="+e.serviceAccount))
	output = timestamp.ReplaceAll(output, []byte("2026-12-01T12:00:00Z"))
	golden.Compare(t, "testdata/output.txt", output)
}
