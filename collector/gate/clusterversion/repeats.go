package clusterversion

import (
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Repeats are the names of the open findings that f states a second time: CVO makes the condition
// Upgradeable of ClusterVersion of those of the ClusterOperators and of the admin gates, among other
// causes. There are none unless f is ClusterVersionUpgradeable, and all of its message is what these
// findings state. Where they are fixed, the condition ends.
//
// Source: setUpgradeableCondition in pkg/cvo/status.go of CVO, and for releases up to 4.22
// setUpgradeableConditions in pkg/cvo/upgradeable.go.
func Repeats(f finding.Finding, findings []finding.Finding) []string {
	if f.Name != nameClusterVersionUpgradeable || f.Outcome != preflight.Fail {
		return nil
	}
	var known []repeated
	for _, other := range findings {
		if text, ok := repeatable(other); ok {
			known = append(known, repeated{name: other.Name, text: text, open: other.Open()})
		}
	}
	names, all := consume(f.Message, known)
	if !all {
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type repeated struct {
	name, text string
	open       bool
}

func repeatable(f finding.Finding) (text string, ok bool) {
	operator, isOperator := strings.CutPrefix(f.Name, nameClusterOperatorUpgradeable+"-")
	switch {
	case isOperator && (f.Open() || operator == ownsignal.ClusterOperator && f.Reason == check.ReasonOwnSignal.String()):
		_, text, ok = strings.Cut(f.Message, `ClusterOperator "`+operator+`" reports Upgradeable=False: `)
		text, _, _ = strings.Cut(text, "\nThis blocks updates to another minor version than ")
	case strings.HasPrefix(f.Name, "AdminAck-") && f.Open():
		text, ok = f.Message, true
		if _, gate, found := strings.Cut(text, `only "true" counts: `); found {
			text = gate
		}
	}
	text = strings.TrimSpace(text)
	return text, ok && text != ""
}

// introduced lists the endings of a message that CVO may repeat, with and without its own introduction.
func introduced(message string) []string {
	const list = `Cluster should not be upgraded between minor (?:or major )?versions for multiple reasons:[^\n]*|` +
		`Multiple cluster operators should not be upgraded between minor (?:or major )?versions:`
	const one = `Cluster operator \S+ should not be upgraded between minor (?:or major )?versions:`
	ends := []string{message}
	for _, pattern := range []string{`^(?:` + list + `|` + one + `)`, `^` + one + ` [A-Z][A-Za-z0-9_]*:`} {
		if found := regexp.MustCompile(pattern).FindString(message); found != "" {
			ends = append(ends, listed(message[len(found):]))
		}
	}
	return ends
}

// listed is what follows a bullet, as CVO writes them.
func listed(text string) string { return strings.TrimLeft(text, "\n *") }

// consume takes the known texts out of a message; all is false where something else is in it, or
// nothing. A finding that is not open is the preflight's own, and has no name here.
func consume(message string, known []repeated) (names []string, all bool) {
	slices.SortStableFunc(known, func(a, b repeated) int { return len(b.text) - len(a.text) })
	for rest := strings.TrimSpace(message); rest != ""; {
		ends := introduced(rest)
		at, end := -1, ""
		for _, end = range ends {
			if at = slices.IndexFunc(known, func(r repeated) bool { return starts(end, r.text) }); at >= 0 {
				break
			}
		}
		switch {
		case at >= 0:
			if known[at].open {
				names = append(names, known[at].name)
			}
			rest = listed(end[len(known[at].text):])
			known = slices.Delete(known, at, at+1)
		case len(ends) > 1: // an introduction of a list
			rest = ends[1]
		default:
			return nil, false
		}
	}
	return names, len(names) > 0
}

// starts reports whether a message starts with a whole text.
func starts(message, text string) bool {
	rest, ok := strings.CutPrefix(message, text)
	return ok && (rest == "" || rest[0] == '\n' || rest[0] == ' ')
}
