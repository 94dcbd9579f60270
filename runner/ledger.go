package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// ledger keeps every finding once, with the targets that it is about: of five
// hundred targets most say the same.
type ledger struct {
	mutex sync.Mutex
	byKey map[[sha256.Size]byte]*entry
	asked []acceptance.Asked
}

// entry is one finding, about some targets by their place.
type entry struct {
	finding preflight.Finding
	targets []int
}

func newLedger(targets int) *ledger {
	return &ledger{byKey: map[[sha256.Size]byte]*entry{}, asked: make([]acceptance.Asked, targets)}
}

func (l *ledger) enter(target int, asked acceptance.Asked, findings []preflight.Finding) {
	keys := make([][sha256.Size]byte, len(findings))
	for i := range findings {
		findings[i].BlockedTargets = nil
		keys[i] = key(findings[i])
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.asked[target] = asked
	for i, finding := range findings {
		if l.byKey[keys[i]] == nil {
			l.byKey[keys[i]] = &entry{finding: finding}
		}
		known := l.byKey[keys[i]]
		if !slices.Contains(known.targets, target) {
			known.targets = append(known.targets, target)
		}
	}
}

// key is the same for findings that read the same.
func key(finding preflight.Finding) [sha256.Size]byte {
	text, err := json.Marshal(finding)
	if err != nil {
		text = []byte(finding.Name) // strings, numbers and lists of them: there is nothing that could fail
	}
	return sha256.Sum256(text)
}

// findings are all of them, in the order of a report, with the versions of the
// targets as the candidates have them.
func (l *ledger) findings(candidates []report.Candidate) []report.TargetFinding {
	all := make([]report.TargetFinding, 0, len(l.byKey))
	for _, entry := range l.byKey {
		slices.Sort(entry.targets)
		about := make([]string, 0, len(entry.targets))
		for _, target := range entry.targets {
			about = append(about, candidates[target].Version)
		}
		about = slices.Compact(about)
		if entry.finding.Blocks {
			entry.finding.BlockedTargets = about
		}
		all = append(all, report.TargetFinding{Finding: entry.finding, Targets: about})
	}
	slices.SortFunc(all, func(a, b report.TargetFinding) int {
		return cmp.Or(verdict.Compare(a.Finding, b.Finding), slices.Compare(a.Targets, b.Targets))
	})
	return all
}
