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
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
)

// digestName is the name of findings about a registry that cannot be trusted:
// whoever accepts that images are missing does not thereby accept these.
const digestName = "ImageDigest"

const (
	// mostNames bounds how many images a message names, mostGroups how many
	// findings of one name there are.
	mostNames  = 5
	mostGroups = 10
	maxText    = 512
)

// group is all images that are not to be had for the same cause, from the same
// places.
type group struct {
	reason  finding.Reason
	outcome preflight.Outcome
	// places is what the places have in common, exact their names where all of
	// the images have the same.
	places, exact string
	// remedy and answer are those of the first image.
	remedy, answer string
	components     []string
	// mirror is the first mirror that was asked, if any was.
	mirror string
}

// findings are those of the results: one Pass, or one for each group.
func (c Check) findings(results []result) []finding.Finding {
	groups := map[string]*group{}
	missing := 0
	for _, each := range results {
		if each.failure == nil {
			continue
		}
		missing += len(each.components)
		one := c.groupOf(each)
		key := string(one.reason) + " " + one.places
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
		return []finding.Finding{finding.Pass(ReasonImagesPresent,
			"%d images are available from where nodes would pull them; all of them together have %s", len(c.Images), evidence["size"]).
			Named(Name).Observed(evidence)}
	}
	var lies, others []*group
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if groups[key].reason == ReasonDigestMismatch {
			lies = append(lies, groups[key])
		} else {
			others = append(others, groups[key])
		}
	}
	var findings []finding.Finding
	for _, each := range slices.Concat(fewer(lies), fewer(others)) {
		findings = append(findings, c.finding(each, evidence))
	}
	return findings
}

// fewer are the groups, what fails and concerns the most images first. Where they
// are too many, the last one has all images of the rest, and fails if any of
// these does.
func fewer(groups []*group) []*group {
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
	if rest.reason != ReasonDigestMismatch {
		rest.reason = ReasonMoreImages
	}
	return append(groups[:mostGroups-1:mostGroups-1], &rest)
}

func severity(g *group) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown}, g.outcome)
}

// groupOf says why one image is not to be had.
func (c Check) groupOf(each result) group {
	one := group{components: each.components, reason: collector.ReasonError, outcome: preflight.Unknown}
	for _, place := range each.places {
		if place.Mirror {
			one.mirror = cmp.Or(one.mirror, place.Repository)
		}
	}
	failed, ok := errors.AsType[*registry.Error](each.failure)
	if ok {
		one.reason, one.answer, one.remedy = failed.Reason, failed.Error(), failed.Remediation
	}
	rejected, final := errors.AsType[*violation](each.failure)
	if final {
		one.reason, one.outcome, one.answer = rejected.reason, rejected.outcome, rejected.text
		each.places = each.places[len(each.places)-1:] // the place that said so
	}
	one.places, one.exact = cmp.Or(called(each.places, common), "anywhere"), cmp.Or(called(each.places, exact), "anywhere")
	switch one.reason { //nolint:exhaustive // the other reasons keep their outcome
	case registry.ReasonImageNotFound:
		one.reason, one.outcome = ReasonImagesMissing, preflight.Fail
	case registry.ReasonRegistryNotAllowed, registry.ReasonRegistryBlocked:
		one.outcome = preflight.Fail
	}
	if !ok && !final {
		one.answer = oneLine(each.failure.Error())
	}
	one.remedy = cmp.Or(c.remedy(one), one.remedy, "Fix what the message names, then run the preflight again.")
	return one
}

// remedy is what to do where it depends on what is amiss with the image; empty
// where the registry package knows better.
func (c Check) remedy(one group) string {
	switch {
	case one.reason == ReasonArchitectureMissing:
		return "Choose the release for the architectures of the nodes; on a mirror, mirror it for all of them with oc adm release mirror --keep-manifest-list."
	case one.reason == ReasonInvalidManifest:
		return "Do not update to this release: nodes cannot run the image."
	case one.reason == ReasonDigestMismatch && one.mirror == "":
		return "Do not pull from this registry, and report to its operators that it serves other content than requested."
	case one.reason == ReasonImagesMissing && one.mirror == "":
		return "Check the pull spec with oc adm release info " + c.Release.Image + "; then ask the operators of the registry, or mirror the release."
	case one.reason == ReasonImagesMissing, one.reason == ReasonBlobsMissing, one.reason == ReasonDigestMismatch:
		return fmt.Sprintf("Mirror the release again: oc adm release mirror --from=%s --to=%s; with oc-mirror: oc mirror --v2 --config=imageset-config.yaml docker://HOST",
			c.Release.Image, cmp.Or(one.mirror, "REPOSITORY"))
	}
	return ""
}

func (c Check) finding(g *group, evidence map[string]string) finding.Finding {
	slices.Sort(g.components)
	evidence = maps.Clone(evidence)
	evidence["concerned"] = strconv.Itoa(len(g.components))
	problem := map[finding.Reason]string{
		ReasonImagesMissing: "missing from", ReasonBlobsMissing: "incomplete at", ReasonDigestMismatch: "served with other content at",
		ReasonInvalidManifest: "not valid at", ReasonArchitectureMissing: "not for all nodes at",
		registry.ReasonRegistryNotAllowed: "not allowed from", registry.ReasonRegistryBlocked: "not allowed from", ReasonMoreImages: "not available from",
	}[g.reason]
	f := finding.Finding{Finding: preflight.Finding{
		Name:        Name,
		Outcome:     g.outcome,
		Reason:      string(g.reason),
		Evidence:    evidence,
		Remediation: g.remedy,
		Message: fmt.Sprintf("%d of %d images are %s %s: %s (%s)", len(g.components), len(c.Images),
			cmp.Or(problem, "not known to be at"), g.exact, some(g.components), g.example()),
	}}
	if g.reason == ReasonDigestMismatch {
		f.Name = digestName
	}
	return f
}

// example is what was answered for the first image.
func (g *group) example() string {
	if len(g.components) == 1 {
		return g.answer
	}
	return "the first: " + g.answer
}

// evidence counts.
func (c Check) evidence(results []result, missing int) map[string]string {
	size, layers := weigh(results)
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

// weigh adds up the distinct layers of the architecture that has the most, since
// a node has but one.
func weigh(results []result) (size int64, count int) {
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
		distinct := maps.Clone(sizes[""]) // all nodes pull what is not in an index
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

// called names places.
func called(places []registry.Place, name func(registry.Place) string) string {
	var names []string
	for _, place := range places {
		if !slices.Contains(names, name(place)) {
			names = append(names, name(place))
		}
	}
	return strings.Join(names, ", then ")
}

func exact(place registry.Place) string { return place.Repository }

// common is the host and the first namespace, so that those of one mirror are
// one place, whatever repository an image has there.
func common(place registry.Place) string {
	if parts := strings.Split(place.Repository, "/"); len(parts) > 2 {
		return strings.Join(parts[:2], "/")
	}
	return place.Repository
}

func some(names []string) string {
	names = slices.Clone(names)
	for i := range names {
		names[i] = oneLine(names[i])
	}
	if len(names) > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}

func humanSize(bytes int64) string {
	const mebi, gibi = 1 << 20, 1 << 30
	if bytes < gibi {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/mebi)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibi)
}

// oneLine sanitizes external text for a message.
func oneLine(text string) string { return words.Line(text, maxText) }
