package signature

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
)

const (
	// maxSignatures is how many signatures of a digest are read from one store.
	// CVO reads nine from an HTTP store (library-go pkg/verify/store/sigstore)
	// and all in ConfigMaps (pkg/verify/store/configmap).
	maxSignatures          = 9
	maxConfigMapSignatures = 100
	// maxDetails bounds Error.Details.
	maxDetails = 20
)

type search struct {
	digest     string
	now        time.Time
	missing    []Keyring // not satisfied yet
	signers    []string
	identities []string
	warnings   []string
	cvo        *bool // whether CVO accepts the signatures of the satisfied keyrings
	searched   []string
	attempts   []attempt
}

// attempt is the result of one rejected signature, or of a store that failed.
type attempt struct {
	where   string
	keyring string // empty: rejected for every keyring
	err     *refusal.Error
}

// searchStore searches a store within its share of the remaining time. left is the
// number of stores not searched yet, this one included.
func (s *search) searchStore(ctx context.Context, from store.Store, left int) {
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
		ctx = limited
	}
	s.read(ctx, from)
}

// read checks the signatures in one store until the keyrings are satisfied.
func (s *search) read(ctx context.Context, from store.Store) {
	s.searched = append(s.searched, from.String())
	before := len(s.attempts)
	for n := 1; len(s.missing) > 0; n++ {
		data, err := from.Signature(ctx, s.digest, n)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if n > limit(from) {
			s.tooMany(from, s.attempts[before:])
			return
		}
		where := fmt.Sprintf("signature-%d of %s", n, from)
		if err == nil && len(data) > store.MaxBytes {
			err = store.ErrTooLarge
		}
		if err == nil {
			s.checkSignature(where, data)
			continue
		}
		s.attempts = append(s.attempts, attempt{where: where, err: storeError(err)})
		// After an oversized signature the next one may still be valid; after any
		// other error the store is not read again.
		if !errors.Is(err, store.ErrTooLarge) {
			return
		}
	}
}

// tooMany records that a store has more signatures than are read. A server that
// returns the same page for every path has no signatures.
func (s *search) tooMany(from store.Store, tried []attempt) {
	if slices.ContainsFunc(tried, func(a attempt) bool { return a.keyring != "" }) {
		s.attempts = append(s.attempts, attempt{where: from.String(), err: refusal.New(refusal.ReasonTooManySignatures,
			"it has more than %d signatures of this digest; only the first %d are read", limit(from), limit(from))})
	}
}

// limit is how many signatures are read from a store.
func limit(from store.Store) int {
	if _, ok := from.(*store.ConfigMaps); ok {
		return maxConfigMapSignatures
	}
	return maxSignatures
}

// checkSignature checks one signature against the keyrings not satisfied yet.
func (s *search) checkSignature(where string, data []byte) {
	m, err := parseMessage(data)
	if err != nil {
		s.attempts = append(s.attempts, attempt{where: where, err: err})
		return
	}
	identity, claimErr := readClaim(m.body, s.digest)
	s.missing = slices.DeleteFunc(s.missing, func(k Keyring) bool {
		signer, err := k.check(m, s.now)
		if err == nil && claimErr == nil {
			s.accept(signer, identity)
			return true
		}
		a := attempt{where: where, keyring: k.name, err: err}
		switch {
		case err == nil:
			violation := *claimErr
			violation.CVOAccepts = both(violation.CVOAccepts, signer.cvo)
			a.err = &violation
		case claimErr != nil:
			err.CVOAccepts = both(err.CVOAccepts, claimErr.CVOAccepts)
		}
		s.attempts = append(s.attempts, a)
		return false
	})
}

func (s *search) accept(signer signer, identity string) {
	s.signers = append(s.signers, signer.name)
	s.identities = append(s.identities, identity)
	s.cvo = both(s.cvo, signer.cvo)
	if signer.warning != "" {
		s.warnings = append(s.warnings, signer.warning)
	}
}

// failure reports the first keyring that is not satisfied: its most significant
// violation as the message, all of them as details.
func (s *search) failure() *refusal.Error {
	attempts := s.of(s.missing[0])
	if len(attempts) == 0 {
		return refusal.New(refusal.ReasonNoSignature, "no signature of %s in %s", s.digest, strings.Join(s.searched, ", "))
	}
	worst := slices.MinFunc(attempts, func(a, b attempt) int { return rank(a.err.Reason) - rank(b.err.Reason) })
	e := *worst.err
	e.Message = fmt.Sprintf("no signature of %s satisfies keyring %q: %s: %s", s.digest, s.missing[0].name, worst.where, e.Message)
	for _, a := range attempts[:min(len(attempts), maxDetails)] {
		e.Details = append(e.Details, fmt.Sprintf("%s: %s: %s", a.where, a.err.Reason, a.err.Message))
	}
	e.CVOAccepts = s.acceptedByCVO()
	return &e
}

// of returns the attempts that could have satisfied a keyring.
func (s *search) of(keyring Keyring) []attempt {
	return slices.DeleteFunc(slices.Clone(s.attempts), func(a attempt) bool {
		return a.keyring != "" && a.keyring != keyring.name
	})
}

// acceptedByCVO reports whether CVO accepts: it requires one valid signature per keyring.
func (s *search) acceptedByCVO() *bool {
	accepted := s.cvo
	for _, keyring := range s.missing {
		one := new(false)
		for _, a := range s.of(keyring) {
			one = either(one, a.err.CVOAccepts)
		}
		accepted = both(accepted, one)
	}
	return accepted
}

// rank orders reasons by significance, the most significant first: violations by
// a trusted key, then inconclusive reads, since the valid signature may be among
// those not read, then what any third party may have stored.
func rank(reason refusal.Reason) int {
	return slices.Index([]refusal.Reason{
		refusal.ReasonKeyRevoked, refusal.ReasonInvalidSignature, refusal.ReasonWrongDigest, refusal.ReasonInvalidClaim,
		refusal.ReasonTrailingData, refusal.ReasonDuplicateField, refusal.ReasonFieldCase, refusal.ReasonUnsignedAttributes,
		refusal.ReasonSignatureExpired, refusal.ReasonNotYetValid, refusal.ReasonKeyNotYetValid, refusal.ReasonWeakDigest,
		refusal.ReasonUnsupportedSignature, refusal.ReasonTimeout, refusal.ReasonStoreUnavailable, refusal.ReasonInvalidStore,
		refusal.ReasonNoStores,
		refusal.ReasonTooManySignatures, refusal.ReasonUnknownKey, refusal.ReasonMalformedSignature, refusal.ReasonTooLarge,
	}, reason)
}

func storeError(err error) *refusal.Error {
	var timeout net.Error
	var known *refusal.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrTooLarge):
		return refusal.New(refusal.ReasonTooLarge, "larger than %d bytes", store.MaxBytes)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return refusal.New(refusal.ReasonTimeout, "no response in time: %w", err)
	}
	return refusal.New(refusal.ReasonStoreUnavailable, "could not be read: %w", err)
}

// both is the conjunction of two conditions; nil means unknown.
func both(a, b *bool) *bool {
	switch {
	case a != nil && !*a:
		return a
	case b != nil && !*b:
		return b
	case a == nil:
		return nil
	}
	return b
}

// either is the disjunction of two conditions; nil means unknown.
func either(a, b *bool) *bool {
	switch {
	case a != nil && *a:
		return a
	case b != nil && *b:
		return b
	case a == nil:
		return nil
	}
	return b
}
