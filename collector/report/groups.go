package report

import (
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// group are findings with the same effect on the verdict, under a heading.
type group struct {
	title    string
	findings []finding.Finding
}

// quiet findings need no attention: what passed, and built-in checks that do not
// apply to this cluster or update. A Job that skips gives its reason.
func quiet(f finding.Finding) bool {
	return f.Outcome == preflight.Pass || f.Outcome == preflight.Skipped && f.Source != finding.SourceJob
}

// groupsOf are the findings that need attention, by what they do to the verdict. Groups
// without findings are left out.
func groupsOf(findings []finding.Finding) []group {
	all := []group{{title: "Blocks the update"}, {title: "Inconclusive"}, {title: "Accepted, acknowledged or forced"}, {title: "Warnings"}}
	for _, f := range findings {
		switch {
		case f.Open() && f.Outcome == preflight.Fail:
			all[0].findings = append(all[0].findings, f)
		case f.Open():
			all[1].findings = append(all[1].findings, f)
		case f.Bypass != nil:
			all[2].findings = append(all[2].findings, f)
		case !quiet(f):
			all[3].findings = append(all[3].findings, f)
		}
	}
	var groups []group
	for _, each := range all {
		if len(each.findings) > 0 {
			groups = append(groups, each)
		}
	}
	return groups
}

// quietNames are the names of what passed, and of what does not apply.
func quietNames(findings []finding.Finding) (passed, skipped []string) {
	for _, f := range findings {
		switch {
		case !quiet(f):
		case f.Outcome == preflight.Pass:
			passed = append(passed, f.Name)
		default:
			skipped = append(skipped, f.Name)
		}
	}
	return passed, skipped
}

// objectNames are kinds and names of objects.
func objectNames(objects []preflight.Object) []string {
	var names []string
	for _, object := range objects {
		names = append(names, strings.TrimSpace(object.Kind+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")))
	}
	return names
}

// askedGroup are checks that are evaluated again for the same reason.
type askedGroup struct {
	reason string
	names  []string
}

// askedAgain groups the checks by reason, in the order of the report.
func (r Report) askedAgain() []askedGroup {
	var groups []askedGroup
	for _, each := range r.AskedAgain {
		i := slices.IndexFunc(groups, func(g askedGroup) bool { return g.reason == each.Reason })
		if i < 0 {
			groups = append(groups, askedGroup{reason: each.Reason})
			i = len(groups) - 1
		}
		groups[i].names = append(groups[i].names, each.Name)
	}
	return groups
}
