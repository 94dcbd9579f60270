package pull

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonImagePullFailed   finding.Reason = "ImagePullFailed"
	ReasonImagePullFailing  finding.Reason = "ImagePullFailing"
	ReasonImagePullNotTried finding.Reason = "ImagePullNotTried"
	ReasonImagesPulled      finding.Reason = "ImagesPulled"
)

// mostNames bounds how many nodes or images a message names, mostGroups how many
// findings about images there are.
const (
	mostNames  = 5
	mostGroups = 10
)

// group is all nodes that fare alike.
type group struct {
	nodes, components []string
	trouble, remedy   string
	detail            string
	final             bool
}

// judge makes one finding for each way that nodes fared.
func judge(attempts []attempt, images map[string]string) []finding.Finding {
	groups := map[string]*group{}
	for _, each := range attempts {
		one := groupOf(each, images)
		key := strings.Join(one.components, ",") + " " + one.trouble
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
	for _, each := range fewer(sorted) {
		findings = append(findings, each.finding(len(images)))
	}
	return findings
}

// fewer are the groups, what fails and concerns the most nodes first; those that
// pulled everything are one group, and the last. Where they are too many, one has
// all nodes of the rest, and fails if any of these does.
func fewer(groups []*group) []*group {
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.severity(), b.severity()), cmp.Compare(len(b.nodes), len(a.nodes)))
	})
	failed := slices.IndexFunc(groups, func(each *group) bool { return each.severity() == wellDone })
	if failed < 0 {
		failed = len(groups)
	}
	if failed <= mostGroups {
		return groups
	}
	rest := *groups[mostGroups-1]
	rest.trouble = fmt.Sprintf("%d more ways to fail, the first: %s", failed-mostGroups+1, cmp.Or(rest.trouble, rest.detail))
	for _, each := range groups[mostGroups:failed] {
		rest.nodes = append(rest.nodes, each.nodes...)
		rest.components = append(rest.components, each.components...)
	}
	slices.Sort(rest.components)
	rest.components = slices.Compact(rest.components)
	return slices.Concat(groups[:mostGroups-1], []*group{&rest}, groups[failed:])
}

const wellDone = 2

// severity is less for what is worse.
func (g *group) severity() int {
	switch {
	case g.final:
		return 0
	case len(g.components) > 0, g.trouble != "":
		return 1
	}
	return wellDone
}

func groupOf(each attempt, images map[string]string) group {
	one := group{nodes: []string{each.node}, trouble: each.trouble, remedy: each.remedy}
	for _, component := range slices.Sorted(maps.Keys(images)) {
		failure, failed := each.failed[images[component]]
		if !failed {
			continue
		}
		one.components = append(one.components, component)
		one.detail, one.final = cmp.Or(one.detail, failure.Detail), one.final || failure.Final
		one.remedy = cmp.Or(one.remedy, failure.Remedy)
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
	switch {
	case len(g.components) > 0:
		message := fmt.Sprintf("%s cannot pull %d of %d images: %s (%s)", some(g.nodes), len(g.components), images, some(g.components), g.detail)
		if g.trouble != "" {
			message += "; " + g.trouble
		}
		if g.final {
			return finding.Fail(ReasonImagePullFailed, "%s", message).Remedy("%s", g.remedy)
		}
		return finding.Unknown(ReasonImagePullFailing, "%s", message).Remedy("%s", g.remedy)
	case g.trouble != "":
		return finding.Unknown(ReasonImagePullNotTried, "unknown whether %s can pull the images: %s", some(g.nodes), g.trouble).
			Remedy("%s", cmp.Or(g.remedy, "Fix what the message names, or run the preflight again with a longer timeout.")).
			Do(finding.Retry(finding.OptionTimeout))
	}
	return finding.Pass(ReasonImagesPulled, "%s: all %d images were pulled or present", some(g.nodes), images)
}

func objects(nodes []string) []preflight.Object {
	var named []preflight.Object
	for _, node := range nodes[:min(len(nodes), mostNames)] {
		named = append(named, preflight.Object{APIVersion: "v1", Kind: "Node", Name: node})
	}
	return named
}

func some(names []string) string {
	if len(names) > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}
