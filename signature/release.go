// Package signature answers: is this digest signed by keys that this cluster
// trusts?
//
// A release is signed as containers/image describes it (simple signing): an
// OpenPGP message, kept in a store under the digest, whose content claims that
// the digest is a certain image. Verify looks through the stores and returns a
// Release, the proof that the rest of the program asks for before it reads
// anything of the release.
//
// Honest signatures are accepted as the cluster-version operator (CVO) accepts
// them (library-go pkg/verify): one key of a keyring is enough, every keyring
// must be satisfied, stores are asked in order. These are the deliberate
// differences:
//
//   - Everything that comes from a store is bounded before it is read or
//     decompressed, and every message has exactly the form that `gpg --sign`
//     gives it. What the signature does not cover must agree with what it
//     covers. OpenPGP leaves three things that nobody can check: the file name
//     and the exact date beside the signed bytes, and padding bits of a
//     compressed stream. None of them is used.
//   - The claim is decoded exactly: a duplicate key, a key in other letter
//     case, or anything behind the JSON is refused. CVO lets them pass.
//   - SHA-1 and MD5 are refused, and so is a signature dated in the future. CVO
//     accepts them.
//   - A key that expired after it signed is accepted, as by CVO, with a
//     warning; one that had expired when it signed is refused.
//   - All armor blocks of a keyring count. CVO reads the first.
//   - Version 3 signatures, and keys or algorithms that the OpenPGP library
//     does not know, are "could not tell", never "forged". CVO's library
//     accepts version 3.
//   - A store that does not answer does not stop the search. In CVO a failing
//     list of signature ConfigMaps does.
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
	pullSpec string
	digest   string
	signers  []string
	warnings []string
	failure  error
}

// PullSpec is the release image, repository@sha256:<hex>.
func (r Release) PullSpec() string { return r.pullSpec }

// Digest is "sha256:<hex>".
func (r Release) Digest() string { return r.digest }

// Signers are the keys whose signatures were accepted, each as its ID and its
// owner's name, in the order of the keyrings they satisfied; none when forced.
func (r Release) Signers() []string { return slices.Clone(r.signers) }

// Warnings say what an administrator should know although the signature is
// accepted: a key that has expired since.
func (r Release) Warnings() []string { return slices.Clone(r.warnings) }

// Verified is true for what Verify made, and false for what Force made.
func (r Release) Verified() bool { return r.digest != "" && r.failure == nil }

// Failure is why the release could not be verified, although it is read
// because of force; nil when it is verified.
func (r Release) Failure() error { return r.failure }

// Trust is whom to believe and where to ask.
type Trust struct {
	// Keyrings must all be satisfied, each by a signature of any of its keys.
	Keyrings []Keyring
	// Stores are asked in order until the keyrings are satisfied.
	Stores []Store
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
	s := &search{digest: digest, now: time.Now(), missing: slices.Clone(trust.Keyrings)}
	for _, store := range trust.Stores {
		s.ask(ctx, store)
		if len(s.missing) == 0 {
			return Release{pullSpec: pullSpec, digest: digest, signers: s.signers, warnings: s.warnings}, nil
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
