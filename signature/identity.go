package signature

import (
	"slices"
	"strings"
)

// releaseRepository is where OpenShift's releases are published, and what their
// signatures call them, wherever a copy is.
const releaseRepository = "quay.io/openshift-release-dev/ocp-release"

// CheckRepository makes sure that every signer signed the release as an image
// of one of the repositories; none given means OpenShift's own,
// quay.io/openshift-release-dev/ocp-release. The same keys sign other images,
// too. It can be called before anything of the release is read. The error is
// always an *Error; there is none for a forced release, whose failure is known.
func (r Release) CheckRepository(repositories []string) error {
	if len(repositories) == 0 {
		repositories = []string{releaseRepository}
	}
	return r.identify(func(identity reference) *Error {
		if slices.Contains(repositories, identity.repository) {
			return nil
		}
		return newError(reasonWrongRepository, "it is signed as an image of %q; releases are signed as images of %s",
			quotable(identity.repository), strings.Join(repositories, ", "))
	})
}

// CheckVersion makes sure that every signer signed the release as the version
// that it says it is itself, for any architecture. Call it before anything of
// the release is run. The error is as with CheckRepository.
func (r Release) CheckVersion(version string) error {
	return r.identify(func(identity reference) *Error {
		switch {
		case identity.tag == "":
			return newError(reasonNoSignedVersion, "it is signed as an image of %q without a tag, so nobody signed which version it is", quotable(identity.repository))
		case !isTagOf(identity.tag, version):
			return newError(reasonWrongVersion, "it is signed as %q, and says itself that it is version %q", quotable(identity.tag), quotable(version))
		}
		return nil
	})
}

// forced is true for what Force made.
func (r Release) forced() bool { return r.failure != nil }

// identify holds what each signer signed against a rule.
func (r Release) identify(check func(reference) *Error) error {
	if r.forced() {
		return nil
	}
	if len(r.identities) == 0 {
		return newError(reasonNotVerified, "the release was not verified")
	}
	for _, identity := range r.identities {
		if failure := check(parseReference(identity)); failure != nil {
			failure.cvo = r.cvo
			return failure
		}
	}
	return nil
}

// reference is what a signer calls an image.
type reference struct {
	repository, tag string
}

// parseReference takes repository[:tag][@digest] apart.
func parseReference(text string) reference {
	name, _, _ := strings.Cut(text, "@")
	colon := strings.LastIndexByte(name, ':')
	if colon < 0 || strings.Contains(name[colon:], "/") {
		return reference{repository: name}
	}
	return reference{repository: name[:colon], tag: name[colon+1:]}
}

// isTagOf tells whether a tag names a version, alone or with architectures, for
// example 4.20.1-x86_64 and 4.20.1-multi-aarch64. A tag cannot hold the plus
// sign of a version; "oc adm release new" writes an underscore.
func isTagOf(tag, version string) bool {
	rest, ok := strings.CutPrefix(tag, strings.ReplaceAll(version, "+", "_"))
	if !ok || version == "" {
		return false
	}
	for rest != "" {
		if rest, ok = cutArchitecture(rest); !ok {
			return false
		}
	}
	return true
}

func cutArchitecture(rest string) (string, bool) {
	for _, architecture := range []string{"x86_64", "amd64", "aarch64", "arm64", "ppc64le", "s390x", "multi"} {
		if after, ok := strings.CutPrefix(rest, "-"+architecture); ok && (after == "" || after[0] == '-') {
			return after, true
		}
	}
	return "", false
}
