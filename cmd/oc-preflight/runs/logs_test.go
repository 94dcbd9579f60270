package runs_test

import (
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/records"
)

func TestLogsOfDeletedPods(t *testing.T) {
	w := newWorld(t)
	other := records.Failed("Etcd.Members", "NoQuorum")
	id := w.Detached('1', []string{"Etcd.Quorum", "Etcd.Space"}, record.Result{Check: "Etcd.Quorum", Findings: []finding.Finding{other}})
	for _, name := range []string{"Etcd.Quorum", "Etcd.Members"} {
		got := w.call(exit.Ready, "logs", id, name)
		w.contains(got.Stderr, "the pods of Etcd.Quorum and their logs were deleted; these are its recorded findings:\n")
		w.contains(got.Stdout, "FAIL  Etcd.Members (NoQuorum)\n    because of NoQuorum\n")
	}
	w.contains(w.call(exit.Failed, "logs", id, "Etcd.Space").Stderr, "error: Etcd.Space has neither pods nor a result")
	w.contains(w.call(exit.BadInput, "logs", id, "Etcd.Sparce").Stderr, `has no check "Etcd.Sparce"; it has Etcd.Quorum, Etcd.Space`)
	w.call(exit.Ready, "cancel", id)
	w.contains(w.call(exit.Failed, "logs", id, "Etcd.Space").Stderr, "error: the pods of Etcd.Space were deleted, and the run ended before the check reported\n")
}
