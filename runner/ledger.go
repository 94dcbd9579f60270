package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"regexp"
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
	candidates []report.Candidate

	mutex sync.Mutex
	byKey map[[sha256.Size]byte]*entry
	asked []acceptance.Asked
}

// entry is one finding, about some targets by their place.
type entry struct {
	// own are the words about the first of them, general those about all.
	own, general preflight.Finding
	targets      []int
}

func newLedger(candidates []report.Candidate) *ledger {
	return &ledger{candidates: candidates, byKey: map[[sha256.Size]byte]*entry{}, asked: make([]acceptance.Asked, len(candidates))}
}

func (l *ledger) enter(target int, asked acceptance.Asked, findings []preflight.Finding) {
	version := versionIn(l.candidates[target].Version)
	entries := make([]*entry, len(findings))
	keys := make([][sha256.Size]byte, len(findings))
	for i, finding := range findings {
		finding.BlockedTargets = nil
		entries[i] = &entry{own: finding, general: generalize(finding, version)}
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

// versionIn finds a version in a text, but not as a part of a longer one.
func versionIn(version string) *regexp.Regexp {
	if version == "" {
		return regexp.MustCompile(`a^`) // no text has it
	}
	const before, after = `(^|[^0-9A-Za-z.+-])`, `($|[^0-9A-Za-z.+-]|[.]($|[^0-9A-Za-z]))`
	return regexp.MustCompile(before + regexp.QuoteMeta(version) + after)
}

// generalize words a finding about one target as it holds for others.
func generalize(finding preflight.Finding, version *regexp.Regexp) preflight.Finding {
	for _, text := range []*string{&finding.Message, &finding.Remediation} {
		for range 2 { // of two that share the character between them, each time one is found
			*text = version.ReplaceAllString(*text, "${1}"+report.AnyTarget+"${2}")
		}
	}
	return finding
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
		finding := entry.general
		if len(about) == 1 {
			finding = entry.own
		}
		if finding.Blocks {
			finding.BlockedTargets = about
		}
		all = append(all, report.TargetFinding{Finding: finding, Targets: about})
	}
	slices.SortFunc(all, func(a, b report.TargetFinding) int {
		return cmp.Or(verdict.Compare(a.Finding, b.Finding), slices.Compare(a.Targets, b.Targets))
	})
	return all
}
