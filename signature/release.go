package signature

import (
	"context"
	"errors"
	"slices"
	"time"
)

// verifyTimeout bounds one Verify, whatever the stores do. CVO gives its
// verification two minutes as well (cluster-version-operator
// pkg/cvo/updatepayload.go, half of the four for the whole retrieval).
const verifyTimeout = 2 * time.Minute

// Release is a release image that may be read: the proof that Verify makes, or
// what Force puts in its place. The zero value names no release.
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

// Identities are what the signers say that the release is, for example
// quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64, one for each signer;
// none when forced.
func (r Release) Identities() []string { return slices.Clone(r.identities) }

// Warnings say what an administrator should know although the signature is
// accepted: a key that has expired.
func (r Release) Warnings() []string { return slices.Clone(r.warnings) }

// Verified is true for what Verify made, and false for what Force made.
func (r Release) Verified() bool { return r.digest != "" && r.failure == nil }

// Failure is why the release could not be verified, although it is read
// because of force; nil when it is verified.
func (r Release) Failure() error { return r.failure }

// CVOAccepts says whether the cluster-version operator accepts the signatures
// of the release; nil when that could not be told.
func (r Release) CVOAccepts() *bool {
	if failure, ok := errors.AsType[*Error](r.failure); ok {
		return failure.CVOAccepts()
	}
	return r.cvo
}

// Trust is whom to believe and where to ask.
type Trust struct {
	// Keyrings must all be satisfied, each by a signature of any of its keys.
	Keyrings []Keyring
	// Stores are asked in order until the keyrings are satisfied.
	Stores []Store
	// Now is when signatures and keys have to be valid; the time by the clock of
	// this machine where it is zero.
	Now time.Time
}

// Verify proves that the release image pullSpec (repository@sha256:<hex>, no
// tag) is signed by keys that trust holds. It takes at most two minutes. The
// error is always an *Error; it tells apart what is not signed properly from
// what could not be decided.
func Verify(ctx context.Context, pullSpec string, trust Trust) (Release, error) {
	digest, err := parsePullSpec(pullSpec)
	if err != nil {
		return Release{}, err
	}
	if len(trust.Keyrings) == 0 {
		return Release{}, newError(reasonNoKeys, "no public keys to verify %s with", digest)
	}
	if len(trust.Stores) == 0 {
		return Release{}, newError(reasonNoStores, "no signature stores to ask about %s", digest)
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if trust.Now.IsZero() {
		trust.Now = time.Now()
	}
	s := &search{digest: digest, now: trust.Now, missing: slices.Clone(trust.Keyrings), cvo: new(true)}
	for i, store := range trust.Stores {
		s.askInTime(ctx, store, len(trust.Stores)-i)
		if len(s.missing) == 0 {
			return Release{
				pullSpec: pullSpec, digest: digest, signers: s.signers, identities: s.identities, warnings: s.warnings, cvo: s.cvo,
			}, nil
		}
	}
	return Release{}, s.failure()
}

// Force stands in for a proof where an administrator insists on an unverified
// release. The failure of the verification, which must have been tried, stays
// with it.
func Force(pullSpec string, failure error) (Release, error) {
	digest, err := parsePullSpec(pullSpec)
	if err != nil {
		return Release{}, err
	}
	if failure == nil {
		return Release{}, errors.New("force without a failed verification")
	}
	return Release{pullSpec: pullSpec, digest: digest, failure: failure}, nil
}
