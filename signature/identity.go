package signature

import (
	"slices"
	"strings"

	"github.com/openshift/update-preflight/signature/refusal"
)

// releaseRepository is the repository under which OpenShift's releases are signed, wherever a copy is stored.
const releaseRepository = "quay.io/openshift-release-dev/ocp-release"

// CheckRepository requires that every signer signed the release as an image of
// one of the repositories; without any, of OpenShift's own,
// quay.io/openshift-release-dev/ocp-release. The same keys also sign other images.
// It needs no content of the release. The error is always an *Error; it is nil for
// a forced release, whose failure is known.
func (r Release) CheckRepository(repositories []string) error {
	if len(repositories) == 0 {
		repositories = []string{releaseRepository}
	}
	return r.identify(func(identity reference) *refusal.Error {
		if slices.Contains(repositories, identity.repository) {
			return nil
		}
		return refusal.New(refusal.ReasonWrongRepository, "the signature claim names repository %q; releases are signed as images of %s",
			truncate(identity.repository), strings.Join(repositories, ", "))
	})
}

// CheckVersion requires that every signer signed the release as the version that
// its own metadata states, for any architecture. Call it before running anything
// of the release. The error is as with CheckRepository.
func (r Release) CheckVersion(version string) error {
	return r.identify(func(identity reference) *refusal.Error {
		switch {
		case identity.tag == "":
			return refusal.New(refusal.ReasonNoSignedVersion, "the signature claim names repository %q without a tag, so the version is not signed", truncate(identity.repository))
		case !isTagOf(identity.tag, version):
			return refusal.New(refusal.ReasonWrongVersion, "the signature claim names tag %q, but the release metadata states version %q", truncate(identity.tag), truncate(version))
		}
		return nil
	})
}

func (r Release) forced() bool { return r.failure != nil }

// identify applies a rule to the reference that each signer signed.
func (r Release) identify(check func(reference) *refusal.Error) error {
	if r.forced() {
		return nil
	}
	if len(r.identities) == 0 {
		return refusal.New(refusal.ReasonNotVerified, "the release was not verified")
	}
	for _, identity := range r.identities {
		if failure := check(parseReference(identity)); failure != nil {
			failure.CVOAccepts = r.cvo
			return failure
		}
	}
	return nil
}

type reference struct {
	repository, tag string
}

// parseReference splits repository[:tag][@digest]; the digest is ignored.
func parseReference(text string) reference {
	name, _, _ := strings.Cut(text, "@")
	colon := strings.LastIndexByte(name, ':')
	if colon < 0 || strings.Contains(name[colon:], "/") {
		return reference{repository: name}
	}
	return reference{repository: name[:colon], tag: name[colon+1:]}
}

// isTagOf reports whether a tag names a version, alone or with architectures, for
// example 4.20.1-x86_64 and 4.20.1-multi-aarch64. A tag cannot contain the plus
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
