package targets

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

// targetFindings has every finding once, with the targets that it is about: most
// findings are the same for all of five hundred targets.
type targetFindings struct {
	candidates []report.Candidate

	mutex  sync.Mutex
	byKey  map[[sha256.Size]byte]*sharedFinding
	judged []acceptance.Target
}

// sharedFinding is one finding of some targets, given by index.
type sharedFinding struct {
	// own is worded for the first of them, general for all.
	own, general finding.Finding
	targets      []int
}

func newTargetFindings(candidates []report.Candidate) *targetFindings {
	return &targetFindings{candidates: candidates, byKey: map[[sha256.Size]byte]*sharedFinding{}, judged: make([]acceptance.Target, len(candidates))}
}

func (t *targetFindings) add(target int, judged acceptance.Target, findings []finding.Finding) {
	version := t.candidates[target].Version
	entries := make([]*sharedFinding, len(findings))
	keys := make([][sha256.Size]byte, len(findings))
	for i, f := range findings {
		f.BlockedTargets = nil
		entries[i] = &sharedFinding{own: f, general: generalize(f, version)}
		keys[i] = key(entries[i].general)
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.judged[target] = judged
	for i, key := range keys {
		if t.byKey[key] == nil {
			t.byKey[key] = entries[i]
		}
		known := t.byKey[key]
		if len(known.targets) == 0 || known.targets[len(known.targets)-1] != target {
			known.targets = append(known.targets, target)
		}
	}
}

// generalize words a finding about one target for any target.
func generalize(f finding.Finding, version string) finding.Finding {
	f.Message = withoutVersion(f.Message, version)
	f.Remediation = withoutVersion(f.Remediation, version)
	f.Actions = slices.Clone(f.Actions)
	for i := range f.Actions {
		f.Actions[i] = f.Actions[i].Mapped(func(word string) string { return withoutVersion(word, version) })
	}
	return f
}

// withoutVersion replaces the version by report.AnyTarget, but not where it is
// part of a longer one.
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

// isPart reports whether the text between before and after is part of a longer
// version or name: a dot after it may end a sentence.
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

// key is equal for equal findings.
func key(f finding.Finding) [sha256.Size]byte {
	text, err := json.Marshal(f)
	if err != nil {
		text = []byte(f.Name) // strings, numbers and lists of them always encode
	}
	return sha256.Sum256(text)
}

// all are the findings in the order of a report, with the versions of the targets
// that they are about.
func (t *targetFindings) all() []report.TargetFinding {
	all := make([]report.TargetFinding, 0, len(t.byKey))
	for _, shared := range t.byKey {
		slices.Sort(shared.targets)
		about := make([]string, 0, len(shared.targets))
		for _, target := range shared.targets {
			about = append(about, t.candidates[target].Version)
		}
		about = slices.Compact(about)
		f := shared.general
		if len(about) == 1 {
			f = shared.own
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
