package image

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
)

var digestName = finding.NewName("ImageDigest",
	"The findings about images for which a registry serves different content. Accepting the findings about missing "+
		"images does not accept these.")

const (
	// mostNames bounds the images in a message.
	mostNames = 5
	// mostGroups bounds the findings of one name.
	mostGroups = 10
)

// group is all images that are unavailable for the same cause at the same places.
type group struct {
	reason  finding.Reason
	outcome preflight.Outcome
	// places are the common prefixes of the places; exact are their names if they
	// are the same for all images, else the prefixes.
	places, exact string
	// text, remedy and actions are about the first image.
	text, remedy string
	actions      []finding.Action
	components   []string
	// mirror is the first mirror that was tried; empty when none was.
	mirror string
}

// findings returns one Pass, or one finding for each group of unavailable images.
func (c Check) findings(results []result) []finding.Finding {
	groups := map[string]*group{}
	missing := 0
	for _, each := range results {
		if each.failure == nil {
			continue
		}
		missing += len(each.components)
		one := c.groupOf(each)
		key := one.reason.String() + " " + one.places
		if groups[key] == nil {
			groups[key] = &one
			continue
		}
		groups[key].components = append(groups[key].components, one.components...)
		if groups[key].exact != one.exact {
			groups[key].exact = one.places
		}
	}
	evidence := c.evidence(results, missing)
	if len(groups) == 0 {
		return []finding.Finding{finding.Pass(gap.Proven("the responses of the registries"), reasonImagesPresent,
			"%s available from where nodes would pull them, of %s in total", words.Count(len(c.Images), "image"), evidence["size"]).
			Named(Name).Observed(evidence)}
	}
	var mismatched, others []*group
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if groups[key].reason == reasonDigestMismatch {
			mismatched = append(mismatched, groups[key])
		} else {
			others = append(others, groups[key])
		}
	}
	var findings []finding.Finding
	for _, each := range slices.Concat(worstGroups(mismatched), worstGroups(others)) {
		findings = append(findings, c.finding(each, evidence))
	}
	return findings
}

// worstGroups returns at most mostGroups groups, by severity, then by number of images.
// The last one combines the rest, with the severity of its worst group.
func worstGroups(groups []*group) []*group {
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(len(b.components), len(a.components)))
	})
	if len(groups) <= mostGroups {
		return groups
	}
	rest := *groups[mostGroups-1]
	places := map[string]bool{}
	for _, each := range groups[mostGroups-1:] {
		places[each.places] = true
	}
	for _, each := range groups[mostGroups:] {
		rest.components = append(rest.components, each.components...)
	}
	rest.exact = fmt.Sprintf("%d more places, for %d more causes", len(places), len(groups)-mostGroups+1)
	if rest.reason != reasonDigestMismatch {
		rest.reason = reasonMoreImages
	}
	return append(groups[:mostGroups-1:mostGroups-1], &rest)
}

func severity(g *group) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown}, g.outcome)
}

func (c Check) groupOf(each result) group {
	one := group{components: each.components, reason: collector.ReasonError, outcome: preflight.Unknown}
	for _, place := range each.places {
		if place.Mirror {
			one.mirror = cmp.Or(one.mirror, place.Repository)
		}
	}
	failed, ok := errors.AsType[*registry.Error](each.failure)
	if ok {
		one.reason, one.text = failed.Reason, failed.Error()
		one.remedy, one.actions = failed.Remediation, failed.Actions
	}
	rejected, final := errors.AsType[*violation](each.failure)
	if final {
		one.reason, one.outcome, one.text = rejected.reason, rejected.outcome, rejected.text
		each.places = each.places[len(each.places)-1:] // the place that served it
	}
	one.places, one.exact = cmp.Or(placeNames(each.places, common), "anywhere"), cmp.Or(placeNames(each.places, exact), "anywhere")
	switch one.reason {
	case registry.ReasonImageNotFound:
		one.reason, one.outcome = reasonImagesMissing, preflight.Fail
	case registry.ReasonRegistryNotAllowed, registry.ReasonRegistryBlocked:
		one.outcome = preflight.Fail
	}
	if !ok && !final {
		one.text = words.External(each.failure.Error())
	}
	if remedy, actions := c.remedy(one); remedy != "" {
		one.remedy, one.actions = remedy, actions
	}
	one.remedy = cmp.Or(one.remedy, "Fix the problem in the message, then run the preflight again.")
	return one
}

// remedy returns the remedy that depends on the release and the mirror, and its commands; empty if the registry
// package's remedy applies.
func (c Check) remedy(one group) (string, []finding.Action) {
	from, to := c.Release.Image, one.mirror
	switch {
	case one.reason == reasonArchitectureMissing && to == "":
		return "Choose the release for the architectures of the nodes, or mirror it for all of them with --keep-manifest-list.", nil
	case one.reason == reasonArchitectureMissing:
		return "Choose the release for the architectures of the nodes, or mirror it for all of them.",
			[]finding.Action{finding.OnThisMachine("oc adm release mirror --keep-manifest-list --from=%s --to=%s", from, to)}
	case one.reason == reasonInvalidManifest:
		return "Do not update to this release: nodes cannot run the image.", nil
	case one.reason == reasonDigestMismatch && one.mirror == "":
		return "Do not pull from this registry, and report to its operators that it serves different content than " +
			"requested.", nil
	case one.reason == reasonImagesMissing && one.mirror == "":
		return "Check the pull spec, then ask the operators of the registry, or mirror the release.",
			[]finding.Action{finding.OnThisMachine("oc adm release info %s", from)}
	case one.reason == reasonImagesMissing, one.reason == registry.ReasonMirrorIncomplete,
		one.reason == reasonBlobsMissing, one.reason == reasonDigestMismatch:
		again := "Mirror the release again, with the tool that mirrored it before, such as oc-mirror."
		if to == "" {
			return again, nil
		}
		return again, []finding.Action{finding.OnThisMachine("oc adm release mirror --from=%s --to=%s", from, to)}
	}
	return "", nil
}

func (c Check) finding(g *group, evidence map[string]string) finding.Finding {
	slices.Sort(g.components)
	evidence = maps.Clone(evidence)
	evidence["concerned"] = strconv.Itoa(len(g.components))
	state := map[finding.Reason]string{
		reasonImagesMissing: "missing from", reasonBlobsMissing: "incomplete at", reasonDigestMismatch: "served with " +
			"different content at",
		reasonInvalidManifest: "not valid at", reasonArchitectureMissing: "not for all nodes at",
		registry.ReasonRegistryNotAllowed: "not allowed from", registry.ReasonRegistryBlocked: "not allowed from",
		reasonMoreImages: "not available from",
	}[g.reason]
	name := Name
	if g.reason == reasonDigestMismatch {
		name = digestName
	}
	return finding.New(g.outcome, g.reason, "%d of %s are %s %s: %s (%s)", len(g.components), words.Count(len(c.Images), "image"),
		cmp.Or(state, "not known to be at"), g.exact, listed(g.components), g.example()).
		Named(name).Remedy("%s", g.remedy).Do(g.actions...).Observed(evidence)
}

func (g *group) example() string {
	if len(g.components) == 1 {
		return g.text
	}
	return "the first: " + g.text
}

func (c Check) evidence(results []result, missing int) map[string]string {
	size, layers := sizeOf(results)
	evidence := map[string]string{
		"images": strconv.Itoa(len(c.Images)), "found": strconv.Itoa(len(c.Images) - missing),
		"bytes": strconv.FormatInt(size, 10), "size": humanSize(size), "layers": strconv.Itoa(layers),
	}
	from := map[string]int{}
	for _, each := range results {
		if each.failure == nil {
			from[common(each.places[len(each.places)-1])] += len(each.components)
		}
	}
	for place, count := range from {
		evidence["from "+place] = strconv.Itoa(count)
	}
	return evidence
}

// sizeOf returns the total size in bytes and the number of the distinct layers of the
// architecture with the largest total, since a node has one architecture.
func sizeOf(results []result) (size int64, count int) {
	sizes := map[string]map[string]int64{"": {}}
	for _, each := range results {
		for architecture, layers := range each.layers {
			if sizes[architecture] == nil {
				sizes[architecture] = map[string]int64{}
			}
			for _, layer := range layers {
				sizes[architecture][layer.Digest.String()] = layer.Size
			}
		}
	}
	for architecture := range sizes {
		distinct := maps.Clone(sizes[""]) // all nodes pull images without an index
		maps.Copy(distinct, sizes[architecture])
		var total int64
		for _, layer := range distinct {
			total += layer
		}
		if total >= size {
			size, count = total, len(distinct)
		}
	}
	return size, count
}

// placeNames joins the distinct names of places.
func placeNames(places []registry.Place, name func(registry.Place) string) string {
	var names []string
	for _, place := range places {
		if !slices.Contains(names, name(place)) {
			names = append(names, name(place))
		}
	}
	return strings.Join(names, ", then ")
}

func exact(place registry.Place) string { return place.Repository }

// common is the host and the first namespace, so that the repositories of one mirror are one place.
func common(place registry.Place) string {
	if parts := strings.Split(place.Repository, "/"); len(parts) > 2 {
		return strings.Join(parts[:2], "/")
	}
	return place.Repository
}

// listed sanitizes the first names and counts the others.
func listed(names []string) string {
	first := slices.Clone(names[:min(mostNames, len(names))])
	for i := range first {
		first[i] = words.External(first[i])
	}
	return words.ListOf(first, len(names))
}

func humanSize(bytes int64) string {
	const mebi, gibi = 1 << 20, 1 << 30
	if bytes < gibi {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/mebi)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibi)
}
