package image

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
)

const ReasonImagesPresent finding.Reason = "ImagesPresent"

// The reasons of findings, beside those of registry.Error.
const (
	reasonMissing      = "ImagesMissing"
	reasonBlobs        = "BlobsMissing"
	reasonLie          = "DigestMismatch"
	reasonInvalid      = "InvalidManifest"
	reasonTooLarge     = "ManifestTooLarge"
	reasonArchitecture = "ArchitectureMissing"
	// reasonMore is that of all groups which have no finding of their own.
	reasonMore = "MoreImages"
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
	reason  string
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

// judge makes findings of the results: one that says that all is well, or one
// for each group.
func (c Check) judge(results []result) []finding.Finding {
	groups := map[string]*group{}
	missing := 0
	for _, each := range results {
		if each.failure == nil {
			continue
		}
		missing += len(each.components)
		one := c.groupOf(each)
		key := one.reason + " " + one.places
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
			"%d images are where nodes would pull them; a node that needed all of them would pull %s", len(c.Images), evidence["size"]).
			Named(Name).Observed(evidence)}
	}
	var lies, others []*group
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if groups[key].reason == reasonLie {
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
	if rest.reason != reasonLie {
		rest.reason = reasonMore
	}
	return append(groups[:mostGroups-1:mostGroups-1], &rest)
}

func severity(g *group) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown}, g.outcome)
}

// groupOf says why one image is not to be had.
func (c Check) groupOf(each result) group {
	one := group{components: each.components, reason: "Error", outcome: preflight.Unknown}
	for _, place := range each.places {
		if place.Mirror {
			one.mirror = cmp.Or(one.mirror, place.Repository)
		}
	}
	failed, ok := errors.AsType[*registry.Error](each.failure)
	if ok {
		one.reason, one.answer, one.remedy = failed.Reason, failed.Error(), failed.Remediation
	}
	refused, final := errors.AsType[*refusal](each.failure)
	if final {
		one.reason, one.outcome, one.answer = refused.reason, refused.outcome, refused.text
		each.places = each.places[len(each.places)-1:] // the place that said so
	}
	one.places, one.exact = cmp.Or(called(each.places, common), "anywhere"), cmp.Or(called(each.places, exact), "anywhere")
	switch one.reason {
	case "ImageNotFound":
		one.reason, one.outcome = reasonMissing, preflight.Fail
	case "RegistryNotAllowed", "RegistryBlocked":
		one.outcome = preflight.Fail
	}
	if !ok && !final {
		one.answer = oneLine(each.failure.Error())
	}
	one.remedy = cmp.Or(c.remedy(one), one.remedy, "Put right what the message names, then run the preflight again.")
	return one
}

// remedy is what to do where it depends on what is amiss with the image; empty
// where the registry package knows better.
func (c Check) remedy(one group) string {
	switch {
	case one.reason == reasonArchitecture:
		return "Choose the release for the architectures of the nodes; on a mirror, mirror it with all of them: oc adm release mirror --keep-manifest-list"
	case one.reason == reasonInvalid:
		return "Do not update to this release: nodes cannot run the image."
	case one.reason == reasonLie && one.mirror == "":
		return "Do not pull from there. Report it to whoever runs the registry: what it serves is not what was asked for."
	case one.reason == reasonMissing && one.mirror == "":
		return "See whether the pull spec is right: oc adm release info " + c.Release.Image + "; then ask whoever runs the registry, or mirror the release."
	case one.reason == reasonMissing, one.reason == reasonBlobs, one.reason == reasonLie:
		return fmt.Sprintf("Mirror the release again: oc adm release mirror --from=%s --to=%s; with oc-mirror: oc mirror --v2 --config=imageset-config.yaml docker://HOST",
			c.Release.Image, cmp.Or(one.mirror, "REPOSITORY"))
	}
	return ""
}

func (c Check) finding(g *group, evidence map[string]string) finding.Finding {
	slices.Sort(g.components)
	evidence = maps.Clone(evidence)
	evidence["concerned"] = strconv.Itoa(len(g.components))
	said := map[string]string{
		reasonMissing: "missing from", reasonBlobs: "incomplete at", reasonLie: "not what was promised at",
		reasonInvalid: "not valid at", reasonArchitecture: "not for all nodes at",
		"RegistryNotAllowed": "not allowed from", "RegistryBlocked": "not allowed from", reasonMore: "not to be had from",
	}[g.reason]
	f := finding.Finding{Finding: preflight.Finding{
		Name:        Name,
		Outcome:     g.outcome,
		Reason:      g.reason,
		Evidence:    evidence,
		Remediation: g.remedy,
		Message: fmt.Sprintf("%d of %d images are %s %s: %s (%s)", len(g.components), len(c.Images),
			cmp.Or(said, "not known to be at"), g.exact, some(g.components), g.example()),
	}}
	if g.reason == reasonLie {
		f.Name = digestName
	}
	return f
}

// example is what was answered for the first image.
func (g *group) example() string {
	if len(g.components) == 1 {
		return g.answer
	}
	return "for one of them: " + g.answer
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

// oneLine makes text from outside fit for a message.
func oneLine(text string) string { return words.Line(text, maxText) }
