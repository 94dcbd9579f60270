package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/finding"
)

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
		digestMirrorSet: "imageDigestMirrors", tagMirrorSet: "imageTagMirrors", contentSourcePolicy: "repositoryDigestMirrors", hostedCluster: "imageContentSources",
	}[s.kind]
	namespace, name, namespaced := strings.Cut(s.name, "/")
	if !namespaced {
		namespace, name = "", s.name
	}
	patch := finding.JSON([]any{map[string]any{"op": "add", "path": "/spec/" + list + "/-", "value": map[string]any{"source": source, "mirrors": []string{mirror}}}})
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
