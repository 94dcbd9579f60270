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
		message := fmt.Sprintf("%s cannot pull %d of %s: %s (%s)", nodes, len(g.components), words.Count(images, "image"),
			words.List(g.components, mostNames), g.detail)
		if g.incomplete != "" {
			message += "; " + g.incomplete
		}
		if g.final {
			return finding.Fail(reasonImagePullFailed, "%s", message).Remedy("%s", g.remedy).Do(g.actions...)
		}
		return finding.Unknown(reasonImagePullFailing, "%s", message).Remedy("%s", g.remedy).Do(g.actions...)
	case g.incomplete != "":
		return finding.Unknown(reasonImagePullNotTried, "unknown whether %s can pull the images: %s", nodes, g.incomplete).
			Remedy("%s", cmp.Or(g.remedy, "Fix the problem in the message, or run the preflight again with a longer timeout.")).
			Do(g.retryActions()...)
	}
	return finding.Pass(gap.Proven("the pulls by the nodes"), reasonImagesPulled, "%s: %s, all pulled or present", nodes,
		words.Count(images, "image"))
}

func (g *group) retryActions() []finding.Action {
	longer := func(a finding.Action) bool { return a.Type == finding.ActionRetry && a.Value == finding.OptionTimeout }
	if slices.ContainsFunc(g.actions, longer) {
		return g.actions
	}
	return append(slices.Clip(g.actions), finding.Retry(finding.OptionTimeout))
}

var (
	reasonNothingToPull = finding.NewReason("NothingToPull", finding.Explanation{
		Meaning: "There are no images to pull.",
		Cause:   "The release has no checks to run.",
	})
	reasonNoNode = finding.NewReason("NoNode", finding.Explanation{
		Meaning: "No node can pull images.",
		Cause:   "All nodes are cordoned, not ready, or short of disk space.",
		Remedy:  "Provide a node that is ready, schedulable and has free disk space.",
		Command: "oc get nodes",
	})
	reasonNodeCordoned = finding.NewReason("NodeCordoned", finding.Explanation{
		Meaning: "Images are not pulled onto cordoned nodes.",
		Cause:   "The nodes are marked unschedulable.",
		Remedy:  "None needed; uncordon a node to include it: `oc adm uncordon NODE`.",
	})
	reasonNodeNotReady = finding.NewReason("NodeNotReady", finding.Explanation{
		Meaning: "Images are not pulled onto nodes that are not ready.",
		Cause:   "The kubelet of the node is stopped, failing or unreachable.",
		Remedy:  "Restore the node: `oc describe node NODE`.",
	})
	reasonImagesPulled = finding.NewReason("ImagesPulled", finding.Explanation{
		Meaning: "The nodes have all images.",
		Cause:   "The images were pulled, or were already present.",
	})
	reasonImagePullFailed = finding.NewReason("ImagePullFailed", finding.Explanation{
		Meaning: "A node cannot pull an image, and retrying does not help.",
		Cause:   "The image is missing, or the node may not pull it.",
		Remedy:  "Fix the problem in the message, then run the preflight again.",
	})
	reasonImagePullFailing = finding.NewReason("ImagePullFailing", finding.Explanation{
		Meaning: "A node did not pull an image in time; a retry may succeed.",
		Cause:   "The registry or the network is failing temporarily.",
		Remedy:  "Fix the problem in the message, then run the preflight again.",
	})
	reasonImagePullNotTried = finding.NewReason("ImagePullNotTried", finding.Explanation{
		Meaning: "A node did not try to pull all images.",
		Cause:   "The Job or its pod was not started, was evicted, or exceeded the deadline.",
		Remedy:  "Fix the problem in the message, or run the preflight again with a longer timeout.",
	})
	reasonDiskPressure = finding.NewReason("DiskPressure", finding.Explanation{
		Meaning: "Nodes have the condition DiskPressure. No image is pulled onto them.",
		Cause:   "The disk of the node is almost full.",
		Remedy:  "Remove unused images and pods, or enlarge the disk.",
	})
	reasonDiskTooSmall = finding.NewReason("DiskTooSmall", finding.Explanation{
		Meaning: "Nodes have less free image space than the compressed images need. No image is pulled onto them.",
		Cause:   "The disk of the node is too small or too full.",
		Remedy:  "Remove unused images and pods, or enlarge the disk.",
	})
	reasonDiskSpaceLow = finding.NewReason("DiskSpaceLow", finding.Explanation{
		Meaning: "The free space of nodes may be too small for the unpacked images.",
		Cause:   "Unpacked layers need several times the space of compressed layers.",
		Remedy:  "Remove unused images and pods, or enlarge the disk.",
	})
	reasonDiskSpace = finding.NewReason("DiskSpace", finding.Explanation{
		Meaning: "No node is known to be short of disk space.",
		Cause:   "No node has the condition DiskPressure, and all known free space is sufficient.",
	})
)
