package reportview

import (
	"slices"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/finding"
)

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

// addBeneath names the findings beneath the entry of a finding, and adds the commands of those that cause it.
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
