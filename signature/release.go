package signature

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
)

// verifyTimeout bounds one Verify. CVO also allows its verification two minutes
// (cluster-version-operator pkg/cvo/updatepayload.go, half of the four for the
// whole retrieval).
const verifyTimeout = 2 * time.Minute

// Release is a release image that may be read: the proof that Verify returns, or
// the substitute that Force returns. The zero value names no release.
type Release struct {
	pullSpec   string
	digest     string
	signers    []string
	identities []string
	warnings   []string
	cvo        *bool
	failure    error
}

// PullSpec is the release image, repository@sha256:<hex>.
func (r Release) PullSpec() string { return r.pullSpec }

// Digest is "sha256:<hex>".
func (r Release) Digest() string { return r.digest }

// Signers are the keys whose signatures were accepted, each as its ID and its
// owner's name, in the order of the keyrings they satisfied; none when forced.
func (r Release) Signers() []string { return slices.Clone(r.signers) }

// Identities are the references in the signature claims, for example
// quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64, one per signer; none
// when forced.
func (r Release) Identities() []string { return slices.Clone(r.identities) }

// Warnings are properties of accepted signatures that an administrator should know: an expired key.
func (r Release) Warnings() []string { return slices.Clone(r.warnings) }

// Verified is true for a release that Verify returned, and false for one that Force returned.
func (r Release) Verified() bool { return r.digest != "" && r.failure == nil }

// Failure is the error of the verification of a forced release; nil when the release is verified.
func (r Release) Failure() error { return r.failure }

// CVOAccepts reports whether the cluster-version operator accepts the signatures
// of the release; nil when that is unknown.
func (r Release) CVOAccepts() *bool {
	if failure, ok := errors.AsType[*refusal.Error](r.failure); ok {
		return failure.CVOAccepts
	}
	return r.cvo
}

// Trust is the keyrings to verify with and the signature stores to search.
type Trust struct {
	// Keyrings must all be satisfied, each by a signature by any of its keys.
	Keyrings []Keyring
	// Stores are searched in order until all keyrings are satisfied.
	Stores []store.Store
	// Now is the time at which signatures and keys must be valid; the zero value means the clock of this machine.
	Now time.Time
}

// Verify verifies that the release image pullSpec (repository@sha256:<hex>, no
// tag) is signed by keys of trust. It takes at most two minutes. The error is
// always an *Error; its outcome distinguishes an invalid signature from an
// inconclusive verification.
func Verify(ctx context.Context, pullSpec string, trust Trust) (Release, error) {
	digest, err := parsePullSpec(pullSpec)
	if err != nil {
		return Release{}, err
	}
	if len(trust.Keyrings) == 0 {
		return Release{}, refusal.New(refusal.ReasonNoKeys, "no keyring to verify %s with", digest)
	}
	if len(trust.Stores) == 0 {
		return Release{}, refusal.New(refusal.ReasonNoStores, "no signature store to search for %s", digest)
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if trust.Now.IsZero() {
		trust.Now = time.Now()
	}
	s := &search{digest: digest, now: trust.Now, missing: slices.Clone(trust.Keyrings), cvo: new(true)}
	for i, store := range trust.Stores {
		s.searchStore(ctx, store, len(trust.Stores)-i)
		if len(s.missing) == 0 {
			return Release{
				pullSpec: pullSpec, digest: digest, signers: s.signers, identities: s.identities, warnings: s.warnings, cvo: s.cvo,
			}, nil
		}
	}
	return Release{}, s.failure()
}

// Force returns a release that an administrator uses without verification. The
// failure of the verification, which must have been attempted, is kept with it.
func Force(pullSpec string, failure error) (Release, error) {
	digest, err := parsePullSpec(pullSpec)
	if err != nil {
		return Release{}, err
	}
	if failure == nil {
		return Release{}, errors.New("a release can be forced only after a failed verification")
	}
	return Release{pullSpec: pullSpec, digest: digest, failure: failure}, nil
}

// maxPullSpecText bounds the part of an invalid pull spec repeated in a message, in bytes.
const maxPullSpecText = 256

// parsePullSpec returns the digest of repository@sha256:<64 hex>, the only form that is immutable.
func parsePullSpec(pullSpec string) (string, error) {
	shown := pullSpec
	if len(shown) > maxPullSpecText {
		shown = shown[:maxPullSpecText]
	}
	repository, digest, ok := strings.Cut(pullSpec, "@")
	if !ok {
		return "", refusal.New(refusal.ReasonInvalidPullSpec, "pull spec %q has no digest, and a tag cannot be verified", shown)
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		return "", refusal.New(refusal.ReasonInvalidPullSpec, "pull spec %q does not end in sha256: and 64 "+
			"lower-case hex digits", shown)
	}
	// host[:port]/path as in the distribution project, without a tag.
	name := regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?` +
		`(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+$`)
	if !name.MatchString(repository) {
		return "", refusal.New(refusal.ReasonInvalidPullSpec,
			"pull spec %q is not registry/repository@sha256:<hex>; a tag beside the digest is not allowed", shown)
	}
	return digest, nil
}

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
			return refusal.New(refusal.ReasonNoSignedVersion, "the signature claim names repository %q without a tag, so the version is not signed",
				truncate(identity.repository))
		case !isTagOf(identity.tag, version):
			return refusal.New(refusal.ReasonWrongVersion, "the signature claim names tag %q, but the release "+
				"metadata contains version %q",
				truncate(identity.tag), truncate(version))
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
