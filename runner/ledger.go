package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
)

// ledger keeps every finding once, with the targets that it is about: of five
// hundred targets most say the same.
type ledger struct {
	candidates []report.Candidate

	mutex sync.Mutex
	byKey map[[sha256.Size]byte]*entry
	asked []acceptance.Asked
}

// entry is one finding, about some targets by their place.
type entry struct {
	// own are the words about the first of them, general those about all.
	own, general finding.Finding
	targets      []int
}

func newLedger(candidates []report.Candidate) *ledger {
	return &ledger{candidates: candidates, byKey: map[[sha256.Size]byte]*entry{}, asked: make([]acceptance.Asked, len(candidates))}
}

func (l *ledger) enter(target int, asked acceptance.Asked, findings []finding.Finding) {
	version := l.candidates[target].Version
	entries := make([]*entry, len(findings))
	keys := make([][sha256.Size]byte, len(findings))
	for i, f := range findings {
		f.BlockedTargets = nil
		entries[i] = &entry{own: f, general: generalize(f, version)}
		keys[i] = key(entries[i].general)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.asked[target] = asked
	for i, key := range keys {
		if l.byKey[key] == nil {
			l.byKey[key] = entries[i]
		}
		known := l.byKey[key]
		if len(known.targets) == 0 || known.targets[len(known.targets)-1] != target {
			known.targets = append(known.targets, target)
		}
	}
}

// generalize words a finding about one target as it holds for others.
func generalize(f finding.Finding, version string) finding.Finding {
	f.Message = withoutVersion(f.Message, version)
	f.Remediation = withoutVersion(f.Remediation, version)
	return f
}

// withoutVersion puts report.AnyTarget in the place of the version, but not of
// a part of a longer one.
func withoutVersion(text, version string) string {
	if version == "" || !strings.Contains(text, version) {
		return text
	}
	var general strings.Builder
	done := 0
	for {
		next := strings.Index(text[done:], version)
		if next < 0 {
			return general.String() + text[done:]
		}
		start, end := done+next, done+next+len(version)
		general.WriteString(text[done:start])
		if isPart(text[:start], text[end:]) {
			general.WriteString(version)
		} else {
			general.WriteString(report.AnyTarget)
		}
		done = end
	}
}

// isPart says whether what stands between the two is a part of a longer
// version or name: a dot behind it may end a sentence.
func isPart(before, after string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const inside = letters + "+-"
	if before != "" && strings.ContainsRune(inside+".", rune(before[len(before)-1])) {
		return true
	}
	after, dot := strings.CutPrefix(after, ".")
	if dot {
		return after != "" && strings.ContainsRune(letters, rune(after[0]))
	}
	return after != "" && strings.ContainsRune(inside, rune(after[0]))
}

// key is the same for findings that read the same.
func key(f finding.Finding) [sha256.Size]byte {
	text, err := json.Marshal(f)
	if err != nil {
		text = []byte(f.Name) // strings, numbers and lists of them: there is nothing that could fail
	}
	return sha256.Sum256(text)
}

// findings are all of them, in the order of a report, with the versions of the
// targets that they are about.
func (l *ledger) findings() []report.TargetFinding {
	all := make([]report.TargetFinding, 0, len(l.byKey))
	for _, entry := range l.byKey {
		slices.Sort(entry.targets)
		about := make([]string, 0, len(entry.targets))
		for _, target := range entry.targets {
			about = append(about, l.candidates[target].Version)
		}
		about = slices.Compact(about)
		f := entry.general
		if len(about) == 1 {
			f = entry.own
		}
		if f.Blocks {
			f.BlockedTargets = about
		}
		all = append(all, report.TargetFinding{Finding: f, Targets: about})
	}
	slices.SortFunc(all, func(a, b report.TargetFinding) int {
		return cmp.Or(finding.Compare(a.Finding, b.Finding), slices.Compare(a.Targets, b.Targets))
	})
	return all
}
