package runs_test

import (
	"encoding/json"
	"testing"

	"github.com/openshift/update-preflight/collector/report/diff"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/records"
)

func TestDiff(t *testing.T) {
	w := newWorld(t)
	before := w.Completed('1', records.Report(records.Failed("Etcd.Quorum", "NoQuorum"), records.Failed("Etcd.Space", "Full")), nil)
	after := w.Completed('1', records.Report(records.Passed("Etcd.Quorum"), records.Finding("Etcd.Space", preflight.Unknown, "ImagePull")),
		nil)

	w.contains(w.call(exit.Ready, "diff", before, after[:8]).Stdout, "Undecided now, Blocked before.\n",
		"Findings   0 new, 1 changed, 1 fixed, 0 the same\n",
		"CHANGED  Etcd.Space is UNKNOWN (ImagePull), was FAIL (Full)\n", "FIXED  Etcd.Quorum is PASS (Passed), was FAIL (NoQuorum)\n",
		"Verdict: Blocked before, Undecided now\n")

	var changes diff.Changes
	if err := json.Unmarshal([]byte(w.call(exit.Ready, "diff", before, before, "-o", "json").Stdout), &changes); err != nil {
		t.Fatal(err)
	}
	if len(changes.New)+len(changes.Changed)+len(changes.Fixed) != 0 || changes.Same != 2 {
		t.Errorf("a run must not differ from itself: %+v", changes)
	}

	w.contains(w.call(exit.Ready, "diff", before).Stdout, "Before     Blocked of run "+before)
	w.contains(w.call(exit.Ready, "diff").Stdout, "of run "+before, "of run "+after)

	running := w.Detached('2', []string{"Etcd.Quorum"})
	w.contains(w.call(exit.Failed, "diff", before, running).Stderr,
		"run "+running+" is in progress and cannot be compared\nhint: Show it: oc preflight status "+running+"\n")
}
