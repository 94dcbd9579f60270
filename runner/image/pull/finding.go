package pull

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

// mostGroups bounds the findings about images.
const mostGroups = 10

// The severities of groups, the worst first.
const (
	severityFinal = iota
	severityOpen
	severityNone
)

type group struct {
	// components whose images were not pulled.
	nodes, components []string
	// incomplete, remedy and actions are as in Result, of the first node.
	incomplete, remedy string
	actions            []finding.Action
	detail             string
	final              bool
}

// findingsOf makes one finding for each distinct result.
func findingsOf(attempts []attempt, images map[string]string) []finding.Finding {
	groups := map[string]*group{}
	for _, each := range attempts {
		one := groupOf(each, images)
		key := strings.Join(one.components, ",") + " " + one.incomplete
		if groups[key] == nil {
			groups[key] = &one
			continue
		}
		groups[key].nodes = append(groups[key].nodes, each.node)
		groups[key].final = groups[key].final || one.final
	}
	var sorted []*group
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		sorted = append(sorted, groups[key])
	}
	var findings []finding.Finding
	for _, each := range worstGroups(sorted) {
		findings = append(findings, each.finding(len(images)))
	}
	return findings
}

// worstGroups returns the groups by severity, then by number of nodes. The nodes that
// have all images are one group, the last. Of the others at most mostGroups are
// returned: the last of them combines the rest, with the severity of its worst group.
func worstGroups(groups []*group) []*group {
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.severity(), b.severity()), cmp.Compare(len(b.nodes), len(a.nodes)))
	})
	failed := slices.IndexFunc(groups, func(each *group) bool { return each.severity() == severityNone })
	if failed < 0 {
		failed = len(groups)
	}
	if failed <= mostGroups {
		return groups
	}
	rest := *groups[mostGroups-1]
	rest.incomplete = fmt.Sprintf("%d more causes, the first: %s", failed-mostGroups+1, cmp.Or(rest.incomplete, rest.detail))
	for _, each := range groups[mostGroups:failed] {
		rest.nodes = append(rest.nodes, each.nodes...)
		rest.components = append(rest.components, each.components...)
	}
	slices.Sort(rest.components)
	rest.components = slices.Compact(rest.components)
	return slices.Concat(groups[:mostGroups-1], []*group{&rest}, groups[failed:])
}

func (g *group) severity() int {
	switch {
	case g.final:
		return severityFinal
	case len(g.components) > 0, g.incomplete != "":
		return severityOpen
	}
	return severityNone
}

func groupOf(each attempt, images map[string]string) group {
	one := group{nodes: []string{each.node}, incomplete: each.Incomplete, remedy: each.Remedy, actions: each.Actions}
	for _, component := range slices.Sorted(maps.Keys(images)) {
		failure, failed := each.Failed[images[component]]
		if !failed {
			continue
		}
		one.components = append(one.components, component)
		one.detail, one.final = cmp.Or(one.detail, failure.Detail), one.final || failure.Final
		if one.remedy == "" {
			one.remedy, one.actions = failure.Remedy, failure.Actions
		}
	}
	return one
}

func (g *group) finding(images int) finding.Finding {
	slices.Sort(g.nodes)
	return g.outcome(images).Named(Name).About(objects(g.nodes)...).Observed(map[string]string{
		"nodes": strconv.Itoa(len(g.nodes)), "images": strconv.Itoa(images), "failed": strconv.Itoa(len(g.components)),
	})
}

func (g *group) outcome(images int) finding.Finding {
	nodes := words.List(g.nodes, mostNames)
	switch {
	case len(g.components) > 0:
		message := fmt.Sprintf("%s cannot pull %d of %s: %s (%s)", nodes, len(g.components), words.Count(images, "image"), words.List(g.components, mostNames), g.detail)
		if g.incomplete != "" {
			message += "; " + g.incomplete
		}
		if g.final {
			return finding.Fail(reasonImagePullFailed, "%s", message).Remedy("%s", g.remedy).Do(g.actions...)
		}
		return finding.Unknown(reasonImagePullFailing, "%s", message).Remedy("%s", g.remedy).Do(g.actions...)
	case g.incomplete != "":
		return finding.Unknown(reasonImagePullNotTried, "unknown whether %s can pull the images: %s", nodes, g.incomplete).
			Remedy("%s", cmp.Or(g.remedy, "Fix what the message names, or run the preflight again with a longer timeout.")).
			Do(g.retryActions()...)
	}
	return finding.Pass(gap.Proven("the pulls by the nodes"), reasonImagesPulled, "%s: %s, all pulled or present", nodes, words.Count(images, "image"))
}

func (g *group) retryActions() []finding.Action {
	longer := func(a finding.Action) bool { return a.Type == finding.ActionRetry && a.Value == finding.OptionTimeout }
	if slices.ContainsFunc(g.actions, longer) {
		return g.actions
	}
	return append(slices.Clip(g.actions), finding.Retry(finding.OptionTimeout))
}
