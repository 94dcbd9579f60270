package reportview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// quiet findings need no attention: what passed, and built-in checks that do not apply. A skipped Job gives its reason.
func quiet(f finding.Finding) bool {
	return f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped && f.Source != finding.SourceJob
}

// groups are the headings of findings by their effect on the verdict, in reading order.
func groups() []string {
	return []string{"Blocks the update", "Inconclusive", "Warnings", "Accepted, acknowledged or forced"}
}

func groupOf(f finding.Finding) int {
	switch {
	case f.Bypass != nil:
		return 3
	case f.Open() && f.Outcome == preflight.Fail:
		return 0
	case f.Open():
		return 1
	}
	return 2
}

// itemsOf are the findings that need attention, by group, those with the same cause as one. What was
// bypassed has no number, and what only repeats another finding is shown beneath it.
func itemsOf(findings []finding.Finding) []document.Item {
	leading, beneath := repeatedOf(findings)
	causes := causesOf(leading)
	slices.SortStableFunc(causes, func(a, b cause) int { return cmp.Compare(groupOf(a.finding), groupOf(b.finding)) })
	var items []document.Item
	for i, each := range causes {
		item := findingview.Item(each.finding)
		item.Names, item.Group = each.names, groups()[groupOf(each.finding)]
		addBeneath(&item, each.finding, beneath)
		if each.finding.Bypass == nil {
			item.Number = i + 1
		}
		items = append(items, item)
	}
	return items
}

type cause struct {
	names   []string
	finding finding.Finding
}

// causesOf groups the findings that need attention and differ only in their names, in the order of the report.
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
	key := fmt.Sprintf("%s %t %q %q %q %q %q %q", findingview.Label(f), f.Blocks, f.Reason, f.Message, f.Remediation, f.URL,
		sharedActions(f.Actions), f.Objects)
	if f.Bypass != nil {
		key += fmt.Sprintf(" %q", *f.Bypass)
	}
	return key
}

// sharedActions are the actions that do not name the finding: one command accepts all findings.
func sharedActions(actions []finding.Action) []finding.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a finding.Action) bool { return a.Type == finding.ActionAccept })
}

// quietOf has the names of what passed, and of what does not apply with the reason, and the conditions that are not
// evaluated; nothing if nothing passed or did not apply.
func quietOf(findings []finding.Finding) []document.Block {
	var passes, skips, unclear []string
	for _, f := range findings {
		if listed := f.Evidence[reported.NotEvaluated]; listed != "" && f.Source != finding.SourceJob {
			unclear = append(unclear, strings.Split(listed, ", ")...)
		}
		switch {
		case !quiet(f):
		case f.Outcome == preflight.Pass:
			passes = append(passes, f.Name)
		default:
			skips = append(skips, fmt.Sprintf("%s (%s)", f.Name, f.Reason))
		}
	}
	details := document.Details{Mark: document.Mark{Level: document.Good, Word: "PASS"}}
	if len(skips) > 0 {
		details.Blocks = append(details.Blocks, document.List{Lead: "SKIPPED", Entries: skips, Names: true})
	}
	if len(unclear) > 0 {
		details.Blocks = append(details.Blocks, document.List{Lead: "NOT EVALUATED", Entries: unclear, Names: true})
	}
	if len(passes) > 0 {
		details.Blocks = append(details.Blocks, document.List{Lead: "PASS", Entries: passes, Names: true})
	}
	switch {
	case len(passes)+len(skips) == 0:
		return nil
	case len(skips) == 0:
		details.Summary = fmt.Sprintf("%d passed", len(passes))
	case len(passes) == 0:
		details.Mark, details.Summary = document.Mark{Level: document.Neutral, Word: "SKIPPED"}, fmt.Sprintf("%d skipped", len(skips))
	default:
		details.Summary = fmt.Sprintf("%d passed, %d skipped", len(passes), len(skips))
	}
	return []document.Block{details}
}

// What findings require, or why they require nothing.
const (
	mustBeFixed  = "must be fixed"
	inconclusive = "inconclusive"
	warning      = "warning"
	passed       = "passed"
	skipped      = "skipped"
)

func requires(f finding.Finding) string {
	switch {
	case f.Bypass != nil:
		return findingview.Label(f)
	case f.Stops():
		return mustBeFixed
	case f.Inconclusive():
		return inconclusive
	case f.Outcome == preflight.Pass:
		return passed
	case f.Outcome == preflight.Skipped:
		return skipped
	}
	return warning
}

func plural(word string, number int) string {
	switch {
	case word == findingview.Acknowledged:
		return "acknowledged"
	case word == warning && number > 1:
		return "warnings"
	}
	return word
}

// counts returns the numbers of findings, preceded by the number of reporting checks if some are missing.
func (r Report) counts() string {
	text := countsOf(r.Findings)
	if r.Run.Phase == report.PhaseRunning || r.Expected.Reported < r.Expected.Checks {
		reported := fmt.Sprintf("%d of %s reported", r.Expected.Reported, words.Count(r.Expected.Checks, "check"))
		return strings.TrimSuffix(reported+", "+text, ", ")
	}
	return cmp.Or(text, "no findings")
}

// countsOf are the numbers of findings by what they require, without those that are shown beneath others.
func countsOf(findings []finding.Finding) string {
	numbers := map[string]int{}
	leading, _ := repeatedOf(findings)
	for _, f := range leading {
		numbers[requires(f)]++
	}
	var parts []string
	for _, each := range []string{mustBeFixed, inconclusive, warning, findingview.Accepted, findingview.Acknowledged, passed, skipped} {
		if n := numbers[each]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(each, n)))
		}
	}
	return strings.Join(parts, ", ")
}

// repeatedOf separates the findings that lead from those that are shown beneath one of them, by its name: of a finding
// and its cause the more urgent one leads, and otherwise the cause. A finding whose causes are not all among them leads.
func repeatedOf(findings []finding.Finding) (leading []finding.Finding, beneath map[string][]finding.Finding) {
	above := aboveOf(findings)
	beneath = map[string][]finding.Finding{}
	for _, f := range findings {
		top := f.Name
		for range above { // a stored report may have a cycle
			if above[top] == "" {
				break
			}
			top = above[top]
		}
		if top == f.Name || above[top] != "" {
			leading = append(leading, f)
			continue
		}
		beneath[top] = append(beneath[top], f)
	}
	return leading, beneath
}

// aboveOf are the names of the findings beneath which others are shown.
func aboveOf(findings []finding.Finding) map[string]string {
	byName, above := map[string]finding.Finding{}, map[string]string{}
	for _, f := range findings {
		if _, ok := byName[f.Name]; !ok && !quiet(f) && f.Bypass == nil {
			byName[f.Name] = f
		}
	}
	for _, f := range findings {
		unknown := func(name string) bool { _, ok := byName[name]; return !ok }
		if _, known := byName[f.Name]; !known || len(f.CausedBy) == 0 || slices.ContainsFunc(f.CausedBy, unknown) {
			continue
		}
		if first := byName[f.CausedBy[0]]; groupOf(first) <= groupOf(f) {
			above[f.Name] = first.Name
			continue
		}
		for _, cause := range f.CausedBy {
			if above[cause] == "" {
				above[cause] = f.Name
			}
		}
	}
	return above
}

// addBeneath names the findings beneath the entry of a finding, and adds the commands of the findings that cause
// it.
func addBeneath(item *document.Item, leading finding.Finding, beneath map[string][]finding.Finding) {
	var facts []document.Fact
	for _, name := range item.Names {
		for _, f := range beneath[name] {
			facts = append(facts, document.Fact{Lead: "Also:", Text: f.Name + " (" + f.Reason + ")", Brief: true})
			if slices.Contains(leading.CausedBy, f.Name) {
				item.Commands = append(item.Commands, findingview.Item(f).Commands...)
			}
		}
	}
	item.Facts = append(facts, item.Facts...)
}
