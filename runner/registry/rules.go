package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/finding"
)

type settings struct {
	mirrors                    []mirrorSet
	blocked, insecure, allowed []string
	// release is the pull spec of the cluster's current release.
	release string
}

// rules are the content of a node's registries.conf, and the allowed registries of its policy.json.
type rules struct {
	entries           []entry
	insecure, allowed []string
	sets              []mirrorSet
}

// entry is a [[registry]] of registries.conf. The entry with the longest matching scope applies to an image.
type entry struct {
	scope           string
	digests, tags   []string
	never           bool
	blocked, unsafe bool
}

// newRules combines settings as the machine-config operator does, and reports those that it ignores. Of two policies for
// one source the stricter one applies; the check MirrorSets reports them (package health/mirrors).
func newRules(s settings) (rules, []finding.Finding) {
	entries := map[string]*entry{}
	at := func(scope string) *entry {
		if entries[scope] == nil {
			entries[scope] = &entry{scope: scope}
		}
		return entries[scope]
	}
	for _, set := range merge(s.mirrors) {
		into := at(set.source)
		into.never = into.never || set.never
		if set.tags {
			into.tags = set.mirrors
		} else {
			into.digests = set.mirrors
		}
	}
	for _, scope := range slices.Concat(s.blocked, s.insecure) {
		at(scope)
	}
	made := rules{insecure: s.insecure, allowed: s.allowed, sets: s.mirrors}
	for _, scope := range slices.Sorted(maps.Keys(entries)) {
		each := *entries[scope]
		each.unsafe = inside(scope, s.insecure)
		made.entries = append(made.entries, each)
	}
	blocked, ignored := made.blockable(s)
	for i := range made.entries {
		made.entries[i].blocked = inside(made.entries[i].scope, blocked)
	}
	return made, ignored
}

// blockable returns the blocked registries without those that the machine-config
// operator ignores: the repository of the current release, unless it has a mirror
// (pkg/controller/container-runtime-config/helpers.go,
// getValidBlockedAndAllowedRegistries).
func (r rules) blockable(s settings) ([]string, []finding.Finding) {
	reference, err := parse(s.release)
	if err != nil {
		return s.blocked, nil
	}
	repository := repositoryOf(reference)
	places := r.of(reference)
	open := slices.ContainsFunc(places, func(p Place) bool { return p.Closed == "" && !inside(p.Repository, s.blocked) })
	var blocked []string
	var ignored []finding.Finding
	for _, scope := range s.blocked {
		if open || !nested(repository, scope) {
			blocked = append(blocked, scope)
			continue
		}
		ignored = append(ignored, warning(finding.Warn(reasonBlockedRegistryIgnored,
			"blockedRegistries of image.config.openshift.io \"cluster\" has %q, which nodes ignore "+
				"because the current release was pulled from there", scope).
			Do(finding.Change(editImageConfig))))
	}
	return blocked, ignored
}

var nameAccess = finding.NewName("RegistryAccess", "The findings about the registry configuration of the cluster.")

func warning(f finding.Finding) finding.Finding {
	return f.Named(nameAccess).From(finding.SourcePayload)
}

// merge merges the sets of each source, separately for digests and tags, with the
// mirrors in an order consistent with all sets if one exists. A set whose only
// mirror is its source is ignored.
func merge(sets []mirrorSet) []mirrorSet {
	type key struct {
		source string
		tags   bool
	}
	lists := map[key][][]string{}
	never := map[key]bool{}
	for _, set := range sets {
		if !set.effective() {
			continue
		}
		at := key{set.source, set.tags}
		lists[at] = append(lists[at], set.mirrors)
		never[at] = never[at] || set.never
	}
	var merged []mirrorSet
	for at, list := range lists {
		merged = append(merged, mirrorSet{source: at.source, tags: at.tags, never: never[at], mirrors: interleave(list)})
	}
	slices.SortFunc(merged, func(a, b mirrorSet) int { return cmp.Compare(a.source, b.source) })
	return merged
}

// interleave repeatedly takes the first name that no list has after a remaining name. For contradictory lists the API
// leaves the order unspecified; here the first list's order applies.
func interleave(lists [][]string) []string {
	var names []string
	for _, list := range lists {
		for _, each := range list {
			if !slices.Contains(names, each) {
				names = append(names, each)
			}
		}
	}
	var ordered []string
	for len(names) > 0 {
		next := max(0, slices.IndexFunc(names, func(candidate string) bool { return !preceded(candidate, names, lists) }))
		ordered = append(ordered, names[next])
		names = slices.Delete(names, next, next+1)
	}
	return ordered
}

// preceded reports whether a list has another of the names before the candidate.
func preceded(candidate string, names []string, lists [][]string) bool {
	for _, list := range lists {
		at := slices.Index(list, candidate)
		if at > 0 && slices.ContainsFunc(list[:at], func(before string) bool { return slices.Contains(names, before) }) {
			return true
		}
	}
	return false
}

// places are the repositories in which a node would search for an image. An image
// of a registry that is not allowed is an *Error.
func (r rules) places(reference name.Reference) ([]Place, error) {
	repository := repositoryOf(reference)
	if len(r.allowed) > 0 && !inside(repository, r.allowed) {
		return nil, &Error{
			Reason: ReasonRegistryNotAllowed,
			Message: fmt.Sprintf("%q is not among the allowedRegistries of image.config.openshift.io \"cluster\", so no node would pull it",
				repository),
			Remediation: "Allow the registry of the image.",
			Actions:     []finding.Action{finding.Change(editImageConfig)},
		}
	}
	return r.of(reference), nil
}

func (r rules) of(reference name.Reference) []Place {
	repository := repositoryOf(reference)
	matched, length := r.find(repository)
	mirrors := matched.digests
	if byTag(reference) {
		mirrors = matched.tags
	}
	places := make([]Place, 0, len(mirrors)+1)
	for _, mirror := range mirrors {
		at := mirror + repository[length:]
		places = append(places, Place{Repository: at, Mirror: at != repository, Closed: r.closed(at), insecure: inside(mirror, r.insecure)})
	}
	if slices.ContainsFunc(places, func(p Place) bool { return !p.Mirror }) {
		return places
	}
	return append(places, Place{Repository: repository, Closed: r.closed(repository), insecure: matched.unsafe})
}

// closed is why a node would not contact the repository; empty when it would.
func (r rules) closed(repository string) string {
	matched, _ := r.find(repository)
	_, err := name.NewRepository(repository)
	switch {
	case err != nil:
		return "not the name of a repository"
	case matched.never:
		return fmt.Sprintf("never contacted by policy: mirrorSourcePolicy of %q is NeverContactSource", matched.scope)
	case matched.blocked:
		return fmt.Sprintf("blocked by the cluster: blockedRegistries covers %q", matched.scope)
	}
	return ""
}

func (r rules) find(repository string) (entry, int) {
	var found entry
	longest := 0
	for _, each := range r.entries {
		if length := match(repository, each.scope); length > longest {
			found, longest = each, length
		}
	}
	return found, longest
}

// match returns the length of the prefix of the repository that the scope covers,
// 0 for none (containers/image pkg/sysregistriesv2, refMatchingPrefix). A host
// without port does not match one with a port, as documented for containers/image.
func match(repository, scope string) int {
	if domain, ok := strings.CutPrefix(scope, "*"); ok {
		host, _, _ := strings.Cut(repository, "/")
		if nested(host, scope) && domain != "" {
			return len(host)
		}
		return 0
	}
	if nested(repository, scope) {
		return len(scope)
	}
	return 0
}

// nested reports whether a scope or repository is inside another (runtime-utils
// pkg/registries, ScopeIsNestedInsideScope).
func nested(inner, outer string) bool {
	if domain, ok := strings.CutPrefix(outer, "*"); ok && strings.HasPrefix(domain, ".") {
		host, _, _ := strings.Cut(inner, "/")
		bare, _, _ := strings.Cut(host, ":")
		return inner == outer || strings.HasSuffix(bare, domain)
	}
	return outer != "" && (inner == outer || strings.HasPrefix(inner, outer+"/"))
}

func inside(inner string, scopes []string) bool {
	return slices.ContainsFunc(scopes, func(scope string) bool { return nested(inner, scope) })
}

// The kinds of mirror sets.
const (
	digestMirrorSet     = "ImageDigestMirrorSet"
	tagMirrorSet        = "ImageTagMirrorSet"
	contentSourcePolicy = "ImageContentSourcePolicy"
	hostedCluster       = "HostedCluster"
)

type mirrorSet struct {
	source  string
	mirrors []string
	never   bool
	// kind and name identify the object; the name of a HostedCluster is NAMESPACE/NAME.
	kind, name string
	// tags is true for mirrors of tags, false for mirrors of digests.
	tags bool
}

func (s mirrorSet) String() string { return fmt.Sprintf("%s %q", s.kind, s.name) }

// effective reports whether there is a mirror other than the source. The
// machine-config operator ignores the others.
func (s mirrorSet) effective() bool {
	return slices.ContainsFunc(s.mirrors, func(mirror string) bool { return mirror != s.source })
}

func (s mirrorSet) add(source, mirror string) finding.Action {
	list := map[string]string{
		digestMirrorSet: "imageDigestMirrors", tagMirrorSet: "imageTagMirrors", contentSourcePolicy: "repositoryDigestMirrors",
		hostedCluster: "imageContentSources",
	}[s.kind]
	namespace, name, namespaced := strings.Cut(s.name, "/")
	if !namespaced {
		namespace, name = "", s.name
	}
	patch := finding.JSON([]any{map[string]any{
		"op": "add", "path": "/spec/" + list + "/-",
		"value": map[string]any{"source": source, "mirrors": []string{mirror}},
	}})
	return finding.Change("oc patch %s %s --type=json -p %s", strings.ToLower(s.kind), name, patch).Namespaced(namespace)
}

// nearest is the mirror set for a reference by digest or by tag whose source has the most parts
// in common with the repository, and the repository on its registry where the image is expected;
// false if there is no set.
func (r rules) nearest(repository string, reference name.Reference) (mirrorSet, string, bool) {
	var found mirrorSet
	var mirrored string
	most := -1
	for _, set := range r.sets {
		mirror, ok := set.mirrorOf(repository)
		if common := commonParts(set.source, repository); ok && set.tags == byTag(reference) && common > most {
			found, mirrored, most = set, mirror, common
		}
	}
	return found, mirrored, most >= 0
}

// mirrorOf is the repository with the host of the first mirror; false if there is none or
// it is not the name of a repository.
func (s mirrorSet) mirrorOf(repository string) (string, bool) {
	at := slices.IndexFunc(s.mirrors, func(mirror string) bool { return mirror != s.source })
	if at < 0 {
		return "", false
	}
	host, _, _ := strings.Cut(s.mirrors[at], "/")
	_, path, _ := strings.Cut(repository, "/")
	mirrored, err := name.NewRepository(host + "/" + path)
	if err != nil || !strings.HasPrefix(mirrored.Name(), host+"/") {
		return "", false
	}
	return mirrored.Name(), true
}

func commonParts(a, b string) int {
	parts, others := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(parts), len(others)) {
		if parts[i] != others[i] {
			return i
		}
	}
	return min(len(parts), len(others))
}
