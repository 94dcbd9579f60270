package records_test

import (
	"encoding/json"
	"testing"

	"github.com/openshift/update-preflight/collector/diff"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestDiff(t *testing.T) {
	w := newWorld(t)
	before := w.ended('1', decided(found("Etcd.Quorum", preflight.Fail, "NoQuorum"), found("Etcd.Space", preflight.Fail, "Full")), nil)
	after := w.ended('1', decided(found("Etcd.Quorum", preflight.Pass, "Passed"), found("Etcd.Space", preflight.Unknown, "ImagePull")), nil)

	w.says(w.call(ready, "diff", before, after[:8]).stdout, "Undecided now, Blocked before.\n", "Findings   0 new, 1 changed, 1 fixed, 0 the same\n",
		"CHANGED  Etcd.Space: UNKNOWN (ImagePull), was FAIL (Full)\n", "FIXED    Etcd.Quorum: PASS (Passed), was FAIL (NoQuorum)\n",
		"Verdict: Blocked before, Undecided now\n")

	var changes diff.Changes
	if err := json.Unmarshal([]byte(w.call(ready, "diff", before, before, "-o", "json").stdout), &changes); err != nil {
		t.Fatal(err)
	}
	if len(changes.New)+len(changes.Changed)+len(changes.Fixed) != 0 || changes.Same != 2 {
		t.Errorf("a run differs from itself: %+v", changes)
	}

	w.says(w.call(ready, "diff", before).stdout, "Before     Blocked of run "+before)

	left := w.left('2', []string{"Etcd.Quorum"})
	w.says(w.call(failed, "diff", before, left).stderr, "run "+left+" is in progress and cannot be compared; show it with: oc preflight status "+left+"\n")
}
