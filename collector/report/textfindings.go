package report

import (
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	page "github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// writeItems writes the findings that need attention, those with the same cause as one:
// what counts against the update and the warnings by number, then what was bypassed. On a
// terminal without details, only names are written of what does not count where something
// else does: its cause and its command would not be on the screen.
func writeItems(p *page.Page, findings []finding.Finding) {
	number := 0
	short := p.Style().Brief() && slices.ContainsFunc(findings, finding.Finding.Open)
	others := map[string][]string{}
	for _, bypassed := range []bool{false, true} {
		for _, one := range causesOf(findings) {
			switch {
			case (one.finding.Bypass != nil) != bypassed:
			case short && !one.finding.Open():
				label := page.Label(one.finding)
				others[label] = append(others[label], one.names...)
			case bypassed:
				p.Item(0, one.names, one.finding)
			default:
				number++
				p.Item(number, one.names, one.finding)
			}
		}
	}
	for _, label := range page.Labels() {
		if len(others[label]) > 0 {
			p.Marked("", label, words.List(others[label], maxOthers))
		}
	}
}

// maxOthers bounds the names of findings that do not count, on a terminal.
const maxOthers = 3

// cause is what several findings have in common.
type cause struct {
	names   []string
	finding finding.Finding
}

// causesOf groups the findings that need attention and differ only in their names, in
// the order of the report.
func causesOf(findings []finding.Finding) []cause {
	var causes []cause
	place := map[string]int{}
	for _, f := range findings {
		if quiet(f) {
			continue
		}
		key := keyOf(f)
		at, ok := place[key]
		if f.Job != nil || f.Message == "" || !ok {
			place[key] = len(causes)
			causes = append(causes, cause{names: []string{f.Name}, finding: f})
			continue
		}
		causes[at].names = append(causes[at].names, f.Name)
		causes[at].finding.Actions = sharedActions(f.Actions)
	}
	return causes
}

// keyOf is all of a finding that is shown, but for its name.
func keyOf(f finding.Finding) string {
	key := fmt.Sprintf("%s %t %q %q %q %q %q %q", page.Label(f), f.Blocks, f.Reason, f.Message, f.Remediation, f.URL, sharedActions(f.Actions), f.Objects)
	if f.Bypass != nil {
		key += fmt.Sprintf(" %q", *f.Bypass)
	}
	return key
}

// sharedActions are the actions that do not name the finding: one command accepts all findings.
func sharedActions(actions []finding.Action) []finding.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a finding.Action) bool { return a.Type == finding.ActionAccept })
}

// writeCounted counts what passed and what does not apply; with details it lists them.
func writeCounted(p *page.Page, findings []finding.Finding) {
	if p.Style().Details {
		writeQuiet(p, findings)
		return
	}
	numbers := map[string]int{}
	for _, f := range findings {
		if quiet(f) {
			numbers[requires(f)]++
		}
	}
	hint := ""
	if p.Style().Hint != "" {
		hint = " (" + p.Style().Hint + ")"
	}
	switch {
	case numbers[passed] > 0 && numbers[skipped] > 0:
		p.Marked("", "PASS", fmt.Sprintf("%d passed, %d skipped%s", numbers[passed], numbers[skipped], hint))
	case numbers[passed] > 0:
		p.Marked("", "PASS", fmt.Sprintf("%d passed%s", numbers[passed], hint))
	case numbers[skipped] > 0:
		p.Marked("", "SKIPPED", fmt.Sprintf("%d skipped%s", numbers[skipped], hint))
	}
}

// writeQuiet lists the quiet findings, what was skipped with the reason.
func writeQuiet(p *page.Page, findings []finding.Finding) {
	var passed, skipped []string
	for _, f := range findings {
		switch {
		case !quiet(f):
		case f.Outcome == preflight.Pass:
			passed = append(passed, f.Name)
		default:
			skipped = append(skipped, fmt.Sprintf("%s (%s)", f.Name, f.Reason))
		}
	}
	if len(skipped) > 0 {
		p.Names("SKIPPED", skipped)
	}
	if len(passed) > 0 {
		p.Names("PASS", passed)
	}
}
